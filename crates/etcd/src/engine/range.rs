//! Range requests on a set of keys.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Error;
use super::interval::Interval;
use super::keys::{Keys, Kv};
use crate::wire::messages::{KeyValue, RangeRequest, RangeResponse, SortOrder, SortTarget};

/// The limit of a request that has none. There are never so many keys.
const NO_LIMIT: usize = i64::MAX as usize;

/// A request that has been checked.
#[derive(Clone, Debug)]
pub struct Query {
    pub interval: Interval,
    /// The revision of the state; at most 0 for the newest.
    pub revision: i64,
    limit: usize,
    order: Option<(SortTarget, SortOrder)>,
    keys_only: bool,
    count_only: bool,
    modified: (i64, i64),
    created: (i64, i64),
}

impl Query {
    pub fn new(request: &RangeRequest) -> Result<Self, Error> {
        if request.key.is_empty() {
            return Err(Error::EmptyKey);
        }
        let order = SortOrder::try_from(request.sort_order).map_err(|_| Error::InvalidSort)?;
        let target = SortTarget::try_from(request.sort_target).map_err(|_| Error::InvalidSort)?;
        let order = match (target, order) {
            (SortTarget::Key, SortOrder::None | SortOrder::Ascend) => None,
            (target, SortOrder::None) => Some((target, SortOrder::Ascend)),
            sorted => Some(sorted),
        };
        Ok(Self {
            interval: Interval::new(&request.key, &request.range_end),
            revision: request.revision,
            limit: usize::try_from(request.limit).ok().filter(|limit| *limit > 0).unwrap_or(NO_LIMIT),
            order,
            keys_only: request.keys_only,
            count_only: request.count_only,
            modified: (request.min_mod_revision, request.max_mod_revision),
            created: (request.min_create_revision, request.max_create_revision),
        })
    }

    /// Whether keys come in another order than their own.
    pub fn is_sorted(&self) -> bool {
        self.order.is_some()
    }

    pub fn has_filters(&self) -> bool {
        [self.modified, self.created] != [(0, 0); 2]
    }

    /// The answer, but for its header.
    pub fn answer(&self, keys: &Keys) -> RangeResponse {
        let count = keys.count(&self.interval);
        let (kvs, more) = if self.count_only { (Vec::new(), false) } else { self.select(keys, count) };
        let kvs = kvs.iter().map(|kv| self.message(kv)).collect();
        RangeResponse { header: None, kvs, more, count: count as i64 }
    }

    /// The keys that the answer has, and whether the limit has left out others. The interval has `count` keys.
    pub fn select<'a>(&self, keys: &'a Keys, count: usize) -> (Vec<&'a Arc<Kv>>, bool) {
        let range = keys.range(&self.interval);
        if self.order.is_none() && !self.has_filters() {
            return (range.take(self.limit).collect(), count > self.limit);
        }
        let mut found: Vec<_> = range.filter(|kv| self.passes(kv)).collect();
        if let Some((target, order)) = self.order {
            // Both sorts are stable: equal keys stay in the order of keys.
            found.sort_by(|one, other| match order {
                SortOrder::Descend => compare(target, other, one),
                SortOrder::None | SortOrder::Ascend => compare(target, one, other),
            });
        }
        let more = found.len() > self.limit;
        found.truncate(self.limit);
        (found, more)
    }

    /// The most keys of the answer.
    pub fn limit(&self) -> usize {
        self.limit
    }

    pub fn is_count_only(&self) -> bool {
        self.count_only
    }

    pub fn message(&self, kv: &Kv) -> KeyValue {
        let mut message = kv.message();
        if self.keys_only {
            message.value = Default::default();
        }
        message
    }

    fn passes(&self, kv: &Kv) -> bool {
        let within = |number: i64, (least, most): (i64, i64)| {
            (least == 0 || number >= least) && (most == 0 || number <= most)
        };
        within(kv.mod_revision, self.modified) && within(kv.create_revision, self.created)
    }
}

fn compare(target: SortTarget, one: &Kv, other: &Kv) -> Ordering {
    match target {
        SortTarget::Key => one.key.cmp(&other.key),
        SortTarget::Version => one.version.cmp(&other.version),
        SortTarget::Create => one.create_revision.cmp(&other.create_revision),
        SortTarget::Mod => one.mod_revision.cmp(&other.mod_revision),
        SortTarget::Value => one.value.cmp(&other.value),
    }
}
