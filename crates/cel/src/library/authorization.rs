//! `authorizer` (`apiserver/pkg/cel/library/authz.go`): calls put a question together, and `check` asks it.

use std::fmt;
use std::sync::Arc;

use super::opaque::Opaque;
use crate::value::{Error, Value};

/// The authorizer that answers the questions of expressions.
pub trait Authority: fmt::Debug + Send + Sync {
    /// The error ends the evaluation: the answer is not known yet.
    fn decide(&self, question: &Question) -> Result<Decision, Error>;
}

/// May somebody do this?
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Question {
    /// Namespace and name of an account; `None` for the user of the request.
    pub account: Option<(String, String)>,
    /// Outside the resource API.
    pub path: Option<String>,
    pub group: String,
    pub resource: String,
    pub subresource: String,
    pub namespace: String,
    pub name: String,
    pub field_selector: String,
    pub label_selector: String,
    pub verb: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    pub is_allowed: bool,
    pub reason: String,
    pub error: Option<String>,
}

/// A value of one of the library's types.
#[derive(Clone, Debug)]
pub enum Authorization {
    Authorizer(Asking),
    Path(Asking),
    Group(Asking),
    Resource(Asking),
    Decision(Decision),
}

/// A question, as far as it has been put together, and who is asked.
#[derive(Clone, Debug)]
pub struct Asking {
    pub authority: Arc<dyn Authority>,
    pub question: Question,
}

impl Asking {
    fn with(&self, change: impl FnOnce(&mut Question)) -> Self {
        let mut question = self.question.clone();
        change(&mut question);
        Self { authority: self.authority.clone(), question }
    }
}

impl Authorization {
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Authorizer(_) => "kubernetes.authorization.Authorizer",
            Self::Path(_) => "kubernetes.authorization.PathCheck",
            Self::Group(_) => "kubernetes.authorization.GroupCheck",
            Self::Resource(_) => "kubernetes.authorization.ResourceCheck",
            Self::Decision(_) => "kubernetes.authorization.Decision",
        }
    }

    /// `authorizer`, or `authorizer.requestResource` with the question of a resource.
    pub fn value<'a>(authority: Arc<dyn Authority>, resource: Option<Question>) -> Value<'a> {
        shown(match resource {
            None => Self::Authorizer(Asking { authority, question: Question::default() }),
            Some(question) => Self::Resource(Asking { authority, question }),
        })
    }
}

fn shown<'a>(authorization: Authorization) -> Value<'a> {
    Value::Opaque(Arc::new(Opaque::Authorization(authorization)))
}

pub fn call<'a>(function: &str, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Error>> {
    let Value::Opaque(opaque) = arguments.first()? else { return None };
    let Opaque::Authorization(of) = &**opaque else { return None };
    let text = |at: usize| arguments.get(at).and_then(Value::as_str);
    Some(match (of, function) {
        (Authorization::Decision(decision), _) => Ok(decided(decision, function)?),
        (Authorization::Authorizer(asking), "path") => match text(1)? {
            "" => Err(Error::new("path must not be empty")),
            path => {
                let asking = asking.with(|question| question.path = Some(path.to_owned()));
                Ok(shown(Authorization::Path(asking)))
            }
        },
        (Authorization::Authorizer(asking), "group") => {
            let group = text(1)?;
            Ok(shown(Authorization::Group(asking.with(|question| question.group = group.to_owned()))))
        }
        (Authorization::Authorizer(asking), "serviceAccount") => account(asking, text(1)?, text(2)?),
        (Authorization::Group(asking), "resource") => match text(1)? {
            "" => Err(Error::new("resource must not be empty")),
            resource => {
                let asking = asking.with(|question| question.resource = resource.to_owned());
                Ok(shown(Authorization::Resource(asking)))
            }
        },
        (Authorization::Path(asking) | Authorization::Resource(asking), "check") => {
            let verb = text(1)?;
            let asking = asking.with(|question| question.verb = verb.to_owned());
            let decision = asking.authority.decide(&asking.question);
            decision.map(|decision| shown(Authorization::Decision(decision)))
        }
        (Authorization::Resource(asking), _) => {
            let value = text(1)?.to_owned();
            let change: fn(&mut Question) -> &mut String = match function {
                "subresource" => |question| &mut question.subresource,
                "namespace" => |question| &mut question.namespace,
                "name" => |question| &mut question.name,
                "fieldSelector" => |question| &mut question.field_selector,
                "labelSelector" => |question| &mut question.label_selector,
                _ => return None,
            };
            Ok(shown(Authorization::Resource(asking.with(|question| *change(question) = value))))
        }
        _ => return None,
    })
}

fn decided<'a>(decision: &Decision, function: &str) -> Option<Value<'a>> {
    Some(match function {
        "allowed" => Value::Bool(decision.is_allowed),
        "reason" => Value::string(decision.reason.clone()),
        "errored" => Value::Bool(decision.error.is_some()),
        "error" => Value::string(decision.error.clone().unwrap_or_default()),
        _ => return None,
    })
}

fn account<'a>(asking: &Asking, namespace: &str, name: &str) -> Result<Value<'a>, Error> {
    let is_label = |text: &str| {
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !text.is_empty()
            && text.len() <= 63
            && text.chars().all(inner)
            && !text.starts_with('-')
            && !text.ends_with('-')
    };
    if name.len() > 253 || !name.split('.').all(is_label) {
        return Err(Error::new("Invalid service account name"));
    }
    if !is_label(namespace) {
        return Err(Error::new("Invalid service account namespace"));
    }
    let account = Some((namespace.to_owned(), name.to_owned()));
    Ok(shown(Authorization::Authorizer(asking.with(|question| question.account = account))))
}
