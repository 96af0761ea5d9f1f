//! The effect of a DELETE on an object: it is removed, marked, or left alone (`docs/spec/list-watch.md`, section 5.5).
//!
//! These are pure functions; upstream spreads the rules over `rest.BeforeDelete` and
//! `updateForGracefulDeletionAndFinalizers` of its registry store. The caller has validated the options and found the
//! object; it calls [`check`], then [`plan`].

use jiff::{SignedDuration, Timestamp};

use crate::error::{Error, Subject};
use crate::failpoints::{Bug, strikes};
use crate::gotext;
use crate::kinds::behavior::deletion::{Dependents, Propagation};
use crate::kinds::behavior::strategy::Strategy;
use crate::meta::{self, Metadata};
use crate::options::delete::{DeleteOptions, Preconditions};
use crate::schema::resource::{Behavior, ResourceDefinition};
use crate::tree::{Map, Value};

const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";
const TIMESTAMP: &str = "deletionTimestamp";
const GRACE: &str = "deletionGracePeriodSeconds";

/// The effect of a DELETE on its object.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// The object is removed. If the answer shows it, it shows this; `None` means the object as it was last stored.
    Remove(Option<Map>),
    /// The object stays, with this content; if not `changed`, the content is the stored one.
    Keep { object: Map, changed: bool },
    /// A grace period runs already, and this request does not shorten it.
    Pending,
}

/// The rules of the object's kind.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    pub strategy: &'a Strategy,
    pub behavior: Behavior,
    /// Whether a garbage collector is there that takes its finalizers off.
    pub garbage_collection: bool,
}

/// Checks the preconditions; 409 if one does not hold. `object` contains its resourceVersion.
pub fn check(
    object: &Map,
    preconditions: &Preconditions,
    definition: &ResourceDefinition,
    strategy: &Strategy,
) -> Result<(), Error> {
    let empty = Metadata::new();
    let metadata = metadata_of(object).unwrap_or(&empty);
    let name = meta::text(metadata, "name");
    let differs = |wanted: &Option<String>, field| {
        let found = meta::text(metadata, field);
        wanted.as_deref().filter(|wanted| *wanted != found).map(|wanted| (wanted.to_owned(), found))
    };
    let failed = |words: &str, field: &str, wanted: &str, found: &str| Error::Conflict {
        subject: Subject::Resource(definition.group_resource()),
        name: name.to_owned(),
        reason: format!("{words}: {field} in precondition: {wanted}, {field} in object meta: {found}"),
    };
    let own_words = strategy.hooks.precondition_words();
    if let Some((wanted, found)) = differs(&preconditions.uid, "uid").filter(|_| !strikes(Bug::UidIgnored)) {
        return Err(match own_words {
            Some(words) => failed(words, "UID", &wanted, found),
            None => Error::uid_precondition(definition.group_kind(), name, &wanted, found),
        });
    }
    if let Some((wanted, found)) = differs(&preconditions.resource_version, "resourceVersion") {
        return Err(match own_words {
            Some(words) => failed(words, "ResourceVersion", &wanted, found),
            None => Error::revision_precondition(definition.group_kind(), name, &wanted, found),
        });
    }
    Ok(())
}

/// Decides what a DELETE of `object` does.
pub fn plan(object: &Map, options: &DeleteOptions, rules: Rules<'_>, now: Timestamp) -> Plan {
    if let Some(begun) = rules.strategy.begin_deletion(object, options.dependents, &gotext::time(now)) {
        return keep(object, begun);
    }
    let mut metadata = metadata_of(object).cloned().unwrap_or_default();
    let grace = match grace(object, &mut metadata, options.grace_period, rules.strategy, now) {
        // While the grace period runs, finalizers cannot be changed either.
        Grace::Pending => return Plan::Pending,
        grace => grace,
    };
    if rules.garbage_collection {
        set_collector_finalizers(&mut metadata, options.dependents, rules);
    }
    let held = meta::finalizers(&metadata).next().is_some() && !strikes(Bug::FinalizerIgnored);
    match grace {
        Grace::Runs { seconds } if (seconds > 0 && !strikes(Bug::GraceIgnored)) || held => {}
        // Kinds with a grace period show in the answer that none was left.
        Grace::Runs { .. } if !held => return Plan::Remove(Some(with_metadata(object, metadata))),
        _ if !held => return Plan::Remove(None),
        _ => mark(&mut metadata, now),
    }
    keep(object, with_metadata(object, metadata))
}

fn with_metadata(object: &Map, metadata: Metadata) -> Map {
    let mut object = object.clone();
    object.insert("metadata", Value::Object(metadata));
    object
}

fn keep(stored: &Map, object: Map) -> Plan {
    let changed = object != *stored;
    Plan::Keep { object, changed }
}

/// The state of a graceful deletion.
enum Grace {
    /// The kind has no grace period, or the period is over.
    Over,
    /// The grace period was started or shortened by this request, and the metadata say so.
    Runs { seconds: i64 },
    /// The grace period was started earlier, and this request does not shorten it.
    Pending,
}

fn grace(
    object: &Map,
    metadata: &mut Metadata,
    requested: Option<i64>,
    strategy: &Strategy,
    now: Timestamp,
) -> Grace {
    let requested = requested.map(at_least_now);
    let Some(first) = strategy.graceful_period(object, requested) else { return Grace::Over };
    if meta::is_terminating(metadata) {
        return shorten(metadata, requested, now);
    }
    set_deadline(metadata, plus(now, first), first);
    grow(metadata);
    Grace::Runs { seconds: first }
}

fn shorten(metadata: &mut Metadata, requested: Option<i64>, now: Timestamp) -> Grace {
    let stored = metadata.get(GRACE).and_then(Value::as_i64).map_or(0, at_least_now);
    if stored == 0 {
        return Grace::Over;
    }
    let Some(seconds) = requested.filter(|seconds| *seconds < stored) else { return Grace::Pending };
    let begun = timestamp(metadata).map_or(now, |deadline| plus(deadline, -stored));
    let deadline = plus(begun, seconds);
    if deadline >= now {
        set_deadline(metadata, deadline, seconds);
        return Grace::Runs { seconds };
    }
    // The whole period has passed. A request that asked for a grace period gets one more update before the end.
    let seconds = seconds.min(1);
    set_deadline(metadata, now, seconds);
    Grace::Runs { seconds }
}

/// Upstream treats negative periods as one second.
fn at_least_now(seconds: i64) -> i64 {
    if seconds < 0 { 1 } else { seconds }
}

fn set_deadline(metadata: &mut Metadata, deadline: Timestamp, seconds: i64) {
    metadata.insert(TIMESTAMP, gotext::time(deadline).into());
    metadata.insert(GRACE, seconds.into());
}

/// Upstream's `markAsDeleting`: the deletion time is now, without a grace period; the object waits for finalizers.
fn mark(metadata: &mut Metadata, now: Timestamp) {
    if !meta::is_terminating(metadata) {
        grow(metadata);
    }
    let earlier = timestamp(metadata).is_some_and(|deadline| deadline <= now);
    if !earlier {
        metadata.insert(TIMESTAMP, gotext::time(now).into());
    }
    metadata.insert(GRACE, 0.into());
}

/// Raises the generation when a deletion starts, for kinds that have one.
fn grow(metadata: &mut Metadata) {
    if let Some(generation) = metadata.get("generation").and_then(Value::as_i64).filter(|n| *n > 0) {
        metadata.insert("generation", generation.saturating_add(1).into());
    }
}

/// Removes both finalizers of the garbage collector, and appends the wanted one (upstream
/// `deletionFinalizersForGarbageCollection`).
fn set_collector_finalizers(metadata: &mut Metadata, dependents: Dependents, rules: Rules<'_>) {
    let wanted = if rules.strategy.garbage_collected() {
        collector_finalizer(metadata, dependents, rules.behavior)
    } else {
        None
    };
    let stored: Vec<&str> = meta::finalizers(metadata).collect();
    let of_collector = |name: &&&str| matches!(**name, FOREGROUND | ORPHAN);
    // A different order of the same finalizers is no change.
    if stored.iter().filter(of_collector).copied().eq(wanted) {
        return;
    }
    let others = stored.iter().filter(|name| !of_collector(name)).copied();
    let finalizers: Vec<Value> = others.chain(wanted).map(Value::from).collect();
    if finalizers.is_empty() {
        metadata.shift_remove("finalizers");
    } else {
        metadata.insert("finalizers", finalizers.into());
    }
}

/// The wanted finalizer: the options decide; without them, the finalizer that the object has; otherwise the kind's
/// default.
fn collector_finalizer(
    metadata: &Metadata,
    dependents: Dependents,
    behavior: Behavior,
) -> Option<&'static str> {
    match dependents {
        Dependents::Orphan(true) | Dependents::Policy(Propagation::Orphan) => Some(ORPHAN),
        Dependents::Policy(Propagation::Foreground) => Some(FOREGROUND),
        Dependents::Orphan(false) | Dependents::Policy(Propagation::Background) => None,
        Dependents::Unspecified => {
            let own = meta::finalizers(metadata).find_map(|name| match name {
                ORPHAN => Some(ORPHAN),
                FOREGROUND => Some(FOREGROUND),
                _ => None,
            });
            own.or(behavior.orphans_by_default.then_some(ORPHAN))
        }
    }
}

fn metadata_of(object: &Map) -> Option<&Metadata> {
    object.get("metadata").and_then(Value::as_object)
}

fn timestamp(metadata: &Metadata) -> Option<Timestamp> {
    meta::text(metadata, TIMESTAMP).parse().ok()
}

/// Saturates at the largest timestamp.
fn plus(at: Timestamp, seconds: i64) -> Timestamp {
    at.saturating_add(SignedDuration::from_secs(seconds)).unwrap_or(at)
}
