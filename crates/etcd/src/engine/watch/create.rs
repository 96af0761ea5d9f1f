//! The beginning of a watch, and its end.

use tokio::time::Instant;

use super::Watch;
use super::session::Session;
use crate::engine::Error;
use crate::engine::interval::Interval;
use crate::wire::messages::{FilterType, WatchCreateRequest, WatchRequest, WatchRequestKind, WatchResponse};

/// The id in answers that are about no single watch.
const NO_WATCH: i64 = -1;
const EMPTY_RANGE: &str = "mvcc: watcher range is empty";
const DUPLICATE: &str = "mvcc: duplicate watch ID provided on the WatchStream";

impl Session {
    pub(super) async fn handle(&mut self, request: Result<WatchRequest, String>) -> Result<(), Error> {
        match request.map(|request| request.request) {
            Err(reason) => self.refuse(reason),
            Ok(Some(WatchRequestKind::Create(create))) => self.create(create).await?,
            Ok(Some(WatchRequestKind::Cancel(cancel))) => {
                if self.watches.remove(cancel.watch_id).is_some() {
                    self.answer(WatchResponse {
                        watch_id: cancel.watch_id,
                        canceled: true,
                        ..WatchResponse::default()
                    });
                }
            }
            Ok(Some(WatchRequestKind::Progress(_))) => self.progress_wanted = true,
            Ok(None) => {}
        }
        Ok(())
    }

    fn refuse(&mut self, cancel_reason: String) {
        let refusal = WatchResponse {
            watch_id: NO_WATCH,
            created: true,
            canceled: true,
            cancel_reason,
            ..WatchResponse::default()
        };
        self.answer(refusal);
    }

    async fn create(&mut self, request: WatchCreateRequest) -> Result<(), Error> {
        let WatchCreateRequest { key, range_end, start_revision: wanted, watch_id, .. } = request;
        let interval = Interval::watched(&key, &range_end);
        if interval.is_empty() {
            self.refuse(EMPTY_RANGE.to_owned());
            return Ok(());
        }
        if watch_id != 0 && self.watches.all.contains_key(&watch_id) {
            self.refuse(DUPLICATE.to_owned());
            return Ok(());
        }
        if wanted < 0 {
            self.refuse(Error::Compacted.to_string());
            return Ok(());
        }
        let id = if watch_id == 0 { self.free_id() } else { watch_id };
        let state = self.etcd.state();
        let newest = state.revision();
        self.answer_at(newest, WatchResponse { watch_id: id, created: true, ..WatchResponse::default() });
        let start = if wanted == 0 { newest + 1 } else { wanted };
        let behind = match start {
            compacted if compacted < state.compacted => {
                self.cancel_compacted(id, state.compacted);
                return Ok(());
            }
            old if old <= self.revision => match self.etcd.sequence_of(&state, old - 1).await {
                Ok(place) => Some(place).filter(|place| *place < self.at),
                // The clock has been moved ahead, and history begins there.
                Err(Error::Compacted) => {
                    self.cancel_compacted(id, self.revision.max(1));
                    return Ok(());
                }
                Err(error) => return Err(error),
            },
            _ => None,
        };
        let leaves_out = |filter: FilterType| request.filters.contains(&(filter as i32));
        let watch = Watch {
            interval,
            start,
            wanted,
            puts: !leaves_out(FilterType::NoPut),
            deletes: !leaves_out(FilterType::NoDelete),
            prev_kv: request.prev_kv,
            fragment: request.fragment,
            progress: request.progress_notify,
            behind,
            sent: Instant::now(),
        };
        self.watches.insert(id, watch);
        Ok(())
    }

    fn free_id(&mut self) -> i64 {
        while self.watches.all.contains_key(&self.next_id) {
            self.next_id += 1;
        }
        self.next_id += 1;
        self.next_id - 1
    }

    /// Tells the client that the events for which it waits are gone.
    pub(super) fn cancel_compacted(&mut self, id: i64, compact_revision: i64) {
        self.watches.remove(id);
        self.answer(WatchResponse {
            watch_id: id,
            canceled: true,
            compact_revision,
            ..WatchResponse::default()
        });
    }

    /// Tells how far all watches have come, if somebody has asked and they have come as far as the stream.
    pub(super) fn tell_progress(&mut self) {
        let revision = self.revision;
        let is_there = |watch: &Watch| watch.behind.is_none() && watch.wanted <= revision;
        if self.progress_wanted && self.watches.all.values().all(is_there) {
            self.progress_wanted = false;
            self.answer_at(revision, WatchResponse { watch_id: NO_WATCH, ..WatchResponse::default() });
        }
    }

    /// Tells watches that want it how far they have come, if they have not been sent anything for an interval.
    pub(super) fn tell_idle(&mut self) {
        let (revision, now) = (self.revision, Instant::now());
        let interval = self.etcd.shared.config.progress_interval;
        let mut idle = Vec::new();
        for (id, watch) in &mut self.watches.all {
            let is_there = watch.behind.is_none() && watch.wanted <= revision;
            if watch.progress && is_there && now - watch.sent >= interval {
                watch.sent = now;
                idle.push(*id);
            }
        }
        for watch_id in idle {
            self.answer_at(revision, WatchResponse { watch_id, ..WatchResponse::default() });
        }
    }
}
