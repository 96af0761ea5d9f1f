//! Counts the quotas again: at the start, for quotas and objects that earlier releases have written, and now and then,
//! for objects that nobody could read when they were written or deleted.

use std::sync::Arc;
use std::time::Duration;

use crate::api::Api;
use crate::api::error::Error;

/// As often as kube-controller-manager does.
const INTERVAL: Duration = Duration::from_secs(300);

pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    loop {
        api.recount_all().await?;
        tokio::time::sleep(INTERVAL).await;
    }
}
