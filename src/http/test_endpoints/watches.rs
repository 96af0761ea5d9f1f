//! The watches of clients, which a test can end.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

use crate::api::error::Error;
use crate::api::verbs::watch::Stop;
use crate::revision::Revision;
use crate::schema::names::GroupResource;

/// The running watches, and some that have ended.
#[derive(Default)]
pub struct Watches(Mutex<Vec<(GroupResource, Weak<Stop>)>>);

impl Watches {
    /// Notes a watch, which ends when this token is cancelled.
    pub fn add(&self, resource: GroupResource, token: CancellationToken) -> Arc<Stop> {
        let stop = Arc::new(Stop { token, ..Stop::default() });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == all.capacity() {
            all.retain(|(_, stop)| stop.strong_count() > 0);
        }
        all.push((resource, Arc::downgrade(&stop)));
        stop
    }

    /// Ends the watches of a resource, or all, as if their time were over. Returns how many there were.
    pub fn close(&self, resource: Option<&str>) -> usize {
        let is_meant = |of: &GroupResource| resource.is_none_or(|named| *of.to_string() == *named);
        self.end(is_meant, |_| {})
    }

    /// Ends all watches with the error that what follows their revision is not known any more.
    pub fn expire(&self, oldest: Revision) -> usize {
        self.end(|_| true, |stop| drop(stop.why.set(Error::expired_watch(oldest, oldest))))
    }

    fn end(&self, is_meant: impl Fn(&GroupResource) -> bool, prepare: impl Fn(&Stop)) -> usize {
        let mut ended = 0;
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(resource, stop)| {
            let Some(stop) = stop.upgrade() else { return false };
            if is_meant(resource) {
                prepare(&stop);
                stop.token.cancel();
                ended += 1;
            }
            !stop.token.is_cancelled()
        });
        ended
    }
}
