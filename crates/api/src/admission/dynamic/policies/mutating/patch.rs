//! The patch that a mutation's expression evaluates to, and its effect on an object
//! (`pkg/admission/plugin/policy/mutating/patch`).

use crate::ObjectMap;
use crate::admission::dynamic::evaluation::{Run, Seen};
use crate::admission::dynamic::policies::policy::{Mutation, Mutations, PatchType, Policy};
use crate::codec::depth::MAX_DEPTH;
use crate::codec::managed;
use crate::error::Error;
use crate::expression::value::{
    Key, LargeIntegers, List, Room, Struct, Value as CelValue, check_type_names, to_json,
};
use crate::json::Node;
use crate::options::strictness::conform;
use crate::patch::PatchError;
use crate::patch::apply::atomics::atomics;
use crate::patch::apply::merge::merge;
use crate::patch::apply::schema::Schema;
use crate::patch::apply::validate::validate;
use crate::patch::json;
use crate::schema::kind::Kind;
use crate::tree::{Map, Value};

/// The cost limit of all expressions of one mutation together.
const BUDGET: u64 = 10_000_000;
/// A patch may be as large as a request.
const ROOM: Room = Room { depth: MAX_DEPTH, size: 3 << 20 };

/// A change that a mutation makes to an object.
pub enum Patch {
    /// Merged into the object.
    Configuration(Map),
    /// A list of operations.
    Operations(Value),
}

/// A reason for which an object cannot be mutated.
pub enum Failure {
    /// An error of the policy, whose `failurePolicy` decides about the request.
    OfPolicy(String),
    /// It ends the request, whatever the policy says about failures.
    OfRequest(Error),
}

impl Patch {
    /// Evaluates a mutation. The error says why it has no patch.
    pub fn of(mutation: &Mutation, policy: &Policy<Mutations>, seen: Seen<'_>) -> Result<Self, String> {
        let mut run = Run::new(seen, &policy.variables, BUDGET);
        let value = run.evaluate(&mutation.expression).map_err(|failure| failure.message().to_owned())?;
        match mutation.patch {
            PatchType::ApplyConfiguration => configuration(&value).map(Self::Configuration),
            PatchType::JsonPatch => operations(&value).map(Self::Operations),
        }
    }

    /// The object with its defaults after the patch. `schema` says how objects of its kind are merged.
    pub fn apply(
        self,
        object: &ObjectMap,
        kind: &Kind,
        schema: Option<&Schema>,
    ) -> Result<ObjectMap, Failure> {
        let mut patched = self.merged(object, kind, schema)?;
        kind.default(&mut patched).map_err(|error| Failure::OfRequest(error.into()))?;
        Ok(patched)
    }

    /// The object after the patch, without the defaults of what is new.
    pub fn merged(
        self,
        object: &ObjectMap,
        kind: &Kind,
        schema: Option<&Schema>,
    ) -> Result<ObjectMap, Failure> {
        match self {
            Self::Configuration(config) => applied(config, object, kind, schema),
            Self::Operations(patch) => operated(&patch, object, kind),
        }
    }
}

fn configuration(value: &CelValue<'_>) -> Result<Map, String> {
    let CelValue::Struct(object) = value else {
        let of = value.type_name();
        return Err(format!("unsupported return type from ApplyConfiguration expression: {of}"));
    };
    check_type_names(object).map_err(|why| format!("type mismatch: {why}"))?;
    if let Some(why) = foreign(value, ROOM.depth) {
        return Err(format!("error applying patch: failed to convert patch object to typed object: {why}"));
    }
    match to_json(value, LargeIntegers::Numbers, ROOM) {
        Ok(Value::Object(config)) => Ok(config),
        Ok(_) => Err("the configuration is no object".to_owned()),
        Err(why) => Err(format!("invalid return type: {}", why.message())),
    }
}

/// The first value that is of none of an object's types: unsigned integers and bytes, with the path to it.
fn foreign(value: &CelValue<'_>, depth: usize) -> Option<String> {
    let below = depth.checked_sub(1)?;
    match value {
        CelValue::Uint(_) => Some(": expected numeric (int or float), got uint64".to_owned()),
        CelValue::Bytes(bytes) => {
            let shown: Vec<String> = bytes.iter().map(|byte| format!("{byte:#x}")).collect();
            let shown = shown.join(", ");
            Some(format!(": expected string, got &value.valueUnstructured{{Value:[]uint8{{{shown}}}}}"))
        }
        CelValue::Optional(Some(inner)) => foreign(inner, below),
        CelValue::List(list) => list
            .iter()
            .enumerate()
            .find_map(|(place, item)| foreign(&item.ok()?, below).map(|why| format!("[{place}]{why}"))),
        CelValue::Map(map) => map.keys().into_iter().find_map(|key| {
            let value = map.find(&key, 0).ok()??;
            foreign(&value, below).map(|why| format!(".{}{why}", key.shown()))
        }),
        CelValue::Struct(object) => object.fields.iter().find_map(|(key, value)| {
            let Key::String(name) = key else { return None };
            foreign(value, below).map(|why| format!(".{}{why}", &**name))
        }),
        _ => None,
    }
}

fn operations(value: &CelValue<'_>) -> Result<Value, String> {
    let CelValue::List(list) = value else {
        return Err("type mismatch: JSONPatchType.expression should evaluate to array".to_owned());
    };
    operations_of(list).map(Value::Array)
}

fn operations_of(list: &List<'_>) -> Result<Vec<Value>, String> {
    let mut operations = Vec::new();
    let mut room = ROOM;
    for operation in list.iter() {
        let operation = operation.map_err(|error| error.message().to_owned())?;
        let CelValue::Struct(operation) = operation else {
            let of = operation.type_name();
            return Err(format!(
                "type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch: got element of {of}"
            ));
        };
        let operation = operation_of(&operation, room)?;
        let size = operation.to_string().len();
        room.size = room.size.checked_sub(size).ok_or_else(|| "the JSON patch is too large".to_owned())?;
        operations.push(operation);
    }
    Ok(operations)
}

fn operation_of(operation: &Struct<'_>, room: Room) -> Result<Value, String> {
    let mut made = Map::new();
    let text = |name| operation.select(name).and_then(|value| value.as_str().map(str::to_owned));
    made.insert("op", text("op").unwrap_or_default().into());
    made.insert("path", text("path").unwrap_or_default().into());
    if let Some(from) = text("from").filter(|from| !from.is_empty()) {
        made.insert("from", from.into());
    }
    if let Some(value) = operation.field("value") {
        if let CelValue::Struct(object) = value {
            check_type_names(object).map_err(|why| format!("type mismatch: {why}"))?;
        }
        let value = to_json(value, LargeIntegers::Texts, room).map_err(|why| {
            let why = why.message();
            format!("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {why}")
        })?;
        made.insert("value", value);
    }
    Ok(Value::Object(made))
}

/// Merges a configuration into an object, as an apply would do it that owns nothing.
fn applied(
    mut config: Map,
    object: &ObjectMap,
    kind: &Kind,
    schema: Option<&Schema>,
) -> Result<ObjectMap, Failure> {
    let unfit = |why: String| Failure::OfPolicy(format!("error applying patch: {why}"));
    let gvk = &kind.gvk;
    let Some(schema) = schema else {
        let message = format!(
            "Resource kind {gvk} not found. There can be a delay between when CustomResourceDefinitions are created and \
             when they are available."
        );
        return Err(Failure::OfRequest(Error::Unavailable { message, retry_after: 0 }));
    };
    config.extend(gvk.claims());
    validate(schema, &config)
        .map_err(|why| unfit(format!("failed to convert patch object to typed object: {why}")))?;
    let atomic = atomics(schema, &config);
    if !atomic.is_empty() {
        let paths = atomic.join(", ");
        return Err(unfit(format!(
            "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {paths}"
        )));
    }
    let mut merged = merge(schema, object, &config);
    if conform(kind, &mut merged).is_err() {
        let converted = kind.convert(&mut merged).and_then(|()| conform(kind, &mut merged));
        converted.map_err(|why| {
            Failure::OfPolicy(format!("unable to convert unstructured object to {gvk}: {why}"))
        })?;
    }
    Ok(merged)
}

/// Applies the operations of a JSON patch. If a `test` of it fails, the object stays as it is.
fn operated(patch: &Value, object: &ObjectMap, kind: &Kind) -> Result<ObjectMap, Failure> {
    let internal = |why: String| Failure::OfRequest(Error::Internal(why));
    let before = Value::Object(managed::opened(object));
    let after = match json::apply(before.clone(), patch) {
        Ok(after) => after,
        Err(PatchError::TestFailed(_)) => return Ok(object.clone()),
        Err(error) => return Err(Failure::OfPolicy(format!("JSON Patch: {error}"))),
    };
    let problems = || match kind.go() {
        Some(_) => kind.problems(&Node::patched(&after, &before)),
        None => Vec::new(),
    };
    let Value::Object(mut patched) = after.clone() else {
        return Err(internal("the patched object is none".to_owned()));
    };
    if kind.go().is_some() {
        // Built-in kinds are decoded as what they were if they do not say what they are.
        for (member, own) in kind.gvk.claims() {
            if patched.get(&member).is_none_or(|said| said.is_null() || *said == "") {
                patched.insert(member, own);
            }
        }
    }
    if !kind.gvk.is_claimed_by(&patched) {
        return Err(internal(format!("a policy may not change the kind or apiVersion of a {}", kind.gvk)));
    }
    managed::close(&mut patched);
    let fit = conform(kind, &mut patched).map_err(internal)?;
    if fit.unknown && kind.go().is_some() {
        return Err(internal(format!("strict decoding error: {}", problems().join(", "))));
    }
    Ok(patched)
}

#[cfg(test)]
mod tests;
