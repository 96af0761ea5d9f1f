//! The protobuf messages that cached objects hold beside their JSON, as long as lists read them.
//!
//! Informers list once and watch from then on, so the messages of a whole resource would double its memory for the
//! sake of one list.

use std::sync::Arc;
use std::time::Duration;

use crate::Cluster;
use crate::cache::Range;

/// The time between two looks. Messages are dropped after one to two periods without a list.
const PERIOD: Duration = Duration::from_secs(60);
/// The number of objects after which other tasks have their turn.
const SLICE: usize = 1024;

/// Looks at all resources, period after period.
pub async fn drop_unused_messages(cluster: Arc<Cluster>) {
    loop {
        tokio::time::sleep(PERIOD).await;
        look(&cluster).await;
    }
}

/// Drops the messages of resources that nobody has listed in protobuf since the last look.
pub async fn look(cluster: &Cluster) {
    let served = cluster.catalog.served();
    for resource in served.stored().filter(|resource| resource.has_unused_messages()) {
        let objects = cluster.cache.any().objects(resource.id);
        for (number, object) in objects.range(&Range::of(None)).enumerate() {
            object.drop_protobuf();
            if number % SLICE == SLICE - 1 {
                tokio::task::yield_now().await;
            }
        }
    }
}
