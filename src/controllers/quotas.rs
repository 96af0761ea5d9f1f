//! Counts the quotas again: at the start, for quotas and objects that earlier releases have written; now and then, for
//! objects that nobody could read when they were written or deleted; and when the state has been read anew, since a
//! failover may have lost what a count has added. In between it gives back what Pods hold that are past their grace period.

use std::sync::Arc;
use std::time::Duration;

use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::request::Request;
use crate::api::{Api, ObjectMap, Target, fields};
use crate::cache::Range;
use crate::kinds::behavior::part::Part;
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;

const QUOTAS: Gvr = Gvr::fixed("v1", "resourcequotas");

/// The interval at which kube-controller-manager counts.
const COUNTING: Duration = Duration::from_secs(300);
/// How often the clock is compared with Pods' grace periods. A write that needs what they hold does so at once.
const LOOKING: Duration = Duration::from_secs(5);

pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    loop {
        let counted = api.cache.any().loaded_at;
        recount_all(&api).await?;
        for _ in 0..COUNTING.as_secs() / LOOKING.as_secs() {
            api.release_past_grace(None).await?;
            tokio::time::sleep(LOOKING).await;
            if api.cache.any().loaded_at != counted {
                break;
            }
        }
    }
}

/// Counts all quotas again, and those for the first time that an earlier release has stored.
async fn recount_all(api: &Api) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&QUOTAS) else { return Ok(()) };
    api.drop_old_notes().await?;
    let state = api.cache.any();
    for found in state.objects(resource.id).range(&Range::of(None)) {
        let target = Target { resource, namespace: found.namespace(), name: found.name() };
        let Ok(quota) = resource.decode(found) else { continue };
        let hard = |part: &str| fields::at(&quota, &[part, "hard"]).cloned();
        let counted = match hard("spec") != hard("status") {
            true => begin_counting(api, target, quota).await,
            false => api.recount(target.namespace, target.name).await,
        };
        match counted {
            // It was deleted or written meanwhile, and is counted by that.
            Ok(()) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Writes the status of a quota whose status is not that of its spec.
async fn begin_counting(api: &Api, target: Target<'_>, mut quota: ObjectMap) -> Result<(), Error> {
    let Some(hard) = fields::at(&quota, &["spec", "hard"]).cloned() else { return Ok(()) };
    fields::object_mut(&mut quota, "status").insert("hard", hard);
    let request = Request::own(Verb::Update, target).on(Part::Status);
    api.update(&request, Body::Object(&quota)).await.map(drop)
}
