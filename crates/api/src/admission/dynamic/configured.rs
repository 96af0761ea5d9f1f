//! Configuration of admission as writes depend on it; see [`crate::followers::configured`].

use std::sync::Arc;

use crate::Cluster;
use crate::effects::Effects;
use crate::request::{Hooks, Request};
use crate::storage::Requirement;

impl Cluster {
    /// The requirement of a request whose plugins are asked from now on; `None` if neither webhooks nor policies see it.
    pub(in crate::admission) fn configured_for(&self, request: &Request<'_>) -> Option<Arc<Requirement>> {
        let sees = request.hooks == Hooks::See;
        sees.then(|| self.configured.requirement(&self.cache.any()))
    }

    /// Joins the row to the write of a configuration of admission.
    pub(crate) fn change_configuration(&self, effects: &mut Effects) {
        effects.reconfigure(self.configured.rows, || self.configured.requirement(&self.cache.any()));
    }
}
