//! `metadata.managedFields` of objects that are written: which manager has set which fields.
//!
//! The rules of sets of fields are in [`crate::patch::apply`]. This module applies them to the versions of a resource,
//! to the parts of an object that a request may write, and to managers that come with a body. All objects are
//! [closed](crate::codec::managed).

use std::borrow::Cow;

use crate::causes::{Cause, CauseReason};
use crate::conversion::managers::Conversions;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::metrics::Comparison;
use crate::patch::apply::conflict::{self, Conflict};
use crate::patch::apply::filter::Filter;
use crate::patch::apply::managers::{Acting, Identity, Managers, Operation, is_reset};
use crate::patch::apply::ownership::{self, Update, Versions};
use crate::patch::apply::schema::Schema;
use crate::resource::Resource;
use crate::schema::names::Gvk;
use crate::tree::Value;
use crate::{ObjectMap, json, metadata, metadata_mut};

pub mod action;
pub mod apply;
pub(super) mod scale;

/// The manager of the fields that an object had before its managers were tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";
const FIELD: &str = "managedFields";

/// The manager that makes a write other than an apply, and the part of the object that it writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracking<'a> {
    pub manager: &'a str,
    pub part: Part,
    /// The time of the write, as `creationTimestamp` has it.
    pub now: &'a str,
}

/// The facts about a resource, restricted to one of its parts, that the rules of field sets need.
pub(super) struct Kind<'a> {
    resource: &'a Resource,
    filter: Filter,
    /// The conversions of the objects by a webhook, if one converts them.
    conversions: Option<&'a Conversions>,
}

/// An error if the managers of an object are not valid.
pub(super) fn check_managers(managers: Option<&Value>) -> Result<(), String> {
    let managers = managers.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Managers::decode(managers).map(drop).map_err(|why| why.to_string())
}

impl<'a> Kind<'a> {
    pub fn new(resource: &'a Resource, part: Part) -> Self {
        Self { resource, filter: resource.behavior.strategy.filter(part), conversions: None }
    }

    /// The kind of an object that was found.
    pub fn seen(self, conversions: Option<&'a Conversions>) -> Self {
        Self { conversions, ..self }
    }

    /// The object to which a create is compared: the zero value of the kind.
    pub fn zero(&self) -> &'a ObjectMap {
        self.resource.zero()
    }
}

/// A kind that has one version, whichever resource it belongs to.
struct OneVersion {
    gvk: Gvk,
    schema: Option<Schema>,
    filter: Filter,
}

impl Versions for OneVersion {
    fn schema(&self, api_version: &str) -> Option<&Schema> {
        self.schema.as_ref().filter(|_| self.gvk.api_version() == api_version)
    }

    fn convert(&self, object: &ObjectMap, _: &str) -> ObjectMap {
        object.clone()
    }

    fn filter(&self) -> &Filter {
        &self.filter
    }
}

impl Versions for Kind<'_> {
    fn schema(&self, api_version: &str) -> Option<&Schema> {
        self.resource.schema(api_version)
    }

    fn convert(&self, object: &ObjectMap, api_version: &str) -> ObjectMap {
        match self.conversions {
            Some(conversions) => conversions.get(object, api_version),
            None => self.resource.to_version(object.clone(), api_version),
        }
    }

    fn filter(&self) -> &Filter {
        &self.filter
    }
}

/// The manager of an update, as the rules of field sets identify it.
pub(super) fn updater(resource: &Resource, tracking: Tracking<'_>) -> Acting {
    acting(resource, tracking, Operation::Update)
}

pub(super) fn acting(resource: &Resource, tracking: Tracking<'_>, operation: Operation) -> Acting {
    let Tracking { manager, part, now } = tracking;
    let identity = Identity {
        name: manager.to_owned(),
        operation,
        api_version: resource.definition.api_version().to_string(),
        subresource: part.subresource().to_owned(),
    };
    Acting { identity, now: now.to_owned() }
}

/// The entries of `managedFields`; `None` if the object has no such list.
pub(super) fn entries(object: &ObjectMap) -> Option<&[Value]> {
    metadata(object)?.get(FIELD)?.as_array().map(Vec::as_slice)
}

pub(super) fn put(object: &mut ObjectMap, entries: Option<Value>) {
    let metadata = metadata_mut(object);
    match entries {
        Some(entries) => metadata.insert(FIELD, entries),
        None => metadata.shift_remove(FIELD),
    };
}

/// Gives a new object its first manager.
pub(super) fn track_create(resource: &Resource, object: &mut ObjectMap, manager: &str, now: &str) {
    let tracking = Tracking { manager, part: Part::Main, now };
    let kind = Kind::new(resource, Part::Main);
    let sent = entries(object).and_then(|entries| Managers::decode(entries).ok()).unwrap_or_default();
    put(object, None);
    let acting = updater(resource, tracking);
    let encoded = match sent.0.is_empty() {
        true => ownership::encoded_first(&kind, kind.zero(), object, &acting),
        false => ownership::update(&kind, kind.zero(), object, &sent, &acting).unwrap_or(sent).encode(),
    };
    put(object, encoded);
}

/// Computes the managers after `new` replaces `old`. If `old` has no managers, none are tracked.
pub(super) fn track_update(
    resource: &Resource,
    conversions: Option<&Conversions>,
    old: &ObjectMap,
    new: &mut ObjectMap,
    tracking: Tracking<'_>,
) {
    let live = entries(old).unwrap_or_default();
    let base: Cow<'_, [Value]> = match entries(new) {
        Some(sent) if tracking.part == Part::Main && is_reset(sent) => Cow::Borrowed(&[]),
        Some(sent) if tracking.part == Part::Main && sent != live => match Managers::decode(sent) {
            Ok(managers) if !managers.0.is_empty() => Cow::Owned(sent.to_vec()),
            _ => Cow::Borrowed(live),
        },
        _ => Cow::Borrowed(live),
    };
    if base.is_empty() {
        return put(new, None);
    }
    let kind = Kind::new(resource, tracking.part).seen(conversions);
    let acting = updater(resource, tracking);
    // Only entries read from the store are known to be canonical.
    let stored = matches!(base, Cow::Borrowed(_));
    let encoded = match Update::new(&kind, old, new, &acting) {
        Some(update) if update.is_untraceable() => (!live.is_empty()).then(|| Value::Array(live.to_vec())),
        Some(mut update) => {
            let retouched = if stored { update.retouched(&base) } else { None };
            retouched.map(Value::Array).or_else(|| {
                let managers = Managers::decode(&base).ok().filter(|managers| !managers.0.is_empty())?;
                update.managers(&managers).unwrap_or(managers).encode()
            })
        }
        None => Some(Value::Array(base.into_owned())),
    };
    put(new, encoded);
}

/// Restores the timestamps of entries, and the order of their sets' members, if the write has changed nothing else
/// (upstream's `IgnoreManagedFieldsTimestampsTransformer`). Returns how that was found out.
pub(super) fn restore_times(
    old: &ObjectMap,
    new: &mut ObjectMap,
    same: impl Fn(&ObjectMap, &ObjectMap) -> bool,
) -> Comparison {
    let (Some(before), Some(after)) = (entries(old), entries(new)) else { return Comparison::Fast };
    if before == after || !before.iter().zip(after).all(|(one, other)| same_but_time(one, other)) {
        return Comparison::Fast;
    }
    if before.len() != after.len() {
        return Comparison::Fast;
    }
    let after = Value::Array(after.to_vec());
    put(new, Some(Value::Array(before.to_vec())));
    if same(new, old) {
        return Comparison::Equal;
    }
    put(new, Some(after));
    Comparison::Slow
}

fn same_but_time(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return false };
    let same =
        |name: &str, one: &Value, other: &Value| one == other || (name == "fieldsV1" && same_set(one, other));
    let covers = |one: &ObjectMap, other: &ObjectMap| {
        let mut members = one.iter().filter(|(name, _)| *name != "time");
        members.all(|(name, value)| other.get(name).is_some_and(|other| same(name, value, other)))
    };
    covers(one, other) && covers(other, one)
}

/// Whether two sets differ in the order of their members alone: a set that was just made is in the order of its values, as in
/// `k:{"port":80}` before `k:{"port":443}`, and that of a stored custom object in the order of its texts, as upstream's are.
fn same_set(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_str(), other.as_str()) else { return false };
    let read = |text: &str| json::parse(text.as_bytes()).ok().map(|parsed| parsed.value);
    one.len() == other.len() && read(one).is_some_and(|one| read(other) == Some(one))
}

/// The managers of an object that had none: one entry owns all that the object has. `zero` is the zero value of its
/// kind.
pub(super) fn first_managers(
    versions: &impl Versions,
    live: &ObjectMap,
    acting: &Acting,
    zero: &ObjectMap,
) -> Managers {
    let mut before = acting.clone();
    before.identity.name = BEFORE_FIRST_APPLY.to_owned();
    before.identity.operation = Operation::Update;
    ownership::update(versions, zero, live, &Managers::default(), &before).unwrap_or_default()
}

/// The 409 of an apply, which names the managers of the conflicting fields.
pub(super) fn conflict_error(conflicts: &[Conflict]) -> Error {
    let (message, named) = conflict::message(conflicts);
    let causes = named.into_iter().flat_map(|(manager, paths)| {
        let message = format!("conflict with {manager}");
        let cause = move |path| Cause::new(CauseReason::FieldManagerConflict, path, message.clone());
        paths.into_iter().map(cause)
    });
    Error::ApplyConflict { message, causes: causes.collect() }
}
