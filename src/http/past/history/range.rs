//! How far back the history goes, and how many changes there were when.

use axum::http::request::Parts;

use super::changes::{oldest, permitted_all};
use crate::api::error::Error;
use crate::api::verbs::past::time;
use crate::gotext;
use crate::http::app::App;
use crate::http::request::{query, user};
use crate::revision::Revision;
use crate::tree::{Value, json};

/// The most buckets: each takes a query.
const MOST: u64 = 500;

/// `{"oldest": …, "now": …, "buckets": […]}`: revisions of the whole cluster by buckets of equal time.
pub(super) async fn range(app: &App, parts: &Parts) -> Result<Value, Error> {
    let text = query(parts).text("buckets").to_owned();
    let buckets = match text.as_str() {
        "" => 0,
        text => gotext::parse_uint(text).map_err(|why| {
            Error::BadRequest(format!("buckets: invalid value {}: {why}", gotext::quote(text)))
        })?,
    };
    let buckets = i64::try_from(buckets.min(MOST)).unwrap_or_default();
    let allowed = permitted_all(app, &user(parts)).await?;
    let _read = app.past_reads.turn(tokio::time::Instant::now() + app.limits.request_time).await?;
    let first = app.api.moment_of(oldest(app, &allowed).await?).await?;
    let last = app.api.moment_of(app.api.cache.fresh().await?.revision).await?;
    let moment = |revision: Revision, ms: i64| json!({"revision": revision.to_string(), "time": time(ms)});
    let mut counts = Vec::new();
    let span = last.committed_ms - first.committed_ms;
    let mut reached = first.revision;
    for bucket in 1..=buckets {
        let end = match bucket == buckets {
            true => last,
            false => app.api.moment_at(first.committed_ms + span * bucket / buckets).await?,
        };
        counts.push(Value::from(end.revision.0.saturating_sub(reached.0)));
        reached = end.revision.max(reached);
    }
    Ok(json!({
        "oldest": moment(first.revision, first.committed_ms),
        "now": moment(last.revision, last.committed_ms),
        "buckets": counts,
    }))
}
