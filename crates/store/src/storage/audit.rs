//! Audit events in the database. The store knows nothing of them but what they are asked for by.

use std::sync::Arc;

use bytes::Bytes;

/// The migration that added the table.
pub(super) const MIGRATION: i64 = 6;
/// The most events that one question is answered with.
pub const MOST: u32 = 10_000;
/// Events that a store in memory keeps, whatever their age.
pub(super) const KEPT_IN_MEMORY: usize = 100_000;

/// An event, and what it is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    /// Microseconds since the Unix epoch.
    pub at: i64,
    pub user: Arc<str>,
    pub verb: Arc<str>,
    /// `<resource>[.<group>]/<namespace>/<name>[/<subresource>]`, or a path.
    pub object: Arc<str>,
    pub event: Bytes,
}

/// Which events are wanted. Fields that are `None` permit all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    pub user: Option<String>,
    pub verb: Option<String>,
    /// An object, or everything below it: `pods/default` is all of these pods.
    pub object: Option<String>,
    /// Microseconds since the Unix epoch.
    pub since: i64,
    /// The newest of them are answered, the oldest first.
    pub limit: u32,
}

/// Which events go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditRemoval {
    /// Those from before this time, in microseconds since the Unix epoch.
    pub before: i64,
    /// Those than which at least so many are newer. On PostgreSQL, where numbers of events may have gaps, some more.
    pub most: u64,
    /// How many go at once, of either sort.
    pub limit: u32,
}

impl AuditQuery {
    /// What the store is asked for `object`: a text, and the start of longer ones.
    pub(super) fn object_and_prefix(&self) -> (Option<&str>, Option<String>) {
        let object = self.object.as_deref().map(|object| object.trim_end_matches('/'));
        (object, object.map(|object| format!("{object}/")))
    }

    pub(super) fn matches(&self, row: &AuditRow) -> bool {
        let is = |wanted: &Option<String>, has: &str| wanted.as_deref().is_none_or(|wanted| wanted == has);
        let (object, prefix) = self.object_and_prefix();
        let is_object = object.is_none_or(|object| object == &*row.object)
            || prefix.is_some_and(|prefix| row.object.starts_with(&prefix));
        row.at >= self.since && is(&self.user, &row.user) && is(&self.verb, &row.verb) && is_object
    }
}
