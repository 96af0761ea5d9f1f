//! Expressions of CEL that say about which requests a webhook is asked.

use std::sync::Arc;

use super::super::authorizer::aggregate;
use crate::expression::value::{Error, Map as MapValue, Value as CelValue};
use crate::expression::{Budget, Environment, Program, Refusal, Type, Variables, check, program};
use crate::tree::Map;

/// The highest cost of an expression: upstream's limit of one call.
const MOST: u64 = 1_000_000;
const REQUEST: &str = "kubernetes.SubjectAccessReviewSpec";

/// Conditions that all have to hold. Copies share their plans.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    conditions: Arc<[Condition]>,
}

#[derive(Debug)]
pub struct Condition {
    text: String,
    program: Program,
}

/// The outcome of the conditions for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    Yes,
    No,
    /// None is false, and some cannot be evaluated.
    Unknown(String),
}

impl Condition {
    /// Fails with upstream's words.
    pub fn compile(text: &str) -> Result<Self, String> {
        let environment = environment();
        let checked = check(text, &environment).map_err(|refusal| match refusal {
            Refusal::Wrong(why) => why,
            Refusal::NoStack => "the expression is too deep to be compiled now".to_owned(),
        })?;
        if checked.result != Type::Bool {
            return Err(format!("must evaluate to bool but got {}", checked.result));
        }
        let program = program(&checked, &environment);
        let program = program.map_err(|why| format!("program instantiation failed: {why}"))?;
        Ok(Self { text: text.to_owned(), program })
    }

    fn holds(&self, request: &Map) -> Result<bool, String> {
        let failed = |what: &str, why: &str| {
            Err(format!("cel evaluation error: expression '{}' {what}{why}", self.text))
        };
        match self.program.evaluate(&Request(request), &mut Budget::of(MOST)) {
            Ok(value) => match value.as_bool() {
                Some(holds) => Ok(holds),
                None => failed("eval result type should be bool but got ", value.type_name()),
            },
            Err(fault) => failed("resulted in error: ", fault.message()),
        }
    }
}

impl Conditions {
    pub fn new(conditions: Vec<Condition>) -> Self {
        Self { conditions: conditions.into() }
    }

    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Evaluates them over the `spec` of a SubjectAccessReview in which no field is left out.
    pub fn judge(&self, spec: &Map) -> Match {
        let mut errors = Vec::new();
        for condition in &*self.conditions {
            match condition.holds(spec) {
                Ok(true) => {}
                Ok(false) => return Match::No,
                Err(error) => errors.push(error),
            }
        }
        aggregate(errors).map_or(Match::Yes, Match::Unknown)
    }
}

/// Files of settings are compared by what they say.
impl PartialEq for Conditions {
    fn eq(&self, other: &Self) -> bool {
        let texts = |all: &Self| all.conditions.iter().map(|one| one.text.clone()).collect::<Vec<_>>();
        texts(self) == texts(other)
    }
}

/// The only variable.
struct Request<'a>(&'a Map);

impl<'a> Variables<'a> for Request<'a> {
    fn get(&self, name: &str) -> Option<Result<CelValue<'a>, Error>> {
        (name == "request").then_some(Ok(CelValue::Map(MapValue::Dyn(self.0))))
    }
}

fn environment() -> Environment {
    let texts = || Type::list(Type::String);
    let of = |name: &str| Type::Struct(name.into());
    let structs: [(&str, &[(&str, Type)]); 6] = [
        (
            REQUEST,
            &[
                ("resourceAttributes", of("kubernetes.ResourceAttributes")),
                ("nonResourceAttributes", of("kubernetes.NonResourceAttributes")),
                ("user", Type::String),
                ("groups", texts()),
                ("extra", Type::map(Type::String, texts())),
                ("uid", Type::String),
            ],
        ),
        (
            "kubernetes.ResourceAttributes",
            &[
                ("namespace", Type::String),
                ("verb", Type::String),
                ("group", Type::String),
                ("version", Type::String),
                ("resource", Type::String),
                ("subresource", Type::String),
                ("name", Type::String),
                ("fieldSelector", of("kubernetes.FieldSelectorAttributes")),
                ("labelSelector", of("kubernetes.LabelSelectorAttributes")),
            ],
        ),
        ("kubernetes.NonResourceAttributes", &[("path", Type::String), ("verb", Type::String)]),
        ("kubernetes.FieldSelectorAttributes", &selector()),
        ("kubernetes.LabelSelectorAttributes", &selector()),
        (
            "kubernetes.SelectorRequirement",
            &[("key", Type::String), ("operator", Type::String), ("values", texts())],
        ),
    ];
    let declare = |environment: Environment, (name, fields): (&str, &[(&str, Type)])| {
        let fields = fields.iter().map(|(field, is)| ((*field).to_owned(), is.clone()));
        environment.with_struct(name, fields)
    };
    let environment = structs.into_iter().fold(Environment::default().of_stored(), declare);
    environment.with_variable("request", of(REQUEST))
}

fn selector() -> [(&'static str, Type); 2] {
    let requirements = Type::list(Type::Struct("kubernetes.SelectorRequirement".into()));
    [("rawSelector", Type::String), ("requirements", requirements)]
}
