//! A stream of watches. All that are not behind have been told of everything up to the stream's place; those that are
//! catch up by themselves.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::watch as signal;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{Requests, Watches};
use crate::engine::events::{Event, Page};
use crate::engine::lags::Sequence;
use crate::engine::{Error, Etcd};
use crate::wire::messages::{self, WatchResponse};

/// The most bytes of a fragment: the limits of a request and of what surrounds it.
const FRAGMENT: usize = 2 << 20;

pub struct Session {
    pub(super) etcd: Etcd,
    /// `None` once the client has sent its last request.
    requests: Option<Requests>,
    newest: signal::Receiver<Sequence>,
    /// The stream's place, and its revision.
    pub(super) at: Sequence,
    pub(super) revision: i64,
    pub(super) watches: Watches,
    /// The id of the next watch that comes without one.
    pub(super) next_id: i64,
    pub(super) progress_wanted: bool,
    ticks: Interval,
    ready: VecDeque<WatchResponse>,
    /// The greatest revision that a header has had; none goes back.
    told: i64,
}

impl Session {
    pub fn new(etcd: Etcd, requests: Requests) -> Self {
        // Subscribed first: what comes after the state is noticed.
        let newest = etcd.shared.progress.subscribe();
        let state = etcd.state();
        let mut ticks = interval(etcd.shared.config.progress_interval / 4);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            requests: Some(requests),
            newest,
            at: state.sequence,
            revision: state.revision(),
            watches: Watches::default(),
            next_id: 0,
            progress_wanted: false,
            ticks,
            ready: VecDeque::new(),
            told: 0,
            etcd,
        }
    }

    /// The next answer.
    pub async fn next(&mut self) -> Result<WatchResponse, Error> {
        loop {
            if let Some(answer) = self.ready.pop_front() {
                return Ok(answer);
            }
            if self.etcd.shared.runtime.tasks.is_stopping() {
                return Err(Error::Stopped);
            }
            // What the client asks for comes before more events, or a cancellation would wait for them.
            let asked = self.requests.as_mut().and_then(|requests| requests.next().now_or_never());
            if let Some(request) = asked {
                self.take(request).await?;
                continue;
            }
            // Nor would those who are told of nothing ever hear how far they are. No progress is told that a header
            // was ahead of.
            if self.told <= self.revision && self.ticks.tick().now_or_never().is_some() {
                self.tell_idle();
                continue;
            }
            if self.advance().await? || self.catch_up().await? {
                continue;
            }
            self.tell_progress();
            if self.ready.is_empty() {
                self.wait().await?;
            }
        }
    }

    /// Waits until there is something to do.
    async fn wait(&mut self) -> Result<(), Error> {
        let requests = &mut self.requests;
        let request = async {
            match requests {
                Some(requests) => requests.next().await,
                None => std::future::pending().await,
            }
        };
        let tasks = self.etcd.shared.runtime.tasks.clone();
        tokio::select! {
            biased;
            request = request => self.take(request).await?,
            changed = self.newest.changed() => changed.map_err(|_| Error::Stopped)?,
            _ = self.ticks.tick() => self.tell_idle(),
            () = tasks.stopping() => return Err(Error::Stopped),
        }
        Ok(())
    }

    async fn take(&mut self, request: Option<Result<messages::WatchRequest, String>>) -> Result<(), Error> {
        match request {
            Some(request) => self.handle(request).await,
            None => {
                self.requests = None;
                Ok(())
            }
        }
    }

    /// Tells the watches that are not behind of the next events. Returns whether there were any.
    async fn advance(&mut self) -> Result<bool, Error> {
        let state = self.etcd.state();
        if self.at >= state.sequence {
            return Ok(false);
        }
        let Page { events, through } = match self.etcd.events(self.at, state.sequence).await {
            Err(Error::Compacted) => {
                let all = self.watches.all.iter().filter(|(_, watch)| watch.behind.is_none());
                let ids: Vec<i64> = all.map(|(id, _)| *id).collect();
                ids.into_iter().for_each(|id| self.cancel_compacted(id, state.compacted.max(1)));
                Page { events: Vec::new(), through: state.sequence }
            }
            page => page?,
        };
        let mut told: BTreeMap<i64, Vec<Arc<Event>>> = BTreeMap::new();
        for event in &events {
            for (id, _) in self.watches.of_event(event) {
                told.entry(id).or_default().push(event.clone());
            }
        }
        self.at = through;
        self.revision = match state.lags.revision(through) {
            Some(revision) => revision,
            None => events.last().map_or(self.revision, |last| last.revision),
        };
        told.into_iter().for_each(|(id, events)| self.tell(id, &events));
        Ok(true)
    }

    /// Tells each watch that is behind of its next events. Returns whether there was one.
    async fn catch_up(&mut self) -> Result<bool, Error> {
        let behind: Vec<_> =
            self.watches.all.iter().filter_map(|(id, watch)| Some((*id, watch.behind?))).collect();
        for &(id, place) in &behind {
            let page = self.etcd.events(place, self.at).await;
            let Some(watch) = self.watches.all.get_mut(&id) else { continue };
            match page {
                Ok(Page { events, through }) => {
                    watch.behind = Some(through).filter(|through| *through < self.at);
                    let wanted =
                        |event: &Arc<Event>| watch.interval.contains(&event.key) && watch.wants(event);
                    let events: Vec<_> = events.into_iter().filter(wanted).collect();
                    self.tell(id, &events);
                }
                Err(Error::Compacted) => {
                    let compacted = self.etcd.state().compacted.max(1);
                    self.cancel_compacted(id, compacted);
                }
                Err(error) => return Err(error),
            }
            // One that is answered is enough: the client may not take more for long.
            if !self.ready.is_empty() {
                break;
            }
        }
        Ok(!behind.is_empty())
    }

    /// Answers a watch with events, in several parts if it wants large answers so.
    fn tell(&mut self, id: i64, events: &[Arc<Event>]) {
        let Some((last, watch)) = events.last().zip(self.watches.all.get_mut(&id)) else { return };
        watch.sent = tokio::time::Instant::now();
        let most = if watch.fragment { FRAGMENT } else { usize::MAX };
        let (mut parts, mut size) = (vec![Vec::new()], 0);
        for event in events {
            let bytes = event.bytes();
            if size > 0 && size + bytes > most {
                parts.push(Vec::new());
                size = 0;
            }
            size += bytes;
            if let Some(part) = parts.last_mut() {
                part.push(watch.message(event));
            }
        }
        let (revision, count) = (last.revision, parts.len());
        for (number, events) in (1..).zip(parts) {
            let fragment = number < count;
            self.answer_at(
                revision,
                WatchResponse { watch_id: id, events, fragment, ..WatchResponse::default() },
            );
        }
    }

    pub(super) fn answer(&mut self, answer: WatchResponse) {
        self.answer_at(self.revision, answer);
    }

    /// Sends an answer whose header has at least this revision.
    pub(super) fn answer_at(&mut self, revision: i64, answer: WatchResponse) {
        self.told = self.told.max(revision);
        let header = Some(self.etcd.header(self.told));
        self.ready.push_back(WatchResponse { header, ..answer });
    }
}
