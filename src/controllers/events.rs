//! Events expire: one is deleted a fixed time after it was last seen, as upstream's leases do.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::api::error::Error;
use crate::api::options::delete::{DeleteOptions, Preconditions};
use crate::api::resource::Resource;
use crate::api::{Api, Target};
use crate::cache::Range;
use crate::codec::object::Object;
use crate::long_work;
use crate::revision::Revision;
use crate::tree::Value;

/// An object is never looked at again sooner than this.
const SHORTEST: Duration = Duration::from_millis(100);

/// Where an event's last sighting may stand, in both versions of the kind.
const TIMES: [&str; 7] = [
    "/lastTimestamp",
    "/deprecatedLastTimestamp",
    "/series/lastObservedTime",
    "/eventTime",
    "/firstTimestamp",
    "/deprecatedFirstTimestamp",
    "/metadata/creationTimestamp",
];

/// What is due, soonest first. An entry whose revision is not the object's any more is void.
type Due = BinaryHeap<Reverse<(Timestamp, Revision, Box<str>)>>;

pub async fn run(api: Arc<Api>, ttl: Duration) -> Result<(), Error> {
    let Some(events) = api.resources.get("", "v1", "events").cloned() else { return Ok(()) };
    let state = api.cache.any();
    let mut watcher = api.cache.watch(events.id, state.revision);
    let mut due = Due::new();
    let all = state.objects(events.id);
    long_work::run(|| due.extend(all.range(&Range::of(None)).map(|object| entry(object, ttl))));
    drop(all);
    loop {
        loop {
            let changes = watcher.next().await?;
            if changes.is_empty() {
                break;
            }
            due.extend(changes.iter().filter_map(|change| change.current.as_deref()).map(|o| entry(o, ttl)));
        }
        expire(&api, &events, &mut due).await?;
        match due.peek() {
            Some(Reverse((at, ..))) => {
                let wait = Duration::try_from(at.duration_since(Timestamp::now())).unwrap_or_default();
                let _ = tokio::time::timeout(wait.max(SHORTEST), watcher.changed()).await;
            }
            None => watcher.changed().await,
        }
    }
}

fn entry(object: &Object, ttl: Duration) -> Reverse<(Timestamp, Revision, Box<str>)> {
    let seen = object.to_map().map(Value::Object).map_or(Timestamp::now(), |event| last_seen(&event));
    let ttl = SignedDuration::try_from(ttl).unwrap_or(SignedDuration::MAX);
    let at = seen.checked_add(ttl).unwrap_or(Timestamp::MAX);
    Reverse((at, object.revision(), object.key().into()))
}

/// The newest of an event's times. One in the future, as a wrong clock would write, does not keep it alive.
fn last_seen(event: &Value) -> Timestamp {
    let now = Timestamp::now();
    let times = TIMES.iter().filter_map(|path| event.pointer(path)?.as_str()?.parse::<Timestamp>().ok());
    times.max().unwrap_or(now).min(now)
}

async fn expire(api: &Api, events: &Arc<Resource>, due: &mut Due) -> Result<(), Error> {
    let now = Timestamp::now();
    while let Some(Reverse((at, revision, key))) = due.peek() {
        if *at > now {
            return Ok(());
        }
        let (namespace, name) = key.split_once('\0').unwrap_or(("", key));
        let target = Target { resource: events, namespace, name };
        let preconditions = Preconditions { uid: None, resource_version: Some(revision.to_string()) };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        match api.delete(target, &options).await {
            // A newer version has an entry of its own.
            Ok(_) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        due.pop();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::tree::json;

    use super::*;

    #[test]
    fn the_newest_time_counts_and_the_future_does_not() {
        let event = json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "lastTimestamp": "2026-01-01T02:00:00Z", "eventTime": "2026-01-01T01:00:00.000000Z"});
        assert_eq!(last_seen(&event).to_string(), "2026-01-01T02:00:00Z");
        let wrong = json!({"lastTimestamp": "2999-01-01T02:00:00Z"});
        assert!(last_seen(&wrong) <= Timestamp::now());
    }
}
