//! Audit events in the database. The store knows nothing of them but what they are asked for by.

use std::sync::Arc;

use bytes::Bytes;

/// The migration that added the table of writes' events.
pub(super) const MIGRATION: i64 = 6;
/// The migrations that added the table of other events.
pub(super) const OTHERS_ON_SQLITE: i64 = 7;
pub(super) const OTHERS_ON_POSTGRES: i64 = 10;
/// The most events that one question is answered with.
pub const MOST: u32 = 10_000;
/// Events that a store in memory keeps, whatever their age.
pub(super) const KEPT_IN_MEMORY: usize = 100_000;

/// The two tables of events. Each has limits of its own: what fills one pushes nothing out of the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuditRing {
    /// Events of requests that have done something. Those that are committed with a write are always here.
    #[default]
    Writes,
    /// Events of all others, of which anybody can make any number: refused requests, reads, reviews of oneself.
    Others,
}

/// An event, and what it is found by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRow {
    pub ring: AuditRing,
    /// Microseconds since the Unix epoch.
    pub at: i64,
    pub user: Arc<str>,
    pub verb: Arc<str>,
    /// `<resource>[.<group>]/<namespace>/<name>[/<subresource>]`, or a path.
    pub object: Arc<str>,
    pub event: Bytes,
}

/// A query for audit events. Fields that are `None` permit all.
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

/// A removal of audit events: of the too old, the too many, and the too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditRemoval {
    pub ring: AuditRing,
    /// The time before which events are too old, in microseconds since the Unix epoch.
    pub before: i64,
    /// The number of newer events with which an event is one too many. On PostgreSQL, where numbers of events may have
    /// gaps, some more go.
    pub most: u64,
    /// The bytes that an event and all newer ones may have together.
    pub most_bytes: u64,
    /// How many go at once, of each sort.
    pub limit: u32,
}

impl AuditRing {
    pub(super) fn table(self) -> &'static str {
        match self {
            Self::Writes => "audit_events",
            Self::Others => "audit_other_events",
        }
    }
}

/// The statement that finds events, in both tables, or, in a store of an earlier release, in the one that is there.
pub(super) fn selection(has_others: bool) -> String {
    let source = match has_others {
        true => {
            "(SELECT id, at, username, verb, object, event FROM audit_events \
             UNION ALL SELECT id, at, username, verb, object, event FROM audit_other_events) AS events"
        }
        false => "audit_events",
    };
    format!(
        "SELECT event FROM {source} WHERE at >= $1 AND (CAST($2 AS text) IS NULL OR username = $2) \
         AND (CAST($3 AS text) IS NULL OR verb = $3) \
         AND (CAST($4 AS text) IS NULL OR object = $4 OR substr(object, 1, length($5)) = $5) \
         ORDER BY at DESC, id DESC LIMIT $6"
    )
}

/// The statements that remove events: the too old, the too many, and the too large. Each has a bound and a limit as its
/// parameters.
pub(super) fn removals(removal: &AuditRemoval) -> Vec<(String, i64)> {
    let AuditRemoval { ring, before, most, most_bytes, .. } = *removal;
    let table = ring.table();
    let bound = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let delete = |which: String| format!("DELETE FROM {table} WHERE id IN (SELECT id FROM {which} LIMIT $2)");
    let too_old = delete(format!("{table} WHERE at < $1 ORDER BY at"));
    let too_many = delete(format!("{table} WHERE id <= (SELECT max(id) FROM {table}) - $1 ORDER BY id"));
    // An event goes if all older ones would not be enough.
    let oldest = format!("(SELECT id, at, size FROM {table} ORDER BY at, id LIMIT $2) AS oldest");
    let too_large = format!(
        "DELETE FROM {table} WHERE id IN (SELECT id FROM \
         (SELECT id, sum(size) OVER (ORDER BY at, id) - size AS older FROM {oldest}) AS sums \
         WHERE older < (SELECT sum(size) FROM {table}) - $1)"
    );
    vec![(too_old, before), (too_many, bound(most)), (too_large, bound(most_bytes))]
}

impl AuditQuery {
    /// The texts by which the store looks for `object`: a whole one, and the start of longer ones.
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
