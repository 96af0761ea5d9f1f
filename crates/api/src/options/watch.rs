//! Options of WATCH.

use std::time::Duration;

use super::ReadAt;
use super::list::{Collection, Raw, Selection, is_watch, refuse, watch_after};
use super::query::Query;
use crate::causes::Cause;
use crate::error::Error;
use crate::gotext;
use crate::revision::Revision;

/// The annotation of the bookmark that ends the initial events of a watch.
pub const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The start of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchStart {
    /// The watch starts with synthetic ADDED events of a state, and goes on with its changes.
    State { at: ReadAt, end: StateEnd },
    /// The watch starts with changes after this revision, without synthetic events.
    After(Revision),
    /// The watch starts with changes from now on, without synthetic events.
    Now,
}

impl WatchStart {
    /// Whether the client wants a list as events, with a mark at its end.
    pub fn streams_list(self) -> bool {
        matches!(self, WatchStart::State { end: StateEnd::Bookmark, .. })
    }
}

/// How the end of the synthetic events is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateEnd {
    /// A bookmark with the annotation [`INITIAL_EVENTS_END`].
    Bookmark,
    Silent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bookmarks {
    Send,
    Omit,
}

/// The form of the watch's URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchPath {
    /// The collection with `watch=true`.
    Collection,
    /// The deprecated `/watch/…`.
    Deprecated,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchOptions {
    pub selection: Selection,
    pub start: WatchStart,
    pub bookmarks: Bookmarks,
    /// When the stream ends; `None` lets the server choose. Zero ends it at once.
    pub timeout: Option<Duration>,
}

impl WatchOptions {
    /// Errors in upstream's order: parsing (400), validation (422), fields, name, revision (400).
    pub fn parse(query: &Query, collection: Collection<'_>, path: WatchPath) -> Result<Self, Error> {
        let mut raw = Raw::parse(query)?;
        // Without the parameter `watch`, upstream reads the options of a deprecated path as those of a list.
        if path == WatchPath::Collection || is_watch(query) {
            raw.default_to_state();
            raw.validate_watch()?;
        } else {
            raw.validate_list()?;
        }
        let (version, initial) = (raw.version, raw.send_initial_events);
        let bookmarks = if raw.bookmarks { Bookmarks::Send } else { Bookmarks::Omit };
        let timeout = timeout(raw.timeout);
        if collection.ask.is_some() {
            raw.asked.check_watch()?;
        }
        let selection = raw.selection(collection)?;
        let start = start(version, initial, bookmarks)?;
        Ok(Self { selection, start, bookmarks, timeout })
    }
}

fn start(version: &str, initial: Option<bool>, bookmarks: Bookmarks) -> Result<WatchStart, Error> {
    let end = match bookmarks {
        Bookmarks::Send => StateEnd::Bookmark,
        Bookmarks::Omit => StateEnd::Silent,
    };
    Ok(match (initial, watch_after(version)?) {
        (Some(true), _) => WatchStart::State { at: ReadAt::parse(version)?, end },
        (_, Some(revision)) => WatchStart::After(revision),
        (Some(false), None) => WatchStart::Now,
        (None, None) => WatchStart::State { at: ReadAt::Any, end: StateEnd::Silent },
    })
}

/// Zero means the same as no timeout.
fn timeout(seconds: Option<i64>) -> Option<Duration> {
    seconds.filter(|seconds| *seconds != 0).map(|s| Duration::from_secs(s.max(0).unsigned_abs()))
}

impl Raw<'_> {
    /// A watch without a revision is a streaming list (apimachinery `SetListOptionsDefaults`).
    fn default_to_state(&mut self) {
        let unset = self.matching.is_empty() && self.send_initial_events.is_none();
        if unset && matches!(self.version, "" | "0") {
            self.send_initial_events = Some(true);
            self.matching = "NotOlderThan";
        }
    }

    fn validate_watch(&self) -> Result<(), Error> {
        let mut causes = Vec::new();
        let not_older = self.matching == "NotOlderThan";
        let mut forbid = |why: &str| causes.push(Cause::forbidden("resourceVersionMatch", why));
        if self.send_initial_events.is_some() && !not_older {
            forbid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        }
        if !self.matching.is_empty() {
            if self.send_initial_events.is_none() {
                forbid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
            }
            if !not_older {
                let value = gotext::json(&self.matching.into());
                causes.push(Cause::not_supported("resourceVersionMatch", value, &["NotOlderThan"]));
            }
            if !self.continued.is_empty() {
                let why = "resourceVersionMatch is forbidden when continue is provided";
                causes.push(Cause::forbidden("resourceVersionMatch", why));
            }
        }
        refuse(causes)
    }
}
