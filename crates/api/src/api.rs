//! The API of a cluster.

use std::ops::Deref;
use std::sync::Arc;

use crate::Cluster;
use crate::admission::Chain;

/// A cluster and the plugins that admit its writes. Share it behind an `Arc`.
pub struct Api {
    pub cluster: Arc<Cluster>,
    pub admission: Chain,
}

impl Deref for Api {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}
