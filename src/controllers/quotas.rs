//! Counts the quotas again: at the start, for quotas and objects that earlier releases have written; now and then, for
//! objects that nobody could read when they were written or deleted; and when the state has been read anew, since a
//! failover may have lost what a count has added. In between it gives back what Pods hold that are past their grace period.

use std::sync::Arc;
use std::time::Duration;

use crate::api::Api;
use crate::api::error::Error;

/// The interval at which kube-controller-manager counts.
const COUNTING: Duration = Duration::from_secs(300);
/// How often the clock is compared with Pods' grace periods. A write that needs what they hold does so at once.
const LOOKING: Duration = Duration::from_secs(5);

pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    loop {
        let counted = api.cache.any().loaded_at;
        api.recount_all().await?;
        for _ in 0..COUNTING.as_secs() / LOOKING.as_secs() {
            api.release_past_grace(None).await?;
            tokio::time::sleep(LOOKING).await;
            if api.cache.any().loaded_at != counted {
                break;
            }
        }
    }
}
