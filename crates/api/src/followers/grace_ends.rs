//! Times at which Pods that are being deleted are past their grace period.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::cache::Cache;
use crate::cache::follower::{Content, Follower};
use crate::catalog::Served;
use crate::codec::object::{Object, joined_key};
use crate::schema::names::Gvr;
use crate::{ObjectMap, long_work, meta, metadata};

const PODS: Gvr = Gvr::fixed("v1", "pods");
const GRACE: &str = "deletionGracePeriodSeconds";

/// When a Pod is past its grace period, as upstream has it: the period counts once more from the time by which the Pod
/// should have been gone.
pub fn end_of(pod: &ObjectMap) -> Option<Timestamp> {
    let metadata = metadata(pod)?;
    let grace = SignedDuration::from_secs(metadata.get(GRACE)?.as_i64()?);
    let gone: Timestamp = meta::text(metadata, "deletionTimestamp").parse().ok()?;
    gone.checked_add(grace).ok()
}

/// The times at which Pods are past their grace period. Nothing is done at the writes of Pods: the index follows the
/// cache when somebody asks.
pub struct GraceEnds(Follower<Ends>);

/// Times by the keys of the Pods.
#[derive(Default)]
struct Ends(BTreeMap<Box<str>, Timestamp>);

impl GraceEnds {
    pub fn new(built_in: &Served) -> Self {
        let pods = built_in.get(&PODS).map(|pods| pods.id);
        Self(Follower::new(Vec::from_iter(pods), Ends::default()))
    }

    /// The keys of the Pods, of one namespace or of all, that are past their grace period and perhaps not noted yet.
    pub fn due(&self, cache: &Cache, namespace: Option<&str>, now: Timestamp) -> Vec<Box<str>> {
        if self.0.is_unread() {
            long_work::run(|| self.0.catch_up(cache, &()));
        }
        let known = self.0.newest(cache, &());
        let prefix = namespace.map_or(Box::default(), |namespace| joined_key(namespace, ""));
        let from = known.0.range::<str, _>((Bound::Included(&*prefix), Bound::Unbounded));
        let due = from.take_while(|(key, _)| key.starts_with(&*prefix)).filter(|(_, end)| **end < now);
        due.map(|(key, _)| key.clone()).collect()
    }

    /// A Pod that has been noted is not looked at again, unless it changes.
    pub fn forget(&self, key: &str) {
        self.0.write().0.remove(key);
    }
}

impl Content for Ends {
    type Context = ();

    fn clear(&mut self, (): &()) {
        self.0.clear();
    }

    fn take_in(&mut self, (): &(), _: usize, key: &str, pod: Option<&Arc<Object>>) {
        match pod.and_then(|pod| end_of_stored(pod)) {
            Some(end) => drop(self.0.insert(key.into(), end)),
            None => drop(self.0.remove(key)),
        }
    }
}

fn end_of_stored(pod: &Object) -> Option<Timestamp> {
    if !pod.mentions(GRACE) {
        return None;
    }
    end_of(&pod.to_closed_map().ok()?)
}
