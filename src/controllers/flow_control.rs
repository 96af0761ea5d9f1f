//! The objects of Priority and Fairness: those that every server has are kept, the server follows all of them, and
//! FlowSchemas are told whether their priority level exists (`pkg/registry/flowcontrol/rest`,
//! `apiserver/pkg/util/flowcontrol`).

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::options::write::WriteOptions;
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target, fields};
use crate::cache::{Range, State};
use crate::flow_control::{DIVISION_PERIOD, FlowControl};
use crate::gotext;
use crate::kinds::behavior::part::Part;
use crate::kinds::flowcontrol::bootstrap::{self, AUTO_UPDATE, BootstrapObject};
use crate::patch::PatchKind;
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

const NAME: &str = "flow-control";
const API_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";
static LEVELS: Gvr = Gvr::fixed(API_VERSION, "prioritylevelconfigurations");
static FLOWS: Gvr = Gvr::fixed(API_VERSION, "flowschemas");
const PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
const CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";
/// The time between two looks at the objects that every server has.
const PERIOD: Duration = Duration::from_secs(60);
/// How soon after a change they are looked at.
const SOON: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(200);

/// Creates the objects that every server has, brings them up to date, and tells FlowSchemas whether their levels exist.
pub async fn ensure(api: &Api) -> Result<(), Error> {
    let state = api.cache.fresh().await?;
    let levels = bootstrap::levels().map(|object| (&LEVELS, object));
    let flows = bootstrap::flows().map(|object| (&FLOWS, object));
    let ensured = levels.chain(flows).map(|(resource, object)| ensure_one(api, &state, resource, object));
    futures_util::future::try_join_all(ensured).await?;
    tell_flows(api).await
}

async fn ensure_one(api: &Api, state: &State, resource: &Gvr, wanted: BootstrapObject) -> Result<(), Error> {
    let Some(resource) = api.resources.get(resource) else { return Ok(()) };
    let target = Target { resource, namespace: "", name: wanted.name() };
    let options = WriteOptions { field_manager: Some(PRODUCER.to_owned()), ..WriteOptions::default() };
    let Some(found) = state.get(resource.id, "", wanted.name()) else {
        let request = Request::own(Verb::Create, Target { name: "", ..target }).with(&options);
        return match api.create(&request, Body::Object(&wanted.object)).await {
            Ok(_) | Err(Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(error),
        };
    };
    let Ok(object) =
        resource.decode_closed(&found).inspect_err(|error| api.unreadable.tell(NAME, &found, error))
    else {
        return Ok(());
    };
    let Some(revised) = revised(object, &wanted) else { return Ok(()) };
    match api.update(&Request::own(Verb::Update, target).with(&options), Body::Object(&revised)).await {
        // Another server was faster, or the object is gone: the next round sees that.
        Ok(_) | Err(Error::Conflict { .. } | Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The object as it should be; `None` if it is so already.
fn revised(mut object: ObjectMap, wanted: &BootstrapObject) -> Option<ObjectMap> {
    let annotation = fields::at(&object, &["metadata", "annotations", AUTO_UPDATE]);
    let said = annotation.and_then(Value::as_str).and_then(gotext::parse_bool);
    let is_first = fields::at(&object, &["metadata", "generation"]).and_then(Value::as_i64) == Some(1);
    let updates = wanted.mandatory || said.unwrap_or(is_first);
    let differs = updates && !wanted.has_spec_of(&object);
    if !differs && said == Some(updates) {
        return None;
    }
    if differs {
        object.insert("spec", wanted.spec().clone());
    }
    let annotations = fields::object_mut(fields::object_mut(&mut object, "metadata"), "annotations");
    annotations.insert(AUTO_UPDATE, if updates { "true" } else { "false" }.into());
    Some(object)
}

/// Deletes objects that a server has made once, and that none makes any more.
async fn remove_unwanted(api: &Api) -> Result<(), Error> {
    let state = api.cache.fresh().await?;
    for (resource, wanted) in [
        (&LEVELS, bootstrap::levels().map(|level| level.name().to_owned()).collect::<Vec<_>>()),
        (&FLOWS, bootstrap::flows().map(|flow| flow.name().to_owned()).collect()),
    ] {
        for object in objects(api, &state, resource) {
            let name = fields::text(&object, &["metadata", "name"]);
            let annotation = fields::at(&object, &["metadata", "annotations", AUTO_UPDATE]);
            let is_made = annotation.and_then(Value::as_str).and_then(gotext::parse_bool) == Some(true);
            if is_made && !wanted.iter().any(|wanted| wanted == name) {
                delete(api, resource, name).await?;
            }
        }
    }
    Ok(())
}

async fn delete(api: &Api, resource: &Gvr, name: &str) -> Result<(), Error> {
    let Some(resource) = api.resources.get(resource) else { return Ok(()) };
    match api.delete(&Request::own(Verb::Delete, Target { resource, namespace: "", name })).await {
        Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Keeps the objects; runs on the replica that leads.
pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let (Some(levels), Some(flows)) = (api.resources.get(&LEVELS), api.resources.get(&FLOWS)) else {
        return Ok(());
    };
    let revision = api.cache.any().revision;
    let mut changes = [api.cache.watch(levels.id, revision), api.cache.watch(flows.id, revision)];
    let mut due = Instant::now();
    loop {
        let [levels, flows] = &mut changes;
        tokio::select! {
            () = levels.changed() => due = due.min(Instant::now() + SOON),
            () = flows.changed() => due = due.min(Instant::now() + SOON),
            () = tokio::time::sleep_until(due) => {}
        }
        for watcher in &mut changes {
            while !watcher.next().await?.is_empty() {}
        }
        // What others change from here on is seen in the next round.
        if due <= Instant::now() {
            ensure(&api).await?;
            remove_unwanted(&api).await?;
            due = Instant::now() + PERIOD;
        }
    }
}

/// Tells each FlowSchema whether its priority level exists.
async fn tell_flows(api: &Api) -> Result<(), Error> {
    let state = api.cache.fresh().await?;
    let levels = objects(api, &state, &LEVELS);
    let now = api.now();
    let exists = |name: &str| levels.iter().any(|level| fields::text(level, &["metadata", "name"]) == name);
    let told = objects(api, &state, &FLOWS).into_iter().map(async |flow| {
        let level = fields::text(&flow, &["spec", "priorityLevelConfiguration", "name"]);
        let condition = dangling(level, exists(level), &now);
        let known = fields::items(&flow, &["status", "conditions"]);
        let known = known.iter().find(|condition| condition["type"] == "Dangling");
        let is_known = known.is_some_and(|known| {
            ["status", "reason", "message"].iter().all(|field| known[*field] == condition[*field])
        });
        if is_known {
            return Ok(());
        }
        apply_condition(api, fields::text(&flow, &["metadata", "name"]), condition).await
    });
    futures_util::future::try_join_all(told).await.map(drop)
}

fn dangling(level: &str, exists: bool, now: &str) -> Value {
    let (status, reason, end) = match exists {
        true => ("False", "Found", "it exists"),
        false => ("True", "NotFound", "there is no such object"),
    };
    let and = if exists { "and" } else { "but" };
    let quoted = gotext::quote(level);
    let message = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {quoted} {and} {end}"
    );
    json!({"type": "Dangling", "status": status, "reason": reason, "message": message,
        "lastTransitionTime": now})
}

async fn apply_condition(api: &Api, name: &str, condition: Value) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&FLOWS) else { return Ok(()) };
    let config = json!({
        "kind": "FlowSchema",
        "apiVersion": API_VERSION,
        "metadata": {"name": name},
        "status": {"conditions": [condition]},
    });
    let options = WriteOptions::forced(CONSUMER);
    let target = Target { resource, namespace: "", name };
    let request = Request::own(Verb::Patch, target).on(Part::Status).with(&options);
    match api.patch(&request, PatchKind::Apply, config.to_string().as_bytes()).await {
        Ok(_) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Lets the server's flow control follow the objects, on every replica.
pub async fn follow(api: Arc<Api>, control: Arc<FlowControl>) {
    let (Some(levels), Some(flows)) = (api.resources.get(&LEVELS), api.resources.get(&FLOWS)) else {
        return std::future::pending().await;
    };
    let revision = api.cache.any().revision;
    let mut watched = [api.cache.watch(levels.id, revision), api.cache.watch(flows.id, revision)];
    let mut division = tokio::time::interval(DIVISION_PERIOD);
    loop {
        adopt(&api, &control);
        let [levels, flows] = &mut watched;
        loop {
            tokio::select! {
                () = levels.changed() => break,
                () = flows.changed() => break,
                _ = division.tick() => control.divide(),
            }
        }
        for watcher in &mut watched {
            // What has happened is read from the state.
            while watcher.next().await.is_ok_and(|events| !events.is_empty()) {}
        }
        // Many objects change at once when a server starts.
        tokio::time::sleep(PAUSE).await;
    }
}

/// Takes over what the objects in memory say.
pub fn adopt(api: &Api, control: &FlowControl) {
    let state = api.cache.any();
    control.configure(&objects(api, &state, &LEVELS), &objects(api, &state, &FLOWS));
}

fn objects(api: &Api, state: &State, resource: &Gvr) -> Vec<ObjectMap> {
    let Some(resource) = api.resources.get(resource) else { return Vec::new() };
    let decode = |resource: &Resource, object: &_| {
        resource.decode_closed(object).inspect_err(|error| api.unreadable.tell(NAME, object, error)).ok()
    };
    let all = state.objects(resource.id);
    all.range(&Range::of(None)).filter_map(|object| decode(resource, object)).collect()
}
