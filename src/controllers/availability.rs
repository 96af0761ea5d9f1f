//! The condition `Available` of APIServices (kube-aggregator's `AvailableConditionController`): whether extension servers can
//! be reached and answer. One replica looks for all.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::api_services::something_changed;
use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::extensions::NoRoute;
use crate::api::followers::api_services::{API_SERVICES, ApiService, ApiServices, Condition, Remote};
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::service_routes::{self, SERVICE_NAME};
use crate::api::{Api, Target, fields};
use crate::cache::Watcher;
use crate::kinds::behavior::part::Part;
use crate::relay::call::Call;
use crate::schema::resource::Verb;
use crate::storage::{self, ResourceId};
use crate::tree::{Value, json};
use crate::user::{MASTERS, User};

/// Checks at a time.
const WORKERS: usize = 5;
/// How often the discovery of an extension server is asked for in one check: behind a Service are several.
const ATTEMPTS: usize = 5;
/// The time of one attempt.
const ATTEMPT_TIME: Duration = Duration::from_secs(5);
/// The pause between two checks without a cause.
const PERIOD: Duration = Duration::from_secs(30);
/// The first pause after a failed attempt to reach a server; the next ones are twice as long each.
const FIRST_RETRY: Duration = Duration::from_millis(5);

/// A remote APIService that is looked at regularly.
struct Checked {
    remote: Arc<Remote>,
    next: Instant,
    failures: u32,
    is_running: bool,
}

/// The result of a check.
enum Found {
    Condition(Condition),
    /// The server was asked, and none of the attempts was answered well.
    Failed(Condition),
    /// Nobody could ask, by the settings of the APIService.
    Unusable,
}

/// The user of requests that check, and that fetch documents.
pub fn aggregator() -> User {
    let groups = vec![MASTERS.to_owned()];
    User { name: "system:kube-aggregator".to_owned(), groups, ..User::default() }
}

/// Checks all APIServices for ever.
pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&API_SERVICES).cloned() else {
        return std::future::pending().await;
    };
    let mut watcher = api.cache.watch(resource.id, api.cache.any().revision);
    let mut surroundings: Option<Surroundings> = None;
    let mut checked: HashMap<Box<str>, Checked> = HashMap::new();
    let mut running: JoinSet<(Box<str>, Found)> = JoinSet::new();
    loop {
        let services = api.extensions.newest(&api.cache);
        repair_local(&api, &resource, &services).await?;
        follow(&services, &mut checked);
        match (checked.is_empty(), &surroundings) {
            (true, _) => surroundings = None,
            (false, None) => surroundings = Some(Surroundings::of(&api)),
            (false, Some(_)) => {}
        }
        start(&api, &services, &mut checked, &mut running);
        let next = checked.values().filter(|one| !one.is_running).map(|one| one.next).min();
        let has_room = running.len() < WORKERS;
        tokio::select! {
            has_changed = something_changed(&mut watcher) => if !has_changed? { return Ok(()) },
            Some(ended) = running.join_next() => {
                let (name, found) = ended.map_err(|died| Error::Internal(died.to_string()))?;
                settle(&api, &resource, &mut checked, (&name, found)).await?;
            }
            touched = Surroundings::touched(surroundings.as_mut()) => match touched? {
                Some(touched) => {
                    for one in checked.values_mut().filter(|one| is_touched(&one.remote, &touched)) {
                        one.next = Instant::now();
                    }
                }
                None => return Ok(()),
            },
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() && has_room => {}
        }
    }
}

/// The Services and slices that say where extension servers are.
struct Surroundings {
    services: Watcher,
    slices: Watcher,
    /// The Services whose changes were read, and are still to be told.
    touched: Touched,
}

/// Namespaces and names of Services.
type Touched = Vec<(String, String)>;

impl Surroundings {
    fn of(api: &Api) -> Self {
        let [services, slices] = api.resources.ids(&service_routes::RESOURCES);
        let revision = api.cache.any().revision;
        let watch = |id: Option<_>| api.cache.watch(id.unwrap_or(ResourceId::NONE), revision);
        Self { services: watch(services), slices: watch(slices), touched: Touched::new() }
    }

    /// Waits until Services or their slices have changed. `None` if changes are missing.
    async fn touched(this: Option<&mut Self>) -> Result<Option<Touched>, Error> {
        let Some(Self { services, slices, touched }) = this else { return std::future::pending().await };
        while touched.is_empty() {
            // Both are told of every new state.
            services.changed().await;
            for (watcher, is_slice) in [(&mut *services, false), (&mut *slices, true)] {
                loop {
                    let events = match watcher.next().await {
                        Err(storage::Error::Compacted { .. }) => return Ok(None),
                        events => events?,
                    };
                    if events.is_empty() {
                        break;
                    }
                    let objects =
                        events.iter().filter_map(|event| event.current.as_ref().or(event.previous.as_ref()));
                    touched.extend(objects.filter_map(|object| {
                        let name = match is_slice {
                            false => object.name().to_owned(),
                            true => {
                                fields::text(&object.to_map().ok()?, &["metadata", "labels", SERVICE_NAME])
                                    .to_owned()
                            }
                        };
                        Some((object.namespace().to_owned(), name))
                    }));
                }
            }
        }
        Ok(Some(std::mem::take(touched)))
    }
}

fn is_touched(remote: &Remote, touched: &Touched) -> bool {
    let service = remote.service();
    touched.iter().any(|(namespace, name)| namespace == service.namespace && name == service.name)
}

/// Notes which remote APIServices there are; those that are new or lead elsewhere are checked at once.
fn follow(services: &ApiServices, checked: &mut HashMap<Box<str>, Checked>) {
    checked.retain(|name, _| services.all.get(name).is_some_and(|service| service.remote.is_some()));
    for service in services.remote() {
        let Some(remote) = &service.remote else { continue };
        let is_unchecked = &*service.condition.status == "Unknown" && service.condition.reason.is_empty();
        let known = checked.get_mut(&service.name).filter(|known| Arc::ptr_eq(&known.remote, remote));
        match known {
            Some(known) if is_unchecked && known.failures == 0 => known.next = known.next.min(Instant::now()),
            Some(_) => {}
            None => {
                let new =
                    Checked { remote: remote.clone(), next: Instant::now(), failures: 0, is_running: false };
                checked.insert(service.name.clone(), new);
            }
        }
    }
}

/// Starts the checks that are due.
fn start(
    api: &Arc<Api>,
    services: &ApiServices,
    checked: &mut HashMap<Box<str>, Checked>,
    running: &mut JoinSet<(Box<str>, Found)>,
) {
    let now = Instant::now();
    for (name, one) in checked.iter_mut().filter(|(_, one)| !one.is_running && one.next <= now) {
        if running.len() >= WORKERS {
            return;
        }
        let Some(service) = services.all.get(name).cloned() else { continue };
        one.is_running = true;
        let (api, remote, name) = (api.clone(), one.remote.clone(), name.clone());
        running.spawn(async move { (name, check(&api, &service, &remote).await) });
    }
}

/// Takes the result of a check in, and says when the next one is.
async fn settle(
    api: &Api,
    resource: &Arc<Resource>,
    checked: &mut HashMap<Box<str>, Checked>,
    (name, found): (&str, Found),
) -> Result<(), Error> {
    let Some(one) = checked.get_mut(name) else { return Ok(()) };
    one.is_running = false;
    one.failures = match &found {
        Found::Condition(_) => 0,
        Found::Failed(_) | Found::Unusable => one.failures.saturating_add(1),
    };
    let pause = match one.failures {
        0 => PERIOD,
        failures => FIRST_RETRY.saturating_mul(1 << (failures - 1).min(20)).min(PERIOD),
    };
    one.next = Instant::now() + pause;
    match found {
        Found::Condition(condition) => write(api, resource, name, &condition).await,
        Found::Failed(condition) => {
            one.remote.close_idle();
            write(api, resource, name, &condition).await
        }
        Found::Unusable => Ok(()),
    }
}

async fn check(api: &Api, service: &ApiService, remote: &Remote) -> Found {
    let condition = |status: &str, reason: &str, message: &str| Condition {
        status: status.into(),
        reason: reason.into(),
        message: message.into(),
    };
    if let Err(problem) = api.service_routes.check(remote.service()) {
        return Found::Condition(condition(problem.status, problem.reason, &problem.message));
    }
    let mut attempts: FuturesUnordered<_> = (0..ATTEMPTS).map(|_| attempt(api, service, remote)).collect();
    let mut last = Ok(());
    while let Some(result) = attempts.next().await {
        last = result;
        if last.is_ok() {
            break;
        }
    }
    match last {
        Ok(()) => Found::Condition(condition("True", "Passed", "all checks passed")),
        Err(NoRoute::Unusable(error)) => {
            tracing::warn!(apiservice = &*service.name, error, "cannot be checked");
            Found::Unusable
        }
        Err(NoRoute::Unresolved(why)) => Found::Failed(condition("False", "FailedDiscoveryCheck", &why)),
    }
}

/// Asks for the resources of the group version. The error is [`NoRoute::Unresolved`] also where there was a way.
async fn attempt(api: &Api, service: &ApiService, remote: &Remote) -> Result<(), NoRoute> {
    let route = api.extension_route(remote)?;
    let path = path_of(service);
    let user = aggregator();
    let call = Call { accept: "*/*", ..Call::get(&path, &user, ATTEMPT_TIME, 0) };
    let url = route.url(&path);
    match route.status(&call).await {
        Ok(200..300) => Ok(()),
        Ok(status) => {
            let why = format!("failing or missing response from {url}: bad status from {url}: {status}");
            Err(NoRoute::Unresolved(why))
        }
        Err(why) => Err(NoRoute::Unresolved(format!("failing or missing response from {url}: {why}"))),
    }
}

/// The path of the resources of a group version.
pub fn path_of(service: &ApiService) -> String {
    match service.version.group().as_str() {
        "" => format!("/api/{}", service.version.version()),
        group => format!("/apis/{group}/{}", service.version.version()),
    }
}

/// Local APIServices are available whatever somebody writes.
async fn repair_local(api: &Api, resource: &Arc<Resource>, services: &ApiServices) -> Result<(), Error> {
    for service in services.all.values().filter(|service| service.remote.is_none()) {
        let right = Condition {
            status: "True".into(),
            reason: "Local".into(),
            message: "Local APIServices are always available".into(),
        };
        if service.condition != right {
            write(api, resource, &service.name, &right).await?;
        }
    }
    Ok(())
}

/// Writes the condition, unless the APIService has it.
async fn write(api: &Api, resource: &Arc<Resource>, name: &str, new: &Condition) -> Result<(), Error> {
    let Some(found) = api.cache.fresh().await?.get(resource.id, "", name) else { return Ok(()) };
    let mut object = resource.decode_closed(&found)?;
    let mut conditions = fields::items(&object, &["status", "conditions"]).to_vec();
    let at = conditions.iter().position(|condition| condition["type"] == "Available");
    let before = at.map_or(&Value::Null, |at| &conditions[at]);
    let had = |field: &str, value: &str| before[field].as_str().unwrap_or_default() == value;
    if had("status", &new.status) && had("reason", &new.reason) && had("message", &new.message) {
        return Ok(());
    }
    let since = match had("status", &new.status) {
        true => before["lastTransitionTime"].clone(),
        false => api.now().into(),
    };
    let was_true = had("status", "True");
    let condition = json!({
        "type": "Available",
        "status": &*new.status,
        "lastTransitionTime": since,
        "reason": &*new.reason,
        "message": &*new.message,
    });
    match at {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    fields::object_mut(&mut object, "status").insert("conditions", conditions.into());
    let request = Request::own(Verb::Update, Target { resource, namespace: "", name }).on(Part::Status);
    match api.update(&request, Body::Object(&object)).await {
        Ok(_) => {
            if was_true && !new.is_true() {
                api.runtime.metrics.api_service_unavailable(name, &new.reason);
            }
            Ok(())
        }
        // A change of the object is seen, and checked.
        Err(Error::Conflict { .. } | Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
