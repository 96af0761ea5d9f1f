//! Upstream's defaults: what is filled into an object, including what upstream's conversions to the internal version
//! and back leave in it.
//!
//! Constant defaults come from the types (`proto/`), all others from rules by struct, which are the files here. A rule
//! gets an object that conforms to its type (`schema/types/conform.rs`): members that are zero and no pointers
//! are absent. It runs before the rules of structs below its own, as in upstream's generated `SetObjectDefaults_…`.

use super::{Cardinality, FieldKind, Format, Message, MessageId, Types};
use crate::fields::ObjectMap;
use crate::tree::{Text, Value};

mod admission;
mod autoscaling;
mod core;
mod flowcontrol;
mod image;
mod networking;
mod pod;
mod rules;
mod scheduling;
mod service;
mod set;
mod storage;
mod workloads;

/// The version of these defaults. Stored values name the level that they have been given, so that values of another
/// level get the present defaults when they are read. Raise it whenever defaulting of any object changes.
pub const LEVEL: u8 = 3;

/// How many levels below its own struct a rule changes.
const RULE_DEPTH: usize = 3;

/// A rule changes an object of its struct in place.
type Rule = fn(&mut ObjectMap);

/// The steps of defaulting for each message; `None` if there is nothing to do in it and below it.
pub(super) struct Plan(Vec<Option<Step>>);

struct Step {
    /// The rules of the struct and of its inline structs.
    rules: Vec<Rule>,
    /// Members with constant defaults, and whether a zero counts as a value.
    constants: Vec<(Box<str>, Value, Zero)>,
    /// Members whose structs have steps of their own.
    below: Vec<(Box<str>, Cardinality, MessageId)>,
    /// Members with amounts of resources, which are rounded.
    resources: Vec<Box<str>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Zero {
    /// For pointers: a zero is a value.
    Said,
    Unsaid,
}

impl Plan {
    pub fn of(types: &Types) -> Self {
        let mut busy: Vec<bool> = types.messages().map(|(_, message)| own_work(types, message)).collect();
        for (_, message) in types.messages().filter(|(_, message)| !rules_of(types, message).is_empty()) {
            touch(types, message, RULE_DEPTH, &mut busy);
        }
        // A message with work below it has work itself. Types may be recursive, so the search is repeated until it
        // finds nothing new.
        while let Some(more) = types.messages().position(|(id, message)| {
            !busy[id.index()] && children(types, message).any(|(_, _, child)| busy[child.index()])
        }) {
            busy[more] = true;
        }
        let steps = types.messages().zip(&busy);
        let step = |((_, message), has_work): ((MessageId, &Message), &bool)| {
            has_work.then(|| Step {
                rules: rules_of(types, message),
                constants: constants(types, message),
                below: children(types, message).filter(|(_, _, child)| busy[child.index()]).collect(),
                resources: resources(types, message),
            })
        };
        Self(steps.map(step).collect())
    }

    /// Sets the defaults in an object of a message, in place and in the order of its struct.
    pub fn apply(&self, types: &Types, id: MessageId, object: &mut ObjectMap) {
        let Some(step) = &self.0[id.index()] else { return };
        for rule in &step.rules {
            rule(object);
        }
        for (name, value, zero) in &step.constants {
            let said = match zero {
                Zero::Said => !set::is_absent(object, name),
                Zero::Unsaid => !set::is_zero(object, name),
            };
            if !said {
                object.insert(name.to_string(), value.clone());
            }
        }
        for name in &step.resources {
            if let Some(Value::Object(amounts)) = object.get_mut(name) {
                set::round_up(amounts);
            }
        }
        for (name, cardinality, child) in &step.below {
            let Some(value) = object.get_mut(name) else { continue };
            match (cardinality, value) {
                (Cardinality::Single, Value::Object(value)) => self.apply(types, *child, value),
                (Cardinality::List, Value::Array(items)) => {
                    items
                        .iter_mut()
                        .filter_map(Value::as_object_mut)
                        .for_each(|item| self.apply(types, *child, item));
                }
                (Cardinality::Map, Value::Object(entries)) => {
                    let values = entries.values_mut().filter_map(Value::as_object_mut);
                    values.for_each(|value| self.apply(types, *child, value));
                }
                _ => {}
            }
        }
        in_order(types, types.message(id), object);
    }
}

fn own_work(types: &Types, message: &Message) -> bool {
    !rules_of(types, message).is_empty()
        || !constants(types, message).is_empty()
        || !resources(types, message).is_empty()
}

fn rules_of(types: &Types, message: &Message) -> Vec<Rule> {
    let lenders =
        message.members.iter().flat_map(|member| member.lenders.iter().map(|id| types.message(*id)));
    let mut rules: Vec<Rule> = rules::of(message.package, message.name).into_iter().collect();
    let mut known = Vec::new();
    for lender in lenders {
        if !known.contains(&&lender.name) {
            known.push(&lender.name);
            rules.extend(rules::of(lender.package, lender.name));
        }
    }
    rules
}

/// Marks structs to which a rule above them may add members: their members must be reordered.
fn touch(types: &Types, message: &Message, depth: usize, touched: &mut [bool]) {
    if depth == 0 {
        return;
    }
    for (_, _, child) in children(types, message) {
        if types.message(child).format == Format::Object {
            touched[child.index()] = true;
            touch(types, types.message(child), depth - 1, touched);
        }
    }
}

fn constants(types: &Types, message: &Message) -> Vec<(Box<str>, Value, Zero)> {
    let fields = message.members.iter().map(|member| types.field(member));
    let constant = |(name, text, pointer): (&str, &str, bool)| {
        let value: Value = serde_json::from_str(text).ok()?;
        let zero = if pointer { Zero::Said } else { Zero::Unsaid };
        let changes = pointer || !set::is_zero_value(&value);
        changes.then(|| (name.into(), value, zero))
    };
    fields.filter_map(|field| constant((&*field.json_name, field.default?, field.pointer))).collect()
}

fn children<'a>(
    types: &'a Types,
    message: &'a Message,
) -> impl Iterator<Item = (Box<str>, Cardinality, MessageId)> + 'a {
    let fields = message.members.iter().map(|member| types.field(member));
    fields.filter_map(|field| match field.kind {
        FieldKind::Message(id) => Some(((&*field.json_name).into(), field.cardinality, id)),
        _ => None,
    })
}

/// The members whose amounts upstream rounds: those of type `ResourceList`, which are the maps of quantities in the
/// core group.
fn resources(types: &Types, message: &Message) -> Vec<Box<str>> {
    if message.package != "k8s.io.api.core.v1" {
        return Vec::new();
    }
    let quantities = children(types, message).filter(|(_, cardinality, id)| {
        *cardinality == Cardinality::Map && types.message(*id).format == Format::Quantity
    });
    quantities.map(|(name, ..)| name).collect()
}

/// Reorders the members like the struct's, if new ones were appended.
fn in_order(types: &Types, message: &Message, object: &mut ObjectMap) {
    let place = |name: &str, from: usize| match name {
        "kind" if message.has_claims() => 0,
        "apiVersion" if message.has_claims() => 1,
        name => message.find(types, name, from).map_or(usize::MAX, |index| index + 2),
    };
    let mut last: usize = 0;
    let ordered = object.keys().all(|name| {
        let place = place(name, last.saturating_sub(1));
        let follows = place >= last;
        last = place;
        follows
    });
    if ordered {
        return;
    }
    let mut members: Vec<(usize, Text, Value)> =
        std::mem::take(object).into_iter().map(|(name, value)| (place(&name, 0), name, value)).collect();
    members.sort_by_key(|(place, ..)| *place);
    *object = members.into_iter().map(|(_, name, value)| (name, value)).collect();
}
