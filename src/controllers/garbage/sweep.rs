//! Sweeps through the objects of extension servers, which tell of no changes here: each server is listed every 30 s, and
//! sooner if an owner waits for its dependents. Each sweep is a task of its own, so that a server that hangs costs the
//! others nothing.

mod listing;
mod step;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use self::listing::Listing;
use self::step::{Done, RemoteCollector, Unanswered};
use super::collect::Question;
use super::collect::owners::Elsewhere;
use super::collect::remote::garbage_collector;
use super::remote_objects::{Objects, RemoteResource};
use crate::api::Api;
use crate::api::error::Error;
use crate::api::followers::api_services::discovered::{Discovered, Found};
use crate::api::followers::api_services::{API_SERVICES, ApiService, ApiServices};
use crate::controllers::api_services::something_changed;

/// The pause after a sweep.
const PERIOD: Duration = Duration::from_secs(30);
/// The pause if somebody waits, or if the last sweep has changed something, and the multiple of the sweep's own time that
/// it lasts at least.
const SHORT: (Duration, u32) = (Duration::from_millis(500), 4);
/// The time of a listing, and of the steps after it. What is left is done by the next sweep.
const TIME: Duration = Duration::from_secs(30);
/// Verbs that a resource must support to be collected (upstream's `GetDeletableResources`).
const VERBS: [&str; 3] = ["delete", "list", "watch"];

/// The state of an APIService here.
struct Followed {
    service: Arc<ApiService>,
    next: Instant,
    /// The earliest time of the next sweep.
    earliest: Instant,
    failures: u32,
    is_running: bool,
    /// Whether new listings were asked for while the sweep was running.
    is_wanted: bool,
}

/// The result of a sweep.
enum Outcome {
    Swept(Done),
    /// Nobody has asked the server for its resources yet.
    Undiscovered,
    Failed(String),
}

struct Sweeps {
    api: Arc<Api>,
    elsewhere: Arc<Elsewhere>,
    questions: mpsc::Sender<Question>,
    followed: HashMap<Box<str>, Followed>,
    running: JoinSet<(Box<str>, Duration, Outcome)>,
}

/// Sweeps for ever. Questions about dependents in this cluster go to the collector.
pub async fn run(
    api: Arc<Api>,
    elsewhere: Arc<Elsewhere>,
    questions: mpsc::Sender<Question>,
) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&API_SERVICES).cloned() else {
        return std::future::pending().await;
    };
    let mut watcher = api.cache.watch(resource.id, api.cache.any().revision);
    let mut sweeps = Sweeps {
        api: api.clone(),
        elsewhere: elsewhere.clone(),
        questions,
        followed: HashMap::new(),
        running: JoinSet::new(),
    };
    loop {
        let services = api.extensions.newest(&api.cache);
        sweeps.follow(&services);
        sweeps.start();
        let next = sweeps.followed.values().filter(|one| !one.is_running).map(|one| one.next).min();
        tokio::select! {
            has_changed = something_changed(&mut watcher) => if !has_changed? {
                return Err(Error::Internal("changes of APIServices are missing".to_owned()));
            },
            Some(ended) = sweeps.running.join_next() => {
                let (name, time, outcome) = ended.map_err(|died| Error::Internal(died.to_string()))?;
                sweeps.settle(&name, time, outcome);
            }
            () = elsewhere.objects.wanted() => sweeps.hurry(),
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {}
        }
    }
}

impl Sweeps {
    /// Takes over which remote APIServices there are. Those that have changed are swept now.
    fn follow(&mut self, services: &ApiServices) {
        self.elsewhere.objects.keep_only(services);
        let is_remote = |name: &str| services.all.get(name).is_some_and(|one| one.remote.is_some());
        self.followed.retain(|name, _| is_remote(name));
        for service in services.remote() {
            let now = Instant::now();
            let known = self.followed.entry(service.name.clone()).or_insert_with(|| Followed {
                service: service.clone(),
                next: now,
                earliest: now,
                failures: 0,
                is_running: false,
                is_wanted: false,
            });
            if !Arc::ptr_eq(&known.service, service) {
                known.service = service.clone();
                (known.failures, known.earliest) = (0, now);
                known.hurry();
            }
        }
    }

    /// Starts the sweeps that are due.
    fn start(&mut self) {
        let now = Instant::now();
        for (name, one) in self.followed.iter_mut().filter(|(_, one)| !one.is_running && one.next <= now) {
            (one.is_running, one.is_wanted) = (true, false);
            let (name, service) = (name.clone(), one.service.clone());
            let (api, elsewhere) = (self.api.clone(), self.elsewhere.clone());
            let questions = self.questions.clone();
            self.running.spawn(async move {
                let began = Instant::now();
                let outcome = sweep(&api, &elsewhere, &questions, &service).await;
                (name, began.elapsed(), outcome)
            });
        }
    }

    fn settle(&mut self, name: &str, time: Duration, outcome: Outcome) {
        let Some(one) = self.followed.get_mut(name) else { return };
        one.is_running = false;
        let short = SHORT.0.max(time.saturating_mul(SHORT.1)).min(PERIOD);
        let is_soon = match outcome {
            Outcome::Swept(done) => {
                one.failures = 0;
                done == Done::Changed || one.is_wanted
            }
            Outcome::Undiscovered => true,
            Outcome::Failed(why) => {
                if one.failures == 0 {
                    tracing::warn!(apiservice = name, why, "its objects cannot be collected");
                }
                one.failures = one.failures.saturating_add(1);
                false
            }
        };
        one.earliest = Instant::now() + short.saturating_mul(1 << one.failures.min(10)).min(PERIOD);
        one.next = if is_soon || one.failures > 0 { one.earliest } else { Instant::now() + PERIOD };
    }

    fn hurry(&mut self) {
        self.followed.values_mut().for_each(Followed::hurry);
    }
}

impl Followed {
    fn hurry(&mut self) {
        self.is_wanted |= self.is_running;
        self.next = self.next.min(self.earliest);
    }
}

/// Lists the objects of an extension server, and does the next step for each.
async fn sweep(
    api: &Api,
    elsewhere: &Elsewhere,
    questions: &mpsc::Sender<Question>,
    service: &ApiService,
) -> Outcome {
    let (began, at) = (Instant::now(), api.cache.any().revision);
    let discovered = api.extensions.discovered.load_full();
    let found = discovered.versions.get(&service.version);
    let Some(remote) = service.remote.as_deref() else { return Outcome::Swept(Done::Nothing) };
    if found.is_none() && service.condition.is_true() {
        return Outcome::Undiscovered;
    }
    let failed = |why: String| {
        elsewhere.objects.note(service, None);
        Outcome::Failed(why)
    };
    let Some(found) = found.filter(|found| found.is_current && service.condition.is_true()) else {
        return failed("the server is not available".to_owned());
    };
    let services = api.extensions.newest(&api.cache);
    let resources = collected(service, found, &services, &discovered);
    let user = garbage_collector();
    let mut listing = Listing::default();
    let listed = timeout(TIME, async {
        for resource in resources {
            listing.add(api, remote, &resource, &user).await?;
        }
        Ok::<(), String>(())
    });
    match listed.await {
        Ok(Ok(())) => {}
        Ok(Err(why)) => return failed(why),
        Err(_) => return failed(format!("a list of its objects takes more than {TIME:?}")),
    }
    let before = elsewhere.objects.of(service);
    let objects = Arc::new(Objects::new((began, at), listing.objects, before.as_deref()));
    elsewhere.objects.note(service, Some(objects.clone()));
    if objects.all().is_empty() {
        return Outcome::Swept(Done::Nothing);
    }
    // An owner that is not in a state since the listing is gone.
    let Ok(state) = api.cache.fresh().await else { return Outcome::Swept(Done::Changed) };
    let mut collector = RemoteCollector {
        api,
        elsewhere,
        questions,
        remote,
        user: &user,
        objects: &objects,
        listed: &listing.owners,
        decided_at: state.revision,
        silent: HashSet::new(),
    };
    let mut done = Done::Nothing;
    let until = Instant::now() + TIME;
    for object in objects.all().iter().take_while(|_| Instant::now() < until) {
        match collector.collect(object).await {
            Ok(Done::Nothing) => {}
            Ok(Done::Changed) => done = Done::Changed,
            Err(Unanswered(why)) => return failed(why),
        }
    }
    Outcome::Swept(done)
}

/// The resources whose objects are collected. Of the versions of a group the one with the highest priority shows them.
fn collected(
    service: &ApiService,
    found: &Found,
    services: &ApiServices,
    discovered: &Discovered,
) -> Vec<Arc<RemoteResource>> {
    let rank = |one: &ApiService| (std::cmp::Reverse(one.version_priority), one.name.clone());
    let has = |found: &Found, plural: &str| {
        let all = |verbs: &[&str]| VERBS.iter().all(|verb| verbs.contains(verb));
        found.listed().any(|resource| resource.plural == plural && all(&resource.verbs))
    };
    let shows_it_first = |other: &ApiService, plural: &str| {
        other.version.group() == service.version.group()
            && rank(other) < rank(service)
            && other.condition.is_true()
            && discovered
                .versions
                .get(&other.version)
                .is_some_and(|found| found.is_current && has(found, plural))
    };
    let is_collected =
        |plural: &str| has(found, plural) && !services.remote().any(|other| shows_it_first(other, plural));
    let resources = found.listed().filter(|resource| is_collected(resource.plural));
    let resource = |plural: &str, is_namespaced| RemoteResource {
        api_version: service.version.api_version().to_string(),
        plural: plural.to_owned(),
        is_namespaced,
    };
    resources.map(|one| Arc::new(resource(one.plural, one.is_namespaced))).collect()
}
