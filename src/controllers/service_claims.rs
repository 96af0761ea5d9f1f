//! Releases addresses and ports that are claimed for Services that do not exist: a server that crashes leaves such
//! claims behind.

use std::sync::Arc;
use std::time::Duration;

use crate::api::Api;
use crate::api::error::Error;
use crate::api::services::Orphan;
use crate::long_work;

/// Upstream's period. A claim without a Service in two consecutive passes is older than any request can be.
const PERIOD: Duration = Duration::from_secs(180);

pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let mut suspects: Vec<Orphan> = Vec::new();
    loop {
        tokio::time::sleep(PERIOD).await;
        let state = api.cache.fresh().await?;
        let found = long_work::run(|| api.orphaned_claims(&state));
        for orphan in found.iter().filter(|orphan| suspects.iter().any(|suspect| suspect.is(orphan))) {
            api.sweep(orphan).await?;
        }
        suspects = found;
    }
}
