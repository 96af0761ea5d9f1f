//! `matchConditions`: expressions that all have to be true for a webhook to be called.

use super::evaluation::{Expression, Failure, OUT_OF_BUDGET, Run, Seen, Variable};
use super::matching::{Facts, Matched, kind_of};
use crate::admission::Operation;
use crate::auth::authorizer::aggregate;
use crate::expression::Environment;
use crate::options::DryRun;
use crate::request::Request;
use crate::schema::names::{Gvk, Gvr};
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

/// The cost limit of all conditions of a webhook or policy together.
const BUDGET: u64 = 2_500_000;

/// The conditions of a webhook or a policy.
#[derive(Debug, Default)]
pub struct Conditions {
    list: Vec<Expression>,
    /// Whether one of them speaks of `managedFields`, which are text while a write is at work.
    pub sees_managers: bool,
}

/// The outcome of all conditions of a webhook or policy.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Met,
    /// One of them is false.
    Unmet,
    /// None is false, and so many could not be evaluated.
    Failed {
        errors: usize,
        why: String,
    },
}

impl Conditions {
    /// Reads and compiles the list of a webhook, or of a policy's spec.
    pub fn of(parent: &ObjectMap, environment: &Environment) -> Self {
        let texts = fields::items(parent, &["matchConditions"]).iter();
        let texts = texts.filter_map(|condition| condition.get("expression").and_then(Value::as_str));
        let list: Vec<Expression> = texts.map(|text| Expression::compile(text, environment)).collect();
        let sees_managers = list.iter().any(|one| one.text.contains("managedFields"));
        Self { list, sees_managers }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn evaluate(&self, seen: Seen<'_>, variables: &[Variable]) -> Outcome {
        let mut run = Run::new(seen, variables, BUDGET);
        let mut errors = Vec::new();
        for expression in &self.list {
            match run.evaluate(expression) {
                Ok(value) if value.as_bool() == Some(true) => {}
                Ok(value) if value.as_bool() == Some(false) => return Outcome::Unmet,
                Ok(_) => errors.push(format!("expression '{}' resulted in no bool", expression.text)),
                Err(Failure::Error(why)) => errors.push(why),
                Err(Failure::OutOfBudget) => {
                    return Outcome::Failed { errors: 1, why: OUT_OF_BUDGET.to_owned() };
                }
            }
        }
        match errors.len() {
            0 => Outcome::Met,
            count => Outcome::Failed { errors: count, why: aggregate(errors).unwrap_or_default() },
        }
    }
}

/// A request as expressions see it, without its objects. `matched` is the version that objects are in.
pub fn described(request: &Request<'_>, facts: &Facts<'_>, matched: &Matched) -> ObjectMap {
    let own = kind_of(facts.resource, facts.subresource);
    let mut described = ObjectMap::new();
    described.insert("kind", kind(&matched.kind.gvk));
    described.insert("resource", resource(&matched.resource));
    insert_text(&mut described, "subResource", facts.subresource);
    described.insert("requestKind", kind(&own.gvk));
    described.insert("requestResource", resource(&facts.resource.definition.gvr()));
    insert_text(&mut described, "requestSubResource", facts.subresource);
    insert_text(&mut described, "name", facts.name);
    insert_text(&mut described, "namespace", facts.namespace);
    described.insert("operation", facts.operation.as_str().into());
    described.insert("userInfo", request.user.info());
    described.insert("dryRun", (request.options.dry_run() == DryRun::Yes).into());
    described.insert("options", options(request, facts.operation));
    described
}

fn insert_text(object: &mut ObjectMap, name: &str, text: &str) {
    if !text.is_empty() {
        object.insert(name, text.into());
    }
}

fn kind(gvk: &Gvk) -> Value {
    json!({"group": gvk.group().as_str(), "version": gvk.version(), "kind": gvk.kind.as_str()})
}

fn resource(gvr: &Gvr) -> Value {
    json!({"group": gvr.group().as_str(), "version": gvr.version(), "resource": gvr.plural.as_str()})
}

/// The options of the operation, as the type prints them.
fn options(request: &Request<'_>, operation: Operation) -> Value {
    let mut printed = ObjectMap::new();
    let kind = match operation {
        Operation::Connect => return Value::Null,
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    printed.insert("kind", kind.into());
    printed.insert("apiVersion", "meta.k8s.io/v1".into());
    match operation {
        Operation::Delete => request.options.delete().print(&mut printed),
        Operation::Create | Operation::Update | Operation::Connect => {
            request.options.write().print(&mut printed);
        }
    }
    Value::Object(printed)
}
