//! Watches of a past state: its events, then bookmarks at its revision until the watch ends.

use tokio::time::Instant;

use super::bookmark::next_bookmark;
use super::{Phase, Watch, WatchEvent};
use crate::error::Error;
use crate::revision::Revision;
use crate::verbs::past::{Frozen, Step};

impl Watch {
    /// The next events of a past state, or none at the end of a scan's turn. `None` ends the watch.
    pub(super) async fn next_of_past(
        &mut self,
        mut frozen: Frozen,
    ) -> Option<Result<Vec<WatchEvent>, Error>> {
        let at = frozen.at;
        let step = match frozen.next().await {
            Some(Ok(Step::State(objects))) => Ok(objects.into_iter().map(WatchEvent::State).collect()),
            Some(Ok(Step::EndOfState)) => Ok(vec![WatchEvent::Bookmark { revision: at, end_of_state: true }]),
            Some(Ok(Step::Changes(events))) => self.concerning(events).await,
            Some(Err(error)) => Err(error),
            None => {
                let bookmark = self.silence(at).await?;
                self.phase = Phase::Past(frozen);
                return Some(bookmark);
            }
        };
        self.phase = Phase::Past(frozen);
        Some(step)
    }

    /// Waits for the next bookmark; `None` at the end of the watch.
    async fn silence(&mut self, at: Revision) -> Option<Result<Vec<WatchEvent>, Error>> {
        loop {
            let now = Instant::now();
            if self.end.is_cancelled() {
                return self.last_word(at);
            }
            if let Some(bookmark) = self.bookmarks.as_mut().filter(|bookmark| bookmark.due <= now) {
                bookmark.due = next_bookmark(now, self.deadline, &self.random);
                self.alarm.as_mut().reset(bookmark.due.min(self.deadline));
                return Some(Ok(vec![WatchEvent::Bookmark { revision: at, end_of_state: false }]));
            }
            if now >= self.deadline {
                return None;
            }
            tokio::select! {
                () = &mut self.alarm => {}
                () = self.end.cancelled() => {}
            }
        }
    }
}
