//! Reads: of the newest state, of older ones, and in chunks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::TryStreamExt as _;
use futures_util::stream::{self, Stream};
use rowplane_store::storage::Scan;

use super::interval::Interval;
use super::keys::{Keys, Kv};
use super::lags::Sequence;
use super::range::Query;
use super::rows::Tables;
use super::state::{State, key_of};
use super::{Error, Etcd, names, txn};
use crate::wire::messages::{RangeRequest, RangeResponse, RangeStreamResponse};

/// The reads of older states that may be under way.
pub const AT_ONCE: usize = 2;
/// The older states that are kept for the next page of a list.
const MOST_KEPT: usize = 8;
/// The revision of a store without any key.
const FIRST: i64 = 1;
/// The bytes of the first chunk of a stream, and of the others.
const FIRST_CHUNK: usize = 128 << 10;
const CHUNK: usize = 1 << 20;

/// Older states, the one used last in front.
#[derive(Default)]
pub struct Kept(Mutex<VecDeque<(Sequence, Keys)>>);

impl Kept {
    fn get(&self, at: Sequence) -> Option<Keys> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|(sequence, _)| *sequence == at)?;
        let found = kept.remove(place)?;
        kept.push_front(found.clone());
        Some(found.1)
    }

    fn put(&self, at: Sequence, keys: Keys) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_front((at, keys));
        kept.truncate(MOST_KEPT);
    }

    /// Forgets states that nobody may read any more.
    pub fn forget(&self, before: Sequence) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(at, _)| *at >= before);
    }
}

impl Etcd {
    pub async fn range(&self, request: RangeRequest) -> Result<RangeResponse, Error> {
        let query = Query::new(&request)?;
        let (state, keys) = self.read_at(&query, request.serializable).await?;
        Ok(RangeResponse { header: Some(self.header(state.revision())), ..query.answer(&keys) })
    }

    /// The answer in chunks, which are all of one state. Only the last one has a header, and whether there are more
    /// keys.
    pub async fn range_stream(
        &self,
        request: RangeRequest,
    ) -> Result<impl Stream<Item = Result<RangeStreamResponse, Error>> + Send + use<>, Error> {
        let query = Query::new(&request)?;
        if query.is_sorted() {
            return Err(Error::StreamSorted);
        }
        if query.has_filters() {
            return Err(Error::StreamFiltered);
        }
        let (state, keys) = self.read_at(&query, request.serializable).await?;
        let chunks = Chunks {
            last: RangeResponse {
                header: Some(self.header(state.revision())),
                count: keys.count(&query.interval) as i64,
                ..RangeResponse::default()
            },
            left: if query.is_count_only() { 0 } else { query.limit() },
            size: FIRST_CHUNK,
            rest: Some(query.interval.clone()),
            query,
            keys,
        };
        Ok(stream::unfold(Some(chunks), async |chunks| {
            let (chunk, rest) = chunks?.next();
            Some((Ok(RangeStreamResponse { range_response: Some(chunk) }), rest))
        }))
    }

    /// The newest state, and the keys at the revision that is asked for.
    async fn read_at(&self, query: &Query, serializable: bool) -> Result<(Arc<State>, Keys), Error> {
        let state = if serializable { self.state() } else { self.newest().await? };
        txn::check_revision(&state, query.revision)?;
        let keys = match query.revision {
            newest if newest <= 0 || newest == state.revision() => state.keys.clone(),
            older => self.keys_at(&state, older, &query.interval).await?,
        };
        Ok((state, keys))
    }

    /// The place at which a state had a revision, or the first one.
    pub(super) async fn sequence_of(&self, state: &State, revision: i64) -> Result<Sequence, Error> {
        let revision = revision.max(FIRST);
        match state.lags.sequence(revision) {
            Some(sequence) => Ok(sequence.min(state.sequence)),
            None => Ok(self.backend().sequence_of(revision).await?),
        }
    }

    /// The keys of an interval as they were at an older revision; perhaps others too.
    pub(super) async fn keys_at(
        &self,
        state: &State,
        revision: i64,
        interval: &Interval,
    ) -> Result<Keys, Error> {
        let at = self.sequence_of(state, revision).await?;
        if let Some(keys) = self.shared.kept.get(at) {
            return Ok(keys);
        }
        if let Some(keys) = self.shared.events.rewind(state.keys.clone(), state.sequence, at) {
            self.shared.kept.put(at, keys.clone());
            return Ok(keys);
        }
        self.keys_of_store(at, interval).await
    }

    async fn keys_of_store(&self, at: Sequence, interval: &Interval) -> Result<Keys, Error> {
        let _turn = self.shared.past.acquire().await.map_err(|_| Error::Stopped)?;
        let tables: &Tables = &self.shared.tables;
        let mut keys = Keys::default();
        let (start, end) = interval.edges();
        let scan = Scan {
            namespace: Some("".into()),
            after: names::before(&start).map(|name| ("".into(), name.into())),
            limit: interval.as_key().map(|_| 1),
            ..Scan::all(tables.keys)
        };
        let mut rows = self.backend().scan(scan, at).await?;
        while let Some(row) = rows.try_next().await? {
            let key = key_of(&row.name)?;
            if end.as_ref().is_some_and(|end| key >= end) {
                break;
            }
            let (revision, stored) = tables.decode(tables.keys, &row.value)?;
            keys.insert(Arc::new(Kv::new(key, row.revision, revision, stored)?));
        }
        Ok(keys)
    }
}

/// The rest of a stream.
struct Chunks {
    query: Query,
    keys: Keys,
    /// The keys that have not been sent; `None` if that is all of them.
    rest: Option<Interval>,
    /// The keys that may still be sent.
    left: usize,
    size: usize,
    /// The last chunk, but for its keys.
    last: RangeResponse,
}

impl Chunks {
    fn next(mut self) -> (RangeResponse, Option<Self>) {
        let (mut kvs, mut bytes, mut left) = (Vec::new(), 0, self.left);
        let mut rest = None;
        if let Some(interval) = &self.rest {
            for kv in self.keys.range(interval) {
                if left == 0 {
                    break;
                }
                if bytes >= self.size {
                    rest = Some(interval.from(&kv.key));
                    break;
                }
                left -= 1;
                let message = self.query.message(kv);
                bytes += message.key.len() + message.value.len() + 64;
                kvs.push(message);
            }
        }
        if rest.is_some() {
            (self.rest, self.left, self.size) = (rest, left, CHUNK);
            return (RangeResponse { kvs, ..RangeResponse::default() }, Some(self));
        }
        let more = !self.query.is_count_only() && self.last.count > self.query.limit() as i64;
        (RangeResponse { kvs, more, ..self.last }, None)
    }
}
