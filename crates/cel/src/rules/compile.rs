//! From a schema to programs.

use rowplane_values::tree::Value;
use smol_str::SmolStr;

use super::{FieldPath, Node, Rule, Rules};
use crate::decl::{Decl, Kind, of_schema};
use crate::environment::Environment;
use crate::reserved::escape;
use crate::types::Type;
use crate::{Refusal, check, program};

const SELF: &str = "self";
const OLD_SELF: &str = "oldSelf";
/// Upstream makes a new name each time.
const NAME: &str = "selfType";
/// No schema that is stored nests deeper.
const DEEPEST: usize = 256;

impl Rules {
    /// The rules in the schema of a version, which validation has taken; `None` if there are none. Rules that do not compile
    /// are told when they would run.
    pub fn compile(schema: &Value) -> Option<Self> {
        if !has_rules(schema, 0) {
            return None;
        }
        let root = node(schema, schema, true, 0);
        Some(Self { root }).filter(|rules| !rules.is_empty())
    }
}

fn below<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema.get(name).filter(|inner| inner.is_object())
}

fn text<'s>(schema: &'s Value, name: &str) -> &'s str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

fn is_embedded(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-embedded-resource")
}

fn list<'s>(schema: &'s Value, name: &str) -> impl Iterator<Item = &'s Value> {
    schema.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn has_rules(schema: &Value, depth: usize) -> bool {
    let inner = |schema: &Value| has_rules(schema, depth + 1);
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    depth < DEEPEST
        && (list(schema, "x-kubernetes-validations").next().is_some()
            || below(schema, "items").is_some_and(inner)
            || below(schema, "additionalProperties").is_some_and(inner)
            || properties.into_iter().any(|(_, property)| inner(property))
            || list(schema, "allOf").any(inner))
}

/// The rules of a schema for the values that `shape` declares: the schema itself, or the one that it refines within `allOf`.
fn node(schema: &Value, shape: &Value, root: bool, depth: usize) -> Node {
    let decl = of_schema(shape, root, NAME);
    let (rules, failed) = rules(schema, shape, &decl);
    let inner = |schema: &Value, shape: &Value| {
        let node = node(schema, shape, is_embedded(shape), depth + 1);
        (depth < DEEPEST && !node.is_empty()).then_some(node)
    };
    let child = |name: &str| inner(below(schema, name)?, below(shape, name)?).map(Box::new);
    let mut properties: Vec<(SmolStr, Node)> = Vec::new();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Some(shape) = shape.get("properties").and_then(|all| all.get(name)) else { continue };
        let own = root && ["apiVersion", "kind", "metadata"].contains(&name.as_str());
        if own || !is_spoken_of(&decl, name, shape) {
            continue;
        }
        properties.extend(inner(property, shape).map(|node| (name.clone(), node)));
    }
    properties.sort_by(|one, other| one.0.cmp(&other.0));
    let all_of = list(schema, "allOf").map(|part| self::node(part, shape, root, depth + 1));
    let all_of = all_of.filter(|node| !node.is_empty()).collect();
    let by_key = text(shape, "x-kubernetes-list-type") == "map";
    let list_keys = by_key.then(|| {
        list(shape, "x-kubernetes-list-map-keys").filter_map(Value::as_str).map(Into::into).collect()
    });
    Node {
        rules,
        failed,
        type_name: text(shape, "type").into(),
        items: child("items"),
        additional: child("additionalProperties"),
        properties,
        all_of,
        list_keys,
        decl,
    }
}

/// Fields of types that expressions cannot speak of are left out, unless their names cannot be spelled either.
fn is_spoken_of(decl: &Decl, name: &str, shape: &Value) -> bool {
    let Kind::Object(object) = &decl.kind else { return false };
    match escape(name) {
        Some(escaped) => object.field(&escaped, 0).is_some_and(|field| field.decl.cel_type().is_some()),
        None => of_schema(shape, is_embedded(shape), NAME).cel_type().is_some(),
    }
}

fn rules(schema: &Value, shape: &Value, decl: &Decl) -> (Vec<Rule>, Option<String>) {
    let mut given = list(schema, "x-kubernetes-validations").peekable();
    if given.peek().is_none() {
        return (Vec::new(), None);
    }
    let Some(of) = decl.cel_type() else {
        return (Vec::new(), Some("failed to convert to declType for CEL validation rules".to_owned()));
    };
    let environment = decl.declare(Environment::default().with_variable(SELF, of.clone()));
    let plain = environment.clone().with_variable(OLD_SELF, of.clone());
    let optional = environment.with_variable(OLD_SELF, Type::optional(of));
    let rules = given.filter(|rule| !text(rule, "rule").trim().is_empty());
    let compiled = rules.map(|rule| {
        let optional_old = flag(rule, "optionalOldSelf");
        compile(rule, shape, if optional_old { &optional } else { &plain }, optional_old)
    });
    (compiled.collect(), None)
}

fn compile(rule: &Value, shape: &Value, environment: &Environment, optional_old: bool) -> Rule {
    let mut uses_old = false;
    let expression = text(rule, "rule");
    let compiled = match check(expression, environment) {
        Err(Refusal::Wrong(why)) => Err(format!("compilation failed: {why}")),
        Err(Refusal::NoStack) => Err("there is no stack for a rule so deep".to_owned()),
        Ok(checked) if checked.result != Type::Bool => {
            Err("cel expression must evaluate to a bool".to_owned())
        }
        Ok(checked) => {
            uses_old = checked.uses.contains(OLD_SELF);
            program(&checked, environment).map_err(|why| format!("program instantiation failed: {why}"))
        }
    };
    let message = text(rule, "messageExpression");
    let message_program = (!message.is_empty() && compiled.is_ok()).then(|| {
        let checked = check(message, environment).ok().filter(|checked| checked.result == Type::String)?;
        program(&checked, environment).ok()
    });
    let path = text(rule, "fieldPath");
    let field_path = if path.is_empty() { None } else { FieldPath::parse(path, shape).ok() };
    Rule {
        program: compiled,
        text: expression.trim().to_owned(),
        message: text(rule, "message").trim().to_owned(),
        message_program: message_program.flatten(),
        reason: text(rule, "reason").into(),
        field_path: field_path.map(|path| path.0).unwrap_or_default(),
        optional_old,
        uses_old,
    }
}
