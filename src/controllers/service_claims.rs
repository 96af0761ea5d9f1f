//! Addresses and ports that were claimed for a Service that never came to be, or is gone: a server that crashes leaves
//! such behind.

use std::sync::Arc;
use std::time::Duration;

use crate::api::Api;
use crate::api::error::Error;
use crate::api::services::Orphan;
use crate::long_work;

/// As upstream's repair loop. A claim that is seen twice without its Service is longer than any request may take.
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
