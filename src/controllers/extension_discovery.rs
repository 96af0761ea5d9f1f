//! The resources of extension servers, which every replica asks for itself (kube-aggregator's `DiscoveryManager`): at every change
//! of an APIService, and every minute. A server that does not answer costs the others nothing; what it had said stays.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use hyper::header;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::api_services::something_changed;
use super::availability::{aggregator, path_of};
use crate::api::Api;
use crate::api::error::Error;
use crate::api::followers::api_services::discovered::{self, Discovered, Found};
use crate::api::followers::api_services::{API_SERVICES, ApiService, ApiServices, Remote};
use crate::relay::call::{Answered, Call};
use crate::schema::names::GroupVersion;
use crate::tree::Value;

const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// For an answer.
const TIME: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read.
const LIMIT: usize = 8 << 20;
/// The pause after an answer.
const PERIOD: Duration = Duration::from_secs(60);
/// The first pause after a failure; the next ones are twice as long each.
const FIRST_RETRY: Duration = Duration::from_millis(500);

/// The resources of all group versions that a Service has.
#[derive(Clone)]
struct Document {
    tag: String,
    versions: Arc<HashMap<GroupVersion, Vec<Value>>>,
}

/// The state of an APIService here.
struct Followed {
    service: Arc<ApiService>,
    /// When it was marked to be looked at.
    next: Instant,
    failures: u32,
    is_running: bool,
    is_tried: bool,
}

/// The namespace, name and port of a Service.
type Place = (String, String, u16);

/// The result of a look at an APIService.
enum Outcome {
    Fetched(Document),
    /// The document that is known is still right.
    Same,
    Legacy(Vec<Value>),
    Failed(String),
}

struct Looks {
    followed: HashMap<Box<str>, Followed>,
    documents: HashMap<Place, Document>,
    found: HashMap<GroupVersion, Arc<Found>>,
    running: JoinSet<(Box<str>, Outcome)>,
}

/// Looks at all APIServices for ever. `all_tried` is called when all that there are were looked at.
pub async fn run(api: Arc<Api>, all_tried: Arc<dyn Fn() + Send + Sync>) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&API_SERVICES).cloned() else {
        all_tried();
        return std::future::pending().await;
    };
    let mut watcher = api.cache.watch(resource.id, api.cache.any().revision);
    let mut looks = Looks {
        followed: HashMap::new(),
        documents: HashMap::new(),
        found: HashMap::new(),
        running: JoinSet::new(),
    };
    loop {
        looks.follow(&api.extensions.newest(&api.cache));
        looks.publish(&api);
        if looks.followed.values().all(|one| one.is_tried) {
            all_tried();
        }
        looks.start(&api);
        let next = looks.followed.values().filter(|one| !one.is_running).map(|one| one.next).min();
        tokio::select! {
            has_changed = something_changed(&mut watcher) => if !has_changed? { return Ok(()) },
            Some(ended) = looks.running.join_next() => {
                let (name, outcome) = ended.map_err(|died| Error::Internal(died.to_string()))?;
                looks.settle(&name, outcome);
            }
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
    }
}

impl Looks {
    /// Takes over which remote APIServices there are. Those that have changed are looked at now.
    fn follow(&mut self, services: &ApiServices) {
        self.followed
            .retain(|name, _| services.all.get(name).is_some_and(|service| service.remote.is_some()));
        for service in services.remote() {
            let known = self.followed.get_mut(&service.name);
            match known {
                Some(known) if Arc::ptr_eq(&known.service, service) => {}
                Some(known) => {
                    known.service = service.clone();
                    known.next = Instant::now();
                    known.failures = 0;
                }
                None => {
                    let new = Followed {
                        service: service.clone(),
                        next: Instant::now(),
                        failures: 0,
                        is_running: false,
                        is_tried: false,
                    };
                    self.followed.insert(service.name.clone(), new);
                }
            }
        }
        let used: BTreeSet<Place> =
            services.remote().filter_map(|one| one.remote.as_deref()).map(place).collect();
        self.documents.retain(|place, _| used.contains(place));
        let versions: BTreeSet<String> =
            services.remote().map(|service| service.version.api_version().to_string()).collect();
        self.found.retain(|version, _| versions.contains(version.api_version().as_str()));
    }

    /// Shows what is known to requests, if it is something else than before.
    fn publish(&self, api: &Api) {
        let shown = api.extensions.discovered.load();
        if shown.versions != self.found {
            let next = Discovered { versions: self.found.clone(), generation: shown.generation + 1 };
            api.extensions.discovered.store(Arc::new(next));
        }
    }

    /// Starts the looks that are due. Each has a task of its own, so that none waits for a server that hangs.
    fn start(&mut self, api: &Arc<Api>) {
        let now = Instant::now();
        for (name, one) in self.followed.iter_mut().filter(|(_, one)| !one.is_running && one.next <= now) {
            let Some(remote) = one.service.remote.clone() else { continue };
            one.is_running = true;
            // A change that comes from now on is a reason for another look.
            one.next = now + PERIOD;
            let known = self.documents.get(&place(&remote)).cloned();
            let (api, name, service) = (api.clone(), name.clone(), one.service.clone());
            self.running.spawn(async move { (name, look(&api, &service, &remote, known).await) });
        }
    }

    /// Takes the result of a look in.
    fn settle(&mut self, name: &str, outcome: Outcome) {
        let Some(one) = self.followed.get_mut(name) else { return };
        let Some(remote) = one.service.remote.clone() else { return };
        (one.is_running, one.is_tried) = (false, true);
        let version = one.service.version.clone();
        let is_current = !matches!(outcome, Outcome::Failed(_));
        let resources = match outcome {
            Outcome::Legacy(resources) => Some(resources),
            Outcome::Fetched(document) => {
                let own = document.versions.get(&version).cloned().unwrap_or_default();
                self.documents.insert(place(&remote), document);
                Some(own)
            }
            Outcome::Same => {
                self.documents.get(&place(&remote)).and_then(|known| known.versions.get(&version).cloned())
            }
            Outcome::Failed(why) => {
                tracing::debug!(apiservice = name, why, "its resources cannot be asked for");
                one.failures = one.failures.saturating_add(1);
                let pause = FIRST_RETRY.saturating_mul(1 << (one.failures - 1).min(10)).min(PERIOD);
                one.next = one.next.min(Instant::now() + pause);
                None
            }
        };
        if is_current {
            one.failures = 0;
        }
        let before = self.found.get(&version).map(|found| found.resources.clone()).unwrap_or_default();
        let found = Found { resources: resources.unwrap_or(before), is_current };
        if self.found.get(&version).is_none_or(|known| **known != found) {
            self.found.insert(version, Arc::new(found));
        }
    }
}

fn place(remote: &Remote) -> Place {
    let service = remote.service();
    (service.namespace.to_owned(), service.name.to_owned(), service.port)
}

/// Asks for all resources of the Service, or else for those of the group version.
async fn look(api: &Api, service: &ApiService, remote: &Remote, known: Option<Document>) -> Outcome {
    let user = aggregator();
    let tag = known.as_ref().map(|known| known.tag.as_str()).filter(|tag| !tag.is_empty());
    let call = Call { accept: ACCEPT, known: tag, ..Call::get("/apis", &user, TIME, LIMIT) };
    let answer = match api.call_extension(remote, &call).await {
        Ok(answer) => answer,
        Err(why) => return Outcome::Failed(why),
    };
    match answer.status {
        304 if known.is_some() => return Outcome::Same,
        503 => return Outcome::Failed("the server answers with 503".to_owned()),
        200 if is_aggregated(&answer) => {
            return match discovered::of_aggregated(&answer.body) {
                Ok(versions) => {
                    let tag = answer.header(&header::ETAG).to_owned();
                    Outcome::Fetched(Document { tag, versions: Arc::new(versions) })
                }
                Err(why) => Outcome::Failed(why),
            };
        }
        _ => {}
    }
    let path = path_of(service);
    let call = Call { path: &path, accept: "application/json", known: None, ..call };
    match api.call_extension(remote, &call).await {
        Ok(Answered { status: 200, body, .. }) => {
            discovered::of_legacy(&body).map_or_else(Outcome::Failed, Outcome::Legacy)
        }
        Ok(Answered { status, .. }) => Outcome::Failed(format!("the server answers with {status}")),
        Err(why) => Outcome::Failed(why),
    }
}

/// Whether the content type says that the answer is an `APIGroupDiscoveryList` of v2.
fn is_aggregated(answer: &Answered) -> bool {
    let kind = answer.header(&header::CONTENT_TYPE).replace(' ', "");
    let mut parts = kind.split(';');
    let has = |part: &str| kind.split(';').any(|own| own == part);
    parts.next() == Some("application/json")
        && has("g=apidiscovery.k8s.io")
        && has("v=v2")
        && has("as=APIGroupDiscoveryList")
}
