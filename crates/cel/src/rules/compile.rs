//! From a schema to its rules.

use std::sync::{Arc, OnceLock};

use rowplane_values::regexp::Room;
use rowplane_values::tree::Value;
use smol_str::SmolStr;

use super::scope::{NAME, RuleProgram, RuleScope};
use super::{FieldPath, Node, Rule, Rules, flag, text};
use crate::decl::{Decl, Kind, of_schema};
use crate::reserved::escape;

/// No schema that is stored nests deeper.
const DEEPEST: usize = 256;

impl Rules {
    /// The rules in a schema, which validation has taken; `None` if there are none. `root` is the root of a resource, here
    /// or embedded. Rules that do not compile are told when they would run.
    pub fn compile(schema: &Value, root: bool) -> Option<Self> {
        if !has_rules(schema, 0) {
            return None;
        }
        let root = node(schema, schema, of_schema(schema, root, NAME), &Arc::default(), 0);
        Some(Self { root }).filter(|rules| !rules.is_empty())
    }
}

/// Whether there are rules in a schema.
pub fn has_any(schema: &Value) -> bool {
    has_rules(schema, 0)
}

fn below<'s>(schema: &'s Value, name: &str) -> Option<&'s Value> {
    schema.get(name).filter(|inner| inner.is_object())
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
fn node(schema: &Value, shape: &Value, decl: Decl, room: &Arc<Room>, depth: usize) -> Node {
    let inner = |schema: &Value, shape: &Value, decl: Decl| {
        let node = (depth < DEEPEST).then(|| node(schema, shape, decl, room, depth + 1));
        node.filter(|node| !node.is_empty())
    };
    let child = |name: &str| {
        let element = decl.element().cloned().unwrap_or(Decl::of(Kind::Preserved));
        inner(below(schema, name)?, below(shape, name)?, element).map(Box::new)
    };
    let mut properties: Vec<(SmolStr, Node)> = Vec::new();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let Some(shape) = shape.get("properties").and_then(|all| all.get(name)) else { continue };
        let Some(decl) = declared(&decl, name, shape) else { continue };
        properties.extend(inner(property, shape, decl).map(|node| (name.clone(), node)));
    }
    properties.sort_by(|one, other| one.0.cmp(&other.0));
    let all_of = list(schema, "allOf").filter_map(|part| inner(part, shape, decl.clone())).collect();
    let by_key = text(shape, "x-kubernetes-list-type") == "map";
    let list_keys = by_key.then(|| {
        list(shape, "x-kubernetes-list-map-keys").filter_map(Value::as_str).map(Into::into).collect()
    });
    Node {
        rules: rules(schema, shape),
        programs: OnceLock::new(),
        room: room.clone(),
        type_name: text(shape, "type").into(),
        items: child("items"),
        additional: child("additionalProperties"),
        properties,
        all_of,
        list_keys,
        decl,
    }
}

/// The declaration of a property; `None` if expressions cannot access its values. A property whose name no expression can
/// spell is declared by its own schema.
fn declared(decl: &Decl, name: &str, shape: &Value) -> Option<Decl> {
    match escape(name) {
        Some(_) => decl.member(name).cloned(),
        None => {
            let embedded = flag(shape, "x-kubernetes-embedded-resource");
            Some(of_schema(shape, embedded, NAME)).filter(|decl| decl.cel_type().is_some())
        }
    }
}

fn rules(schema: &Value, shape: &Value) -> Vec<Rule> {
    let rule = |rule: &Value| {
        let path = text(rule, "fieldPath");
        let field_path = if path.is_empty() { None } else { FieldPath::parse(path, shape).ok() };
        Rule {
            given: rule.clone(),
            text: text(rule, "rule").trim().to_owned(),
            message: Some(text(rule, "message"))
                .filter(|text| !text.is_empty())
                .map(|text| text.trim().to_owned()),
            reason: text(rule, "reason").into(),
            field_path: field_path.map(|path| path.0).unwrap_or_default(),
            optional_old: flag(rule, "optionalOldSelf"),
        }
    };
    list(schema, "x-kubernetes-validations").map(rule).collect()
}

impl Node {
    pub(super) fn prepare(&self) {
        if !self.rules.is_empty() {
            self.programs();
        }
        let properties = self.properties.iter().map(|(_, property)| property);
        let parts = self.items.as_deref().into_iter().chain(self.additional.as_deref());
        parts.chain(properties).chain(&self.all_of).for_each(Self::prepare);
    }

    /// The programs of the rules, made when the first value comes; `None` if expressions cannot speak of the values.
    pub(super) fn programs(&self) -> Option<&[RuleProgram]> {
        let compile = || {
            let scope = RuleScope::new(&self.decl)?.with_room(&self.room);
            Some(self.rules.iter().map(|rule| scope.compile(&rule.given)).collect())
        };
        self.programs.get_or_init(compile).as_deref()
    }
}
