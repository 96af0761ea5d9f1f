//! WATCH: a state as synthetic events if the client wants it, then changes, with bookmarks, until the timeout.

mod bookmark;
mod converted;
mod past;
mod scope;
mod stop;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use self::bookmark::{Bookmark, next_bookmark};
use self::scope::Scope;
pub use self::stop::Stop;
use crate::auth::revocation::Permit;
use crate::cache::event::{Event, EventType};
use crate::cache::{Cache, Objects, Range, Watcher};
use crate::codec::object::Object;
use crate::conversion::Converter;
use crate::error::Error;
use crate::failpoints::{Bug, strikes};
use crate::long_work::Turn;
use crate::options::ReadAt;
use crate::options::list::Effort;
use crate::options::watch::{Bookmarks, StateEnd, WatchOptions, WatchStart};
use crate::random::Random;
use crate::resource::Resource;
use crate::revision::Revision;
use crate::verbs::past::Frozen;
use crate::{Api, storage};

/// Synthetic events per step.
const CHUNK: usize = 64;

/// An event of a watch.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// A synthetic ADDED event.
    State(Arc<Object>),
    Change {
        event: Arc<Event>,
        kind: EventType,
    },
    /// All events up to this revision have been sent.
    Bookmark {
        revision: Revision,
        end_of_state: bool,
    },
    /// The last event.
    Error(Error),
}

/// A running watch. What needs the database for its start is told after the response headers, also an error, which is an
/// event; only the newest state is taken before ([`Watch::begin`]).
pub struct Watch {
    cache: Cache,
    converter: Arc<Converter>,
    resource: Arc<Resource>,
    scope: Scope,
    phase: Phase,
    bookmarks: Option<Bookmark>,
    deadline: Instant,
    /// Fires at the next bookmark or at the deadline.
    alarm: Pin<Box<Sleep>>,
    /// Cancelled when the watch has to end: the server drains, or the permit is revoked.
    end: CancellationToken,
    /// `None` for a watch that nobody can revoke.
    permit: Option<Permit>,
    /// See [`Watch::until`].
    stop: Option<Arc<Stop>>,
    /// Whether the client was told nothing yet.
    is_silent: bool,
    random: Random,
}

enum Phase {
    Starting(WatchStart),
    /// It could not start.
    Failed(Error),
    State {
        objects: Objects,
        range: Range,
        watcher: Watcher,
        end: StateEnd,
    },
    Live(Watcher),
    /// The events of a past state, and then silence.
    Past(Frozen),
    Ended,
}

impl Api {
    /// Starts a watch on a collection. `namespace` is the one in the path. The watch ends when `end` is cancelled.
    pub fn watch(
        &self,
        resource: &Arc<Resource>,
        namespace: Option<&str>,
        options: WatchOptions,
        end: CancellationToken,
    ) -> Watch {
        let WatchOptions { selection, start, bookmarks, timeout } = options;
        let now = Instant::now();
        let random = self.runtime.random.clone();
        let timeout =
            timeout.unwrap_or_else(|| self.config.min_request_timeout.mul_f64(1.0 + random.share()));
        // A timeout beyond all reason is cut to a year.
        let deadline = now + timeout.min(Duration::from_secs(365 * 24 * 3600));
        let bookmarks = (bookmarks == Bookmarks::Send)
            .then(|| Bookmark { due: next_bookmark(now, deadline, &random), told: start.revision() });
        let alarm = bookmarks.as_ref().map_or(deadline, |bookmark| bookmark.due.min(deadline));
        Watch {
            cache: self.cache.clone(),
            converter: self.converter.clone(),
            resource: resource.clone(),
            scope: Scope::new(namespace, selection),
            phase: Phase::Starting(start),
            bookmarks,
            deadline,
            alarm: Box::pin(sleep_until(alarm)),
            end,
            permit: None,
            stop: None,
            is_silent: true,
            random,
        }
    }
}

impl Watch {
    pub fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    /// When the watch ends, provided that its events are being read.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The watch ends with an error when the permit is revoked, before anything else is sent. The permit cancels the token
    /// that the watch was started with.
    pub fn permitted(mut self, permit: Option<Permit>) -> Self {
        if let Some(permit) = &permit {
            permit.ends(self.end.clone());
        }
        self.permit = permit;
        self
    }

    /// The watch ends with the reason of the stop, if it has one, when the token is cancelled that the watch was started
    /// with: a child of the stop's.
    pub fn until(mut self, stop: Option<Arc<Stop>>) -> Self {
        self.stop = stop;
        self
    }

    /// The watch sees a past state, which does not change, instead of the present one.
    pub fn of_past(mut self, frozen: Frozen) -> Self {
        self.phase = Phase::Past(frozen);
        self
    }

    /// Takes the newest state, if the watch starts from there. After that, every change is an event: whoever has seen the
    /// headers of the answer, and deletes an object then, is told that it was there.
    pub async fn begin(&mut self) {
        if let Phase::Starting(start @ (WatchStart::Now | WatchStart::State { at: ReadAt::Latest, .. })) =
            self.phase
            && let Err(error) = self.start(start).await
        {
            self.phase = Phase::Failed(error);
        }
    }

    /// The next events, at least one; `None` at the end.
    pub async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        loop {
            let step = match std::mem::replace(&mut self.phase, Phase::Ended) {
                Phase::Starting(start) => self.start(start).await.map(|()| Vec::new()),
                Phase::Failed(error) => Err(error),
                Phase::State { objects, range, watcher, end } => {
                    let events = self.next_of_state(objects, range, watcher, end);
                    match self.resource.hooked() {
                        None => events,
                        Some(_) => self.converted_state(events).await,
                    }
                }
                Phase::Live(watcher) => match self.next_change(watcher).await {
                    Some(step) => step,
                    None => return self.revoked().await.map(|error| vec![WatchEvent::Error(error)]),
                },
                Phase::Past(frozen) => match self.next_of_past(frozen).await {
                    Some(step) => step,
                    None => return self.revoked().await.map(|error| vec![WatchEvent::Error(error)]),
                },
                Phase::Ended => return None,
            };
            match step {
                // The watch has started, or a scan's turn has ended without a match.
                Ok(events) if events.is_empty() => tokio::task::yield_now().await,
                Ok(events) => {
                    // Asked after the events were found, so that what has revoked the permit before them is known.
                    if let Some(error) = self.revoked().await {
                        self.phase = Phase::Ended;
                        return Some(vec![WatchEvent::Error(error)]);
                    }
                    self.is_silent = false;
                    return Some(events);
                }
                Err(error) => {
                    self.phase = Phase::Ended;
                    return Some(vec![WatchEvent::Error(error)]);
                }
            }
        }
    }

    /// Why the watch is stopped, or its permit revoked, if that is so.
    async fn revoked(&self) -> Option<Error> {
        if let Some(why) = self.stop.as_ref().and_then(|stop| stop.why.get()) {
            return Some(why.clone());
        }
        Some(self.permit.as_ref()?.check().await.err()?.into())
    }

    async fn start(&mut self, start: WatchStart) -> Result<(), Error> {
        let at = match start {
            WatchStart::State { at, end } => return self.start_with_state(at, end).await,
            WatchStart::After(revision) => {
                let clock = self.cache.clock().await?;
                if revision < clock.compacted {
                    return Err(Error::expired_watch(revision, clock.compacted));
                }
                if strikes(Bug::ResumedTooLate) { Revision(revision.0 + 1) } else { revision }
            }
            WatchStart::Now => self.cache.fresh_for_request().await?.revision,
        };
        self.phase = Phase::Live(self.cache.watch(self.resource.id, at));
        Ok(())
    }

    async fn start_with_state(&mut self, at: ReadAt, end: StateEnd) -> Result<(), Error> {
        let state = match at {
            ReadAt::Latest => self.cache.fresh_for_request().await?,
            ReadAt::Any => self.cache.any(),
            ReadAt::AtLeast(revision) => self.cache.at_least(revision).await?,
        };
        // A resource that the cache has just dropped is unknown, not empty.
        if !state.holds(self.resource.id) {
            return Err(Error::UnknownResource);
        }
        let range = Range::of(self.scope.namespace.as_deref());
        let watcher = self.cache.watch(self.resource.id, state.revision);
        self.phase = Phase::State { objects: state.objects(self.resource.id), range, watcher, end };
        Ok(())
    }

    fn next_of_state(
        &mut self,
        objects: Objects,
        range: Range,
        watcher: Watcher,
        end: StateEnd,
    ) -> Result<Vec<WatchEvent>, Error> {
        let (effort, mut turn) = (self.scope.selection.effort(), Turn::default());
        let mut events = Vec::with_capacity(CHUNK);
        let mut last = None;
        for object in objects.range(&range) {
            if self.scope.holds_stored(&self.resource, object)? {
                events.push(WatchEvent::State(object.clone()));
            }
            let is_over = turn.take(effort.of(object));
            if events.len() == CHUNK || is_over {
                last = Some(object.clone());
                break;
            }
        }
        if let Some(last) = last {
            let range = range.after_key(last.key());
            self.phase = Phase::State { objects, range, watcher, end };
            return Ok(events);
        }
        if end == StateEnd::Bookmark {
            let revision = watcher.at();
            events.push(WatchEvent::Bookmark { revision, end_of_state: true });
            self.told(revision);
        }
        self.phase = Phase::Live(watcher);
        Ok(events)
    }

    /// Waits for events. `None` ends the watch without an error.
    async fn next_change(&mut self, mut watcher: Watcher) -> Option<Result<Vec<WatchEvent>, Error>> {
        let (effort, mut turn) = (self.scope.selection.effort(), Turn::default());
        loop {
            // Checked before events are read, so that a watch with a constant stream of events ends in time and gets
            // its bookmarks.
            let now = Instant::now();
            if self.end.is_cancelled() {
                return self.last_word(watcher.at());
            }
            if self.is_replaced() {
                return None;
            }
            // Sent even after the deadline, if there was no time for the last bookmark before.
            if self.bookmarks.as_ref().is_some_and(|bookmark| bookmark.due <= now)
                && let Some(events) = self.bookmark(&mut watcher).await
            {
                self.phase = Phase::Live(watcher);
                return Some(events);
            }
            if now >= self.deadline {
                return None;
            }
            let from = watcher.at();
            let events = match watcher.next().await {
                Ok(events) => events,
                // The resource is not served any more.
                Err(storage::Error::Removed) => return None,
                Err(storage::Error::Compacted { oldest }) => {
                    return Some(Err(Error::expired_watch(from, oldest)));
                }
                Err(error) => return Some(Err(error.into())),
            };
            if !events.is_empty() {
                let steps = events.iter().map(|event| of_event(effort, event)).sum();
                let told = self.concerning(events).await;
                if !matches!(&told, Ok(told) if told.is_empty()) {
                    self.phase = Phase::Live(watcher);
                    return Some(told);
                }
                if turn.take(steps) {
                    turn.end().await;
                }
                continue;
            }
            tokio::select! {
                () = watcher.changed() => {}
                () = &mut self.alarm => {}
                () = self.end.cancelled() => {}
                () = replaced(&self.resource) => return None,
            }
        }
    }

    /// Ends the watch, with a bookmark if nothing was told before: client-go takes a watch that ends within a second without
    /// an event for a failure, and lists anew.
    fn last_word(&self, revision: Revision) -> Option<Result<Vec<WatchEvent>, Error>> {
        let is_wanted = self.is_silent && self.bookmarks.is_some();
        is_wanted.then(|| Ok(vec![WatchEvent::Bookmark { revision, end_of_state: false }]))
    }

    /// Whether the resource is served in another form now. Who watches asks again, and misses nothing.
    fn is_replaced(&self) -> bool {
        self.resource.custom.as_ref().is_some_and(|custom| custom.replaced.is_cancelled())
    }

    async fn concerning(&self, events: Vec<Arc<Event>>) -> Result<Vec<WatchEvent>, Error> {
        if self.resource.hooked().is_some() {
            return self.concerning_converted(events).await;
        }
        let mut told = Vec::with_capacity(events.len());
        for event in events {
            if let Some(kind) = self.scope.kind(&self.resource, &event)? {
                told.push(WatchEvent::Change { event, kind });
            }
        }
        Ok(told)
    }
}

impl WatchStart {
    /// The revision that the client has already seen: a bookmark at this revision would be useless.
    fn revision(self) -> Revision {
        match self {
            WatchStart::After(revision) => revision,
            WatchStart::State { .. } | WatchStart::Now => Revision(0),
        }
    }
}

/// Returns when a custom resource is served in another form.
async fn replaced(resource: &Resource) {
    match &resource.custom {
        Some(custom) => custom.replaced.cancelled().await,
        None => std::future::pending().await,
    }
}

/// The effort of matching an event: both of its objects are examined.
fn of_event(effort: Effort, event: &Event) -> usize {
    [&event.previous, &event.current].into_iter().flatten().map(|object| effort.of(object)).sum()
}
