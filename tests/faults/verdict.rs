//! All checks of a history, and what they have covered.

use std::fmt;

use super::history::{Action, Answer, History, Told, Violation};
use super::{linear, requests, watches};

impl History {
    /// All violations in the history.
    pub fn judge(&self) -> Vec<Violation> {
        let mut violations = self.log.violations.clone();
        let mut others = self.log.restorations();
        match self.migrated {
            true => others.extend(requests::rewrites(&self.log, &self.calls)),
            false => violations.extend(requests::check_touches(&self.log, &self.calls)),
        }
        violations.extend(linear::check(self.calls.iter().chain(&others)));
        violations.extend(requests::check_calls(&self.log, &self.calls));
        violations.extend(requests::check_time(&self.calls, &self.listings));
        violations.extend(requests::check_listings(&self.log, &self.listings));
        for run in &self.watches {
            violations.extend(watches::check(&self.log, run));
        }
        violations
    }

    pub fn coverage(&self) -> Coverage {
        let count = |test: fn(&Answer) -> bool| self.calls.iter().filter(|call| test(&call.answer)).count();
        let told: Vec<&Told> =
            self.watches.iter().flat_map(|run| &run.streams).flat_map(|s| &s.told).collect();
        let done = |test: fn(&Action) -> bool| {
            self.calls
                .iter()
                .filter(|call| test(&call.action) && matches!(call.answer, Answer::Written { .. }))
                .count()
        };
        let reads = self.calls.iter().filter(|call| matches!(call.action, Action::Read)).count();
        Coverage {
            calls: self.calls.len(),
            reads,
            done: count(|answer| matches!(answer, Answer::Written { .. })),
            applied: done(|action| matches!(action, Action::Apply { .. })),
            patched: done(|action| matches!(action, Action::Patch { .. })),
            statuses: done(|action| matches!(action, Action::Status { .. })),
            scaled: done(|action| matches!(action, Action::Scale { .. })),
            refused: count(|answer| matches!(answer, Answer::Exists | Answer::Conflict | Answer::Missing)),
            not_done: count(|answer| *answer == Answer::Refused),
            unknown: count(|answer| *answer == Answer::Unknown),
            listings: self.listings.len(),
            pages: self.listings.iter().map(|listing| listing.page_revisions.len()).sum(),
            changes: self.log.changes.len(),
            lost: self.log.changes.iter().filter(|change| change.lost_at.is_some()).count(),
            streams: self.watches.iter().map(|run| run.streams.len()).sum(),
            events: told.iter().filter(|told| matches!(told, Told::Event { .. })).count(),
            bookmarks: told.iter().filter(|told| matches!(told, Told::Bookmark { .. })).count(),
            expired: told.iter().filter(|told| matches!(told, Told::Expired)).count(),
        }
    }
}

/// How much a history covers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Coverage {
    pub calls: usize,
    pub reads: usize,
    pub done: usize,
    /// The writes among these by apply, by patch, to the status, and to the scale.
    pub applied: usize,
    pub patched: usize,
    pub statuses: usize,
    pub scaled: usize,
    pub refused: usize,
    /// Errors that say that nothing was written.
    pub not_done: usize,
    pub unknown: usize,
    pub listings: usize,
    pub pages: usize,
    /// Changes of the load's objects in the log.
    pub changes: usize,
    /// The changes among these that were lost in failovers.
    pub lost: usize,
    pub streams: usize,
    pub events: usize,
    pub bookmarks: usize,
    pub expired: usize,
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} operations ({} reads, {} writes done of which {} applied, {} patched, {} statuses and {} scales, {} refused, {} not done, {} unknown), {} changes ({} lost), {} lists in {} pages, \
             {} watch streams with {} events, {} bookmarks, {} expired",
            self.calls,
            self.reads,
            self.done,
            self.applied,
            self.patched,
            self.statuses,
            self.scaled,
            self.refused,
            self.not_done,
            self.unknown,
            self.changes,
            self.lost,
            self.listings,
            self.pages,
            self.streams,
            self.events,
            self.bookmarks,
            self.expired,
        )
    }
}
