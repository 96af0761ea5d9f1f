//! Rules for the defaults in a schema: the schema has to accept them, and to know all their members.

use std::cell::Cell;
use std::sync::Arc;

use rowplane_cel::rules::{
    self, Findings, MOST_RUNS, OBJECT_BUDGET, Rules, RulesAt, Violation, ViolationKind,
};

use super::coerce::coerce_resource;
use super::outcome::shown;
use super::place::ValuePath;
use super::prune::Pruner;
use super::{OBJECT_MEMBERS, SchemaNode, Schemas, Structural};
use crate::causes::{Cause, CauseReason, Causes, aggregate};
use crate::schema::types::Types;
use crate::tree::{Map, Text, Value, work};

/// The rules for the defaults in a definition.
pub struct DefaultRules<'a> {
    pub types: &'a Arc<Types>,
    /// Whether defaults may hold what their schema does not know, as those of the stored definition do.
    pub may_be_unpruned: bool,
    /// Whether the schema's rules are asked about its defaults.
    pub asks_rules: bool,
    /// The check of an embedded object, at a path; it adds the errors to the causes.
    pub resource: fn(&str, &Map, &mut Causes),
}

/// The findings about the defaults in a schema.
#[derive(Default)]
pub struct DefaultFindings {
    pub causes: Causes,
    /// Whether there are rules that were not asked.
    pub passed_over: bool,
    /// Whether the system had no thread for a rule.
    pub no_stack: bool,
}

impl DefaultRules<'_> {
    /// The errors of the defaults in a structural schema that stands at a path. Defaults in additional properties are not
    /// looked at, as upstream does not look at them either.
    pub fn find(&self, schema: &Value, path: &str) -> DefaultFindings {
        let mut found = DefaultFindings::default();
        let Some(members) = schema.as_object().filter(|schema| schema.iter().any(holds_default)) else {
            return found;
        };
        // What cannot be read is told by the rules of schemas.
        let Ok(shape) = Schemas::new(self.types.clone()).read(members) else { return found };
        let compiled = if self.asks_rules { Rules::compile(schema, true) } else { None };
        found.passed_over = !self.asks_rules && rules::has_any(schema);
        let rules = match &compiled {
            Some(compiled) => RulesHere::Compiled(compiled.root()),
            None if self.asks_rules && rules::has_any(schema) => RulesHere::Below,
            None => RulesHere::None,
        };
        let walk = DefaultWalk {
            rules: self,
            shape: &shape,
            budget: Cell::new(OBJECT_BUDGET),
            runs: Cell::new(MOST_RUNS),
            no_stack: Cell::new(false),
        };
        let place = Surroundings { resource: &shape.root, steps: &[], in_metadata: false, rules };
        walk.node(members, &shape.root, place, &ValuePath::root(path), &mut found.causes);
        found.no_stack = walk.no_stack.get();
        found
    }

    /// Whether a default holds what its schema does not know.
    pub fn are_unpruned(types: &Arc<Types>, schema: &Value) -> bool {
        let of_none = |_: &str, _: &Map, _: &mut Causes| {};
        let rules = DefaultRules { types, may_be_unpruned: false, asks_rules: false, resource: of_none };
        let told = rules.find(schema, "").causes.into_vec();
        told.iter().any(|cause| cause.message.ends_with(UNPRUNED))
    }
}

const UNPRUNED: &str = "must not have unknown fields";

fn holds_default((name, value): (&Text, &Value)) -> bool {
    match value {
        Value::Null => false,
        _ if name == "default" => true,
        Value::Object(members) => members.iter().any(holds_default),
        Value::Array(items) => items.iter().any(|item| holds_default((name, item))),
        _ => false,
    }
}

/// The place of a schema in the innermost object that has metadata.
#[derive(Clone, Copy)]
struct Surroundings<'s> {
    resource: &'s SchemaNode,
    steps: &'s [Step<'s>],
    /// Whether the schema is that of metadata, of a kind or of an apiVersion, or stands in one.
    in_metadata: bool,
    rules: RulesHere<'s>,
}

/// The rules for the values of a schema.
#[derive(Clone, Copy)]
enum RulesHere<'s> {
    None,
    Compiled(RulesAt<'s>),
    /// The schema has rules further down. The compiled rules around do not reach them, since expressions cannot name the
    /// fields in between.
    Below,
}

impl<'s> RulesHere<'s> {
    /// The rules of a schema below: from the compiled rules around it, which `known` looks up, or else compiled for this
    /// schema alone and kept in `apart`. Upstream compiles the rules of each default separately.
    fn below(
        self,
        known: impl FnOnce(RulesAt<'s>) -> Option<RulesAt<'s>>,
        schema: &Value,
        node: &SchemaNode,
        apart: &'s mut Option<Rules>,
    ) -> Self {
        let found = match self {
            Self::None => return Self::None,
            Self::Compiled(around) => known(around),
            Self::Below => None,
        };
        if let Some(found) = found {
            return Self::Compiled(found);
        }
        *apart = Rules::compile(schema, node.embedded);
        match apart {
            Some(apart) => Self::Compiled(apart.root()),
            None if rules::has_any(schema) => Self::Below,
            None => Self::None,
        }
    }
}

#[derive(Clone, Copy)]
enum Step<'s> {
    Member(&'s str),
    Item,
}

struct DefaultWalk<'w> {
    rules: &'w DefaultRules<'w>,
    shape: &'w Structural,
    /// The budget that is left for all rules together.
    budget: Cell<i64>,
    /// How many rules may still be asked.
    runs: Cell<u64>,
    no_stack: Cell<bool>,
}

impl DefaultWalk<'_> {
    fn node(
        &self,
        schema: &Map,
        node: &SchemaNode,
        around: Surroundings<'_>,
        at: &ValuePath<'_>,
        causes: &mut Causes,
    ) {
        work::count(1);
        if self.budget.get() < 0 {
            return;
        }
        let around = match node.embedded {
            true => Surroundings { resource: node, steps: &[], in_metadata: false, ..around },
            false => around,
        };
        if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
            let path = at.property("default").to_string();
            match around.in_metadata {
                true => self.in_metadata(node, default, around, &path, causes),
                false => self.plain(node, default, around, &path, causes),
            }
            if self.budget.get() < 0 {
                return;
            }
        }
        let items = schema.get("items").and_then(|schema| Some((schema, schema.as_object()?)));
        if let (Some((schema, items)), Some(of_item)) = (items, &node.items) {
            let steps = [around.steps, &[Step::Item]].concat();
            let mut apart = None;
            let rules = around.rules.below(RulesAt::items, schema, of_item, &mut apart);
            let around = Surroundings { steps: &steps, rules, ..around };
            self.node(items, of_item, around, &at.property("items"), causes);
        }
        let properties = at.property("properties");
        for (name, of_property) in node.properties.iter() {
            let property = schema.get("properties").and_then(|properties| properties.get(name));
            let Some((schema, members)) = property.and_then(|schema| Some((schema, schema.as_object()?)))
            else {
                continue;
            };
            let steps = [around.steps, &[Step::Member(name)]].concat();
            let in_metadata = around.in_metadata || node.embedded && OBJECT_MEMBERS.contains(&name.as_str());
            // Metadata is what its own schema says.
            let is_known = in_metadata == around.in_metadata;
            let mut apart = None;
            let rules = around.rules.below(
                |around| if is_known { around.property(name) } else { None },
                schema,
                of_property,
                &mut apart,
            );
            let around = Surroundings { steps: &steps, in_metadata, rules, ..around };
            self.node(members, of_property, around, &properties.key(name), causes);
        }
    }

    fn plain(
        &self,
        node: &SchemaNode,
        default: &Value,
        around: Surroundings<'_>,
        path: &str,
        causes: &mut Causes,
    ) {
        let mut coerced = default.clone();
        let misfit = coerce_resource(node, &mut coerced, &ValuePath::root(path), &self.shape.metadata);
        if !self.rules.may_be_unpruned {
            let mut pruned = default.clone();
            Pruner::default().value(Some(node), &mut pruned, node.unknown_members());
            if pruned != *default {
                // Upstream prints it after its metadata was changed.
                causes.push(Cause::invalid(path, shown(&coerced), UNPRUNED));
            }
        }
        if let Err(cause) = misfit {
            return causes.push(cause);
        }
        let mut found = Causes::default();
        node.embedded_in(&coerced, &ValuePath::root(path), &mut |place, object| {
            (self.rules.resource)(&place.to_string(), object, &mut found);
        });
        if found.is_empty() {
            found = self.values(node, &coerced, around, path);
        }
        causes.append(found);
    }

    /// The errors of a default, found by the schema or else by its rules.
    fn values(&self, node: &SchemaNode, default: &Value, around: Surroundings<'_>, path: &str) -> Causes {
        let mut found = node.validate_default(default, path);
        if let RulesHere::Compiled(rules) = around.rules
            && found.is_empty()
        {
            self.ask(rules, default, path, &mut found);
        }
        found
    }

    /// Asks the rules about a default as about a value that does not change, and as about a new one.
    fn ask(&self, rules: RulesAt<'_>, default: &Value, path: &str, causes: &mut Causes) {
        let budget = self.budget.get();
        let mut left = budget;
        for old in [Some(default), None] {
            let found = rules.validate(path, default, old, (budget, self.runs.get()));
            self.runs.set(found.runs);
            left = left.min(found.budget);
            self.no_stack.set(self.no_stack.get() || found.no_stack);
            let is_wrong = !found.violations.is_empty();
            causes.append(violation_causes(found));
            if is_wrong {
                break;
            }
        }
        self.budget.set(left);
    }

    /// A default of metadata is looked at in an object that has nothing else.
    fn in_metadata(
        &self,
        node: &SchemaNode,
        default: &Value,
        around: Surroundings<'_>,
        path: &str,
        causes: &mut Causes,
    ) {
        let mut object = surrounded(default, around.steps);
        let refuse = |why: String, causes: &mut Causes| {
            let why = format!("must result in valid metadata: {why}");
            causes.push(Cause::invalid(path, shown(default), &why));
        };
        if let Err(cause) =
            coerce_resource(around.resource, &mut object, &ValuePath::ROOT, &self.shape.metadata)
        {
            return refuse(format!("{}: {}", cause.field, cause.message), causes);
        }
        let mut found = Causes::default();
        around.resource.embedded_in(&object, &ValuePath::ROOT, &mut |place, object| {
            (self.rules.resource)(&place.to_string(), object, &mut found);
        });
        match found.is_empty() {
            true => causes.append(self.values(node, default, around, path)),
            false => refuse(aggregate(&found.into_vec()), causes),
        }
    }
}

/// The rules that are not kept, as causes.
pub fn violation_causes(found: Findings) -> Causes {
    let mut causes = Causes::default();
    causes.extend(found.violations.into_iter().map(cause));
    causes.add_untold(found.untold);
    causes
}

fn cause(violation: Violation) -> Cause {
    let reason = match violation.kind {
        ViolationKind::Invalid => CauseReason::Invalid,
        ViolationKind::Required => CauseReason::Required,
        ViolationKind::Forbidden => CauseReason::Forbidden,
        ViolationKind::Duplicate => CauseReason::Duplicate,
    };
    Cause::new(reason, violation.field, violation.message)
}

/// An object in which a value stands.
fn surrounded(value: &Value, steps: &[Step<'_>]) -> Value {
    let mut object = steps.iter().rev().fold(value.clone(), |value, step| match step {
        Step::Item => Value::Array(vec![value]),
        Step::Member(name) => {
            let mut object = Map::with_capacity(3);
            object.push((*name).into(), value);
            object.into()
        }
    });
    if let Some(object) = object.as_object_mut() {
        object.entry("kind").or_insert("Validation".into());
        object.entry("apiVersion").or_insert("validation/v1".into());
    }
    object
}
