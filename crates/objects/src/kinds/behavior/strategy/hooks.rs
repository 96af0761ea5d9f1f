//! Hooks of a single kind into the writes and deletions of its objects.

use std::fmt;

use crate::causes::Cause;
use crate::fields::ObjectMap;
use crate::kinds::behavior::deletion::Dependents;
use crate::kinds::behavior::part::Part;
use crate::patch::apply::filter::Filter;
use crate::user::User;
use crate::warnings::Warnings;

/// The user who writes, and the time of the write.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    pub user: &'a User,
    /// The place for warnings to that user.
    pub warnings: &'a Warnings,
    /// RFC 3339, UTC, whole seconds.
    pub now: &'a str,
}

/// How far a write to a part went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touched {
    /// The part changed, or might have.
    Part,
    /// The kind left all as it was stored.
    Nothing,
}

/// The hooks of a kind, each of which does nothing unless the kind says otherwise.
pub trait Hooks: fmt::Debug + Sync {
    /// The kind's first step in a create (upstream's `BeginCreate`, but for what waits for the store).
    fn begin_create(&self, _object: &mut ObjectMap) {}

    /// The variant of [`Hooks::begin_create`] for a write to the main resource of a stored object.
    fn begin_update(&self, _new: &mut ObjectMap, _old: &ObjectMap) {}

    fn prepare_create(&self, _object: &mut ObjectMap, _writer: &Writer<'_>) {}

    /// A write to the main resource.
    fn prepare_update(&self, _new: &mut ObjectMap, _old: &ObjectMap, _writer: &Writer<'_>) {}

    /// The last step of [`Hooks::prepare_update`], when the generation is known.
    fn finish_update(&self, _new: &mut ObjectMap, _old: &ObjectMap) {}

    fn prepare_status_update(&self, _new: &mut ObjectMap, _old: &ObjectMap, _writer: &Writer<'_>) {}

    /// A write to one of the parts `Finalize`, `Approval`, `EphemeralContainers` and `Resize`.
    fn prepare_part_update(
        &self,
        _part: Part,
        _new: &mut ObjectMap,
        _old: &ObjectMap,
        _writer: &Writer<'_>,
    ) -> Touched {
        Touched::Part
    }

    /// Errors of a write to one of these parts.
    fn part_causes(&self, _part: Part, _new: &ObjectMap, _old: &ObjectMap) -> Vec<Cause> {
        Vec::new()
    }

    /// Fields that a write through a part cannot come to own, where the kind differs from the general rule.
    fn not_owned_through(&self, _part: Part) -> Option<Filter> {
        None
    }

    /// The name of a new object that neither has one nor asks for one. `uuid` draws a random one.
    fn own_name(&self, _uuid: &dyn Fn() -> String) -> Option<String> {
        None
    }

    /// Whether the kind's own finalizers are gone.
    fn finalized(&self, _object: &ObjectMap) -> bool {
        true
    }

    /// Seconds between the first DELETE and the end; `None` for kinds that end at once.
    fn graceful_period(&self, _object: &ObjectMap, _requested: Option<i64>) -> Option<i64> {
        None
    }

    /// Whether DELETE waits for the garbage collector when asked to.
    fn garbage_collected(&self) -> bool {
        true
    }

    /// The object as it stands after the first DELETE, for kinds whose deletion starts in a way of its own.
    fn begin_deletion(&self, _object: &ObjectMap, _dependents: Dependents, _now: &str) -> Option<ObjectMap> {
        None
    }

    /// How the text of a precondition of a DELETE that does not hold begins, for the kinds that check these in a
    /// handler of their own upstream, as a write does.
    fn precondition_words(&self) -> Option<&'static str> {
        None
    }
}

/// Kinds without hooks.
#[derive(Debug)]
pub struct NoHooks;

impl Hooks for NoHooks {}
