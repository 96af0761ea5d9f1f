//! Events expire: each is deleted a fixed time after its last write, as upstream's leases do it.
//!
//! The time is measured by this process's clock, from the moment when this server first saw that version of the event.
//! The times inside an event are never used: they come from other hosts' clocks, which may be wrong by a day. When a
//! server starts to lead, every event gets its whole time again, as etcd does with leases.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::api::error::Error;
use crate::api::options::delete::{DeleteOptions, Preconditions};
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::{Api, Target};
use crate::cache::Range;
use crate::codec::object::Object;
use crate::long_work;
use crate::revision::Revision;
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;

/// The shortest pause between two checks.
const SHORTEST: Duration = Duration::from_millis(100);

/// A version of an event. Ignored once a newer version exists, which has an entry of its own.
#[derive(Debug)]
struct Seen {
    at: Instant,
    revision: Revision,
    key: Box<str>,
}

/// All events in the order in which this server has seen them.
#[derive(Debug)]
struct Ages {
    ttl: Duration,
    seen: VecDeque<Seen>,
}

impl Ages {
    fn see(&mut self, event: &Object, now: Instant) {
        self.seen.push_back(Seen { at: now, revision: event.revision(), key: event.key().into() });
    }

    /// The oldest event, if it is due.
    fn due(&self, now: Instant) -> Option<&Seen> {
        self.seen.front().filter(|first| now.duration_since(first.at) >= self.ttl)
    }

    /// The time until the next event is due.
    fn rest(&self, now: Instant) -> Option<Duration> {
        self.seen.front().map(|first| self.ttl.saturating_sub(now.duration_since(first.at)))
    }
}

pub async fn run(api: Arc<Api>, ttl: Duration) -> Result<(), Error> {
    let Some(events) = api.resources.get(&Gvr::fixed("v1", "events")).cloned() else { return Ok(()) };
    let state = api.cache.any();
    let mut watcher = api.cache.watch(events.id, state.revision);
    let mut ages = Ages { ttl, seen: VecDeque::new() };
    let all = state.objects(events.id);
    let now = || now(&api);
    long_work::run(|| all.range(&Range::of(None)).for_each(|object| ages.see(object, now())));
    drop((all, state));
    loop {
        loop {
            let changes = watcher.next().await?;
            if changes.is_empty() {
                break;
            }
            for object in changes.iter().filter_map(|change| change.current.as_deref()) {
                ages.see(object, now());
            }
        }
        expire(&api, &events, &mut ages).await?;
        let advanced = api.runtime.clock.advanced();
        match ages.rest(now()) {
            Some(wait) => tokio::select! {
                _ = tokio::time::timeout(wait.max(SHORTEST), watcher.changed()) => {}
                () = api.runtime.clock.advanced_beyond(advanced) => {}
            },
            None => watcher.changed().await,
        }
    }
}

/// The time by this process's clock, and by how much a test has advanced that of the server.
fn now(api: &Api) -> Instant {
    let now = Instant::now();
    now.checked_add(api.runtime.clock.advanced()).unwrap_or(now)
}

async fn expire(api: &Api, events: &Arc<Resource>, ages: &mut Ages) -> Result<(), Error> {
    while let Some(Seen { revision, key, .. }) = ages.due(now(api)) {
        let (namespace, name) = key.split_once('\0').unwrap_or(("", key));
        if may_go(api, events, *revision, (namespace, name)) {
            let target = Target { resource: events, namespace, name };
            let preconditions = Preconditions { uid: None, resource_version: Some(revision.to_string()) };
            let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
            match api.delete(&Request::own(Verb::Delete, target).with(&options)).await {
                Ok(_) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        ages.seen.pop_front();
    }
    Ok(())
}

/// Whether the event may be deleted. Not if it cannot be read, since it may have finalizers.
fn may_go(api: &Api, events: &Resource, revision: Revision, (namespace, name): (&str, &str)) -> bool {
    let found = api.cache.any().get(events.id, namespace, name);
    let Some(event) = found.filter(|event| event.revision() == revision) else { return false };
    match event.json() {
        Ok(_) => true,
        Err(error) => {
            api.unreadable.tell("event-expiry", &event, error);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::object::Draft;
    use crate::tree::json;

    /// The result is the same whether this server's clock is a day ahead or the clock of the event's author is.
    #[test]
    fn an_event_lives_its_time_from_when_it_was_seen_whatever_its_times_say() {
        let event = |name: &str, time: &str, revision| {
            let times = json!({"metadata": {"name": name, "creationTimestamp": time}, "lastTimestamp": time});
            Draft::of_json("ns", name, times.to_string().into()).into_object(Revision(revision))
        };
        let (start, hour) = (Instant::now(), Duration::from_secs(3600));
        let mut ages = Ages { ttl: hour, seen: VecDeque::new() };
        assert_eq!(ages.rest(start), None);
        ages.see(&event("old", "2001-01-01T00:00:00Z", 1), start);
        ages.see(&event("new", "2999-01-01T00:00:00Z", 2), start + hour / 2);
        let due = |ages: &Ages, now| ages.due(now).map(|seen| (seen.revision.0, seen.key.to_string()));
        assert_eq!(due(&ages, start + hour - Duration::from_secs(1)), None);
        assert_eq!(ages.rest(start + hour / 4), Some(hour * 3 / 4));
        assert_eq!(due(&ages, start + hour), Some((1, "ns\0old".to_owned())));
        ages.seen.pop_front();
        assert_eq!(due(&ages, start + hour), None);
        assert_eq!(due(&ages, start + hour * 3 / 2), Some((2, "ns\0new".to_owned())));
    }
}
