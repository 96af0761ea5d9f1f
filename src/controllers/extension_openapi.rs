//! The OpenAPI documents of extension servers, which every replica fetches for itself, every minute and when an APIService has
//! changed. What was fetched stays while a server does not answer.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use hyper::header;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::api_services::something_changed;
use crate::api::Api;
use crate::api::error::Error;
use crate::api::followers::api_services::openapi::{OpenApiParts, V2Part};
use crate::api::followers::api_services::{API_SERVICES, ApiService, ApiServices, Remote};
use crate::relay::call::{Answered, Call};
use crate::tree::Value;
use crate::user::User;

/// The time of a document of v2, which may be large, and of the index of v3.
const TIME: Duration = Duration::from_secs(60);
const INDEX_TIME: Duration = Duration::from_secs(5);
/// Bytes of a document that are read.
const LIMIT: usize = 16 << 20;
/// The pause after an answer.
const PERIOD: Duration = Duration::from_secs(60);
/// The longest pause after failures; the first one is [`PERIOD`].
const LONGEST: Duration = Duration::from_secs(3600);

/// The documents of an APIService.
#[derive(Clone, Default)]
struct Fetched {
    v3: Option<Arc<str>>,
    /// Whether the server has documents of v2 alone.
    has_no_v3: bool,
    v2: Option<Arc<V2Part>>,
    /// The tag of the document of v2.
    tag: String,
}

struct Followed {
    service: Arc<ApiService>,
    fetched: Fetched,
    next: Instant,
    failures: u32,
    is_running: bool,
}

type Running = JoinSet<(Box<str>, Result<Fetched, String>)>;

/// The user of these requests.
pub fn fetcher() -> User {
    User { name: "system:aggregator".to_owned(), ..User::default() }
}

/// Fetches for ever.
pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&API_SERVICES).cloned() else {
        return std::future::pending().await;
    };
    let mut watcher = api.cache.watch(resource.id, api.cache.any().revision);
    let mut followed: HashMap<Box<str>, Followed> = HashMap::new();
    let mut running = Running::new();
    loop {
        follow(&api.extensions.newest(&api.cache), &mut followed);
        publish(&api, &followed);
        start(&api, &mut followed, &mut running);
        let next = followed.values().filter(|one| !one.is_running).map(|one| one.next).min();
        tokio::select! {
            has_changed = something_changed(&mut watcher) => if !has_changed? { return Ok(()) },
            Some(ended) = running.join_next() => {
                let (name, result) = ended.map_err(|died| Error::Internal(died.to_string()))?;
                settle(&mut followed, &name, result);
            }
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
    }
}

fn follow(services: &ApiServices, followed: &mut HashMap<Box<str>, Followed>) {
    followed.retain(|name, _| services.all.get(name).is_some_and(|service| service.remote.is_some()));
    for service in services.remote() {
        match followed.get_mut(&service.name) {
            Some(known) if Arc::ptr_eq(&known.service, service) => {}
            Some(known) => {
                known.service = service.clone();
                (known.next, known.failures) = (Instant::now(), 0);
            }
            None => {
                let new = Followed {
                    service: service.clone(),
                    fetched: Fetched::default(),
                    next: Instant::now(),
                    failures: 0,
                    is_running: false,
                };
                followed.insert(service.name.clone(), new);
            }
        }
    }
}

/// Starts what is due. Nobody asks a server that is not available.
fn start(api: &Arc<Api>, followed: &mut HashMap<Box<str>, Followed>, running: &mut Running) {
    let now = Instant::now();
    for (name, one) in followed.iter_mut().filter(|(_, one)| !one.is_running && one.next <= now) {
        one.next = now + PERIOD;
        let Some(remote) = one.service.remote.clone().filter(|_| one.service.condition.is_true()) else {
            continue;
        };
        one.is_running = true;
        let (api, name, service, known) =
            (api.clone(), name.clone(), one.service.clone(), one.fetched.clone());
        running.spawn(async move { (name, fetch(&api, &service, &remote, known).await) });
    }
}

fn settle(followed: &mut HashMap<Box<str>, Followed>, name: &str, result: Result<Fetched, String>) {
    let Some(one) = followed.get_mut(name) else { return };
    one.is_running = false;
    match result {
        Ok(fetched) => (one.fetched, one.failures) = (fetched, 0),
        Err(why) => {
            tracing::debug!(apiservice = name, why, "its OpenAPI cannot be fetched");
            one.next = Instant::now() + PERIOD.saturating_mul(1 << one.failures.min(10)).min(LONGEST);
            one.failures = one.failures.saturating_add(1);
        }
    }
}

/// Shows what was fetched to requests, if it is something else than before.
fn publish(api: &Api, followed: &HashMap<Box<str>, Followed>) {
    let shown = api.extensions.openapi.load();
    let mut all: Vec<&Followed> = followed.values().collect();
    all.sort_by_key(|one| {
        let ApiService { group_priority, version_priority, name, .. } = &*one.service;
        (std::cmp::Reverse(*group_priority), std::cmp::Reverse(*version_priority), name.clone())
    });
    let v2: Vec<Arc<V2Part>> = all.iter().filter_map(|one| one.fetched.v2.clone()).collect();
    let v3: BTreeMap<String, Arc<str>> =
        all.iter().filter_map(|one| Some((path_of(&one.service), one.fetched.v3.clone()?))).collect();
    let converted: BTreeMap<String, Arc<V2Part>> = all
        .iter()
        .filter(|one| one.fetched.has_no_v3)
        .filter_map(|one| Some((path_of(&one.service), one.fetched.v2.clone()?)))
        .collect();
    let is_same = v3 == shown.v3
        && converted.keys().eq(shown.converted.keys())
        && v2.len() == shown.v2.len()
        && v2.iter().zip(&shown.v2).all(|(one, other)| Arc::ptr_eq(one, other));
    if !is_same {
        api.extensions.openapi.store(Arc::new(OpenApiParts {
            v3,
            converted,
            v2,
            generation: shown.generation + 1,
        }));
    }
}

/// The path of a group version in the index of v3.
fn path_of(service: &ApiService) -> String {
    super::availability::path_of(service).trim_start_matches('/').to_owned()
}

async fn fetch(api: &Api, service: &ApiService, remote: &Remote, known: Fetched) -> Result<Fetched, String> {
    let user = fetcher();
    let call = Call::get("/openapi/v3", &user, INDEX_TIME, LIMIT);
    let (v3, has_no_v3) = match api.call_extension(remote, &call).await? {
        Answered { status: 200, body, .. } => (url_of(&body, &path_of(service)), false),
        Answered { status: 404, .. } => (None, true),
        Answered { status, .. } => return Err(format!("/openapi/v3: the server answers with {status}")),
    };
    let tag = Some(known.tag.as_str()).filter(|tag| !tag.is_empty());
    let call = Call { path: "/openapi/v2", known: tag, time: TIME, ..call };
    let answer = api.call_extension(remote, &call).await?;
    match answer.status {
        304 => Ok(Fetched { v3, has_no_v3, ..known }),
        404 => Ok(Fetched { v3, has_no_v3, v2: None, tag: String::new() }),
        200 => {
            let tag = answer.header(&header::ETAG).to_owned();
            let version = service.version.clone();
            let reading = tokio::task::spawn_blocking(move || V2Part::of(&version, &answer.body));
            let part = reading.await.map_err(|died| died.to_string())??;
            let same = known.v2.filter(|known| **known == part);
            let v2 = Some(same.unwrap_or_else(|| Arc::new(part)));
            Ok(Fetched { v3, has_no_v3, v2, tag })
        }
        status => Err(format!("/openapi/v2: the server answers with {status}")),
    }
}

/// The URL of a document in the index of v3.
fn url_of(index: &[u8], path: &str) -> Option<Arc<str>> {
    let index: Value = serde_json::from_slice(index).ok()?;
    index.get("paths")?.get(path)?.get("serverRelativeURL")?.as_str().map(Arc::from)
}
