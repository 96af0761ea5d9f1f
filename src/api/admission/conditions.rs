//! `matchConditions`: expressions that all have to be true for a webhook to be called.

use super::Operation;
use super::matching::{Facts, Matched, kind_of};
use crate::api::options::DryRun;
use crate::api::request::Request;
use crate::api::{ObjectMap, fields};
use crate::auth::authorizer::aggregate;
use crate::expression::value::{Error as Fault, Map as MapValue, Value as CelValue};
use crate::expression::{Budget, Program, Refusal, Variables, check, program};
use crate::kinds::behavior::rules::expression::Admission as Environment;
use crate::schema::names::{Gvk, Gvr};
use crate::tree::{Map, Value, json};
use crate::user::User;

/// What one expression may cost, and all of them together.
const MOST_OF_ONE: u64 = 1_000_000;
const MOST_OF_ALL: u64 = 2_500_000;
const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

/// The conditions of a webhook.
#[derive(Debug, Default)]
pub struct Conditions {
    list: Vec<Condition>,
    /// Whether one of them speaks of `managedFields`, which are text while a write is at work.
    pub sees_managers: bool,
}

#[derive(Debug)]
struct Condition {
    text: String,
    program: Result<Program, String>,
}

/// What the conditions say.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    Met,
    /// One of them is false.
    Unmet,
    /// None is false, and so many could not be evaluated.
    Failed { errors: usize, why: String },
}

impl Conditions {
    /// Reads and compiles the list of a webhook.
    pub fn of(hook: &ObjectMap) -> Self {
        let environment = Environment::new(false);
        let texts = fields::items(hook, &["matchConditions"]).iter();
        let texts = texts.filter_map(|condition| condition.get("expression").and_then(Value::as_str));
        let list: Vec<Condition> = texts
            .map(|text| {
                let program = check(text, environment.declarations())
                    .map_err(|refusal| match refusal {
                        Refusal::Wrong(why) => why,
                        Refusal::NoStack => "the expression is too deep to be compiled now".to_owned(),
                    })
                    .and_then(|checked| program(&checked, environment.declarations()));
                Condition { text: text.to_owned(), program }
            })
            .collect();
        let sees_managers = list.iter().any(|one| one.text.contains("managedFields"));
        Self { list, sees_managers }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn evaluate(&self, seen: &Seen<'_>) -> Outcome {
        let mut left = MOST_OF_ALL;
        let mut errors = Vec::new();
        for Condition { text, program } in &self.list {
            let told = |why: &str| format!("expression '{text}' resulted in error: {why}");
            let program = match program {
                Ok(program) => program,
                Err(why) => {
                    errors.push(told(why));
                    continue;
                }
            };
            let mut budget = Budget::of(MOST_OF_ONE);
            let value = program.evaluate(seen, &mut budget);
            let Some(rest) = left.checked_sub(budget.spent) else {
                return Outcome::Failed { errors: 1, why: OUT_OF_BUDGET.to_owned() };
            };
            left = rest;
            match value {
                Ok(value) if value.as_bool() == Some(true) => {}
                Ok(value) if value.as_bool() == Some(false) => return Outcome::Unmet,
                Ok(_) => errors.push(told("no such overload")),
                Err(fault) => errors.push(told(fault.message())),
            }
        }
        match errors.len() {
            0 => Outcome::Met,
            errors_of => Outcome::Failed { errors: errors_of, why: aggregate(errors).unwrap_or_default() },
        }
    }
}

/// The values of an expression's variables.
pub struct Seen<'a> {
    pub object: Option<&'a ObjectMap>,
    pub old: Option<&'a ObjectMap>,
    /// The member `request`, as [`described`] makes it.
    pub request: &'a ObjectMap,
}

impl<'a> Variables<'a> for Seen<'a> {
    fn get(&self, name: &str) -> Option<Result<CelValue<'a>, Fault>> {
        let map = |map: Option<&'a Map>| Ok(map.map_or(CelValue::Null, |map| CelValue::Map(MapValue::Dyn(map))));
        Some(match name {
            "object" => map(self.object),
            "oldObject" => map(self.old),
            "request" => map(Some(self.request)),
            "namespaceObject" => Ok(CelValue::Null),
            _ => return None,
        })
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
    described.insert("userInfo", user(request.user));
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

fn user(user: &User) -> Value {
    let mut info = ObjectMap::new();
    insert_text(&mut info, "username", &user.name);
    insert_text(&mut info, "uid", &user.uid);
    if !user.groups.is_empty() {
        info.insert("groups", json!(user.groups));
    }
    if !user.extra.is_empty() {
        info.insert("extra", json!(user.extra));
    }
    Value::Object(info)
}

/// The options of the operation, as the type prints them.
fn options(request: &Request<'_>, operation: Operation) -> Value {
    let mut printed = ObjectMap::new();
    let kind = match operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    printed.insert("kind", kind.into());
    printed.insert("apiVersion", "meta.k8s.io/v1".into());
    match operation {
        Operation::Delete => request.options.delete().print(&mut printed),
        Operation::Create | Operation::Update => request.options.write().print(&mut printed),
    }
    Value::Object(printed)
}
