//! Bookmarks of a watch, and when they are due.

use std::time::Duration;

use tokio::time::Instant;

use super::{Watch, WatchEvent};
use crate::cache::Watcher;
use crate::error::Error;
use crate::failpoints::{Bug, strikes};
use crate::random::Random;
use crate::revision::Revision;
use crate::storage;

/// Upstream sends a bookmark about once a minute, and a last one this long before the end of a watch.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
const BOOKMARK_JITTER: Duration = Duration::from_secs(1);
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// The bookmarks that a client has asked for.
pub(super) struct Bookmark {
    pub due: Instant,
    /// The newest revision that was sent; events up to it are not sent again.
    pub told: Revision,
}

impl Watch {
    /// Sends a due bookmark. It promises that the stream is complete up to its revision, so pending events are sent
    /// before it.
    pub(super) async fn bookmark(&mut self, watcher: &mut Watcher) -> Option<Result<Vec<WatchEvent>, Error>> {
        let now = Instant::now();
        let due = next_bookmark(now, self.deadline, &self.random);
        self.bookmarks.as_mut()?.due = due;
        self.alarm.as_mut().reset(due.min(self.deadline));
        let mut events = match watcher.next().await {
            // The main loop finds out by itself that the watch is over.
            Err(storage::Error::Removed) => return None,
            Err(error) => return Some(Err(error.into())),
            Ok(events) => match self.concerning(events).await {
                Ok(events) => events,
                Err(error) => return Some(Err(error)),
            },
        };
        let revision = watcher.at();
        let revision = if strikes(Bug::BookmarkTooEarly) { Revision(revision.0 + 3) } else { revision };
        if self.bookmarks.as_ref().is_some_and(|bookmark| revision > bookmark.told) {
            events.push(WatchEvent::Bookmark { revision, end_of_state: false });
            self.told(revision);
        }
        (!events.is_empty()).then_some(Ok(events))
    }

    pub(super) fn told(&mut self, revision: Revision) {
        if let Some(bookmark) = &mut self.bookmarks {
            bookmark.told = revision;
        }
    }
}

pub(super) fn next_bookmark(now: Instant, deadline: Instant, random: &Random) -> Instant {
    let regular = now + BOOKMARK_PERIOD - BOOKMARK_JITTER + BOOKMARK_JITTER.mul_f64(2.0 * random.share());
    match deadline.checked_sub(LAST_BOOKMARK) {
        Some(last) if last > now && last < regular => last,
        _ => regular,
    }
}
