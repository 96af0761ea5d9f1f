//! The APIServices of what this server answers itself, one for each group version: those of built-in ones are made at the
//! start, those of definitions kept for ever (upstream's autoregister controller). One without the label is not touched.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::followers::api_services::{ALWAYS, API_SERVICES, AUTOMANAGED, ApiService, ON_START};
use crate::api::options::delete::{DeleteOptions, Preconditions};
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::write::together::{self, InsteadOf};
use crate::api::{Api, ObjectMap, Target};
use crate::cache::Watcher;
use crate::schema::names::GroupVersion;
use crate::schema::registry::Registry;
use crate::schema::resource::{Origin, Verb};
use crate::storage;
use crate::tree::{Value, json};

/// The priorities of definitions.
const CUSTOM: (u32, u32) = (1000, 100);

/// The APIServices that there should be, by name.
type Wanted = BTreeMap<String, (GroupVersion, (u32, u32))>;

/// How often others may be faster before the server gives up.
const ATTEMPTS: usize = 100;

/// Makes the APIServices of built-in group versions that are missing, corrects those that differ, and removes those of
/// group versions that are not served any more.
pub async fn register_built_in(api: &Api) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&API_SERVICES).cloned() else { return Ok(()) };
    let wanted = built_in(&api.catalog.served().registry().discoverable());
    for _ in 0..ATTEMPTS {
        api.cache.fresh().await?;
        if reconcile(api, &resource, &wanted, ON_START).await? {
            return Ok(());
        }
    }
    Err(Error::Internal("the APIServices of the system keep changing".to_owned()))
}

/// The names of the APIServices of built-in group versions.
pub fn names_of_built_in(registry: &Arc<Registry>) -> Vec<String> {
    built_in(&registry.discoverable()).into_keys().collect()
}

/// Keeps the APIServices of definitions.
pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&API_SERVICES).cloned() else {
        return std::future::pending().await;
    };
    let mut watcher = api.cache.watch(resource.id, api.cache.any().revision);
    let mut served = api.catalog.subscribe();
    loop {
        served.mark_unchanged();
        let newest = api.served_as_known().await;
        reconcile(&api, &resource, &of_definitions(newest.registry()), ALWAYS).await?;
        tokio::select! {
            has_changed = something_changed(&mut watcher) => if !has_changed? { return Ok(()) },
            _ = served.changed() => {}
        }
    }
}

/// Waits for a change of a resource. Returns `false` if changes are missing, so that all has to be read again.
pub(super) async fn something_changed(watcher: &mut Watcher) -> Result<bool, Error> {
    loop {
        watcher.changed().await;
        let mut has_changed = false;
        loop {
            match watcher.next().await {
                Err(storage::Error::Compacted { .. }) => return Ok(false),
                Err(error) => return Err(error.into()),
                Ok(events) if events.is_empty() => break,
                Ok(_) => has_changed = true,
            }
        }
        if has_changed {
            return Ok(true);
        }
    }
}

fn built_in(registry: &Registry) -> Wanted {
    let groups = registry.groups().iter().filter(|group| group.origin == Origin::BuiltIn);
    let groups = groups.filter(|group| &*group.name != API_SERVICES.group().as_str());
    let versions = groups.flat_map(|group| group.versions.iter().map(move |version| (group, version)));
    let wanted = versions.filter(|(_, version)| is_of(version, Origin::BuiltIn)).map(|(group, version)| {
        let name = &version.name;
        (name_of(name), (name.clone(), (group.priority(), version_priority(name))))
    });
    wanted.collect()
}

fn of_definitions(registry: &Registry) -> Wanted {
    let versions = registry.groups().iter().flat_map(|group| &group.versions);
    let custom = versions.filter(|version| is_of(version, Origin::Custom));
    custom.map(|version| (name_of(&version.name), (version.name.clone(), CUSTOM))).collect()
}

fn is_of(version: &crate::schema::registry::ServedVersion, origin: Origin) -> bool {
    version.resources.first().is_some_and(|definition| definition.origin == origin)
}

fn name_of(version: &GroupVersion) -> String {
    format!("{}.{}", version.version(), version.group())
}

/// Upstream's priority of a version among those of its group (`pkg/controlplane/apiserver/aggregator.go`).
fn version_priority(name: &GroupVersion) -> u32 {
    match (name.group().as_str(), name.version()) {
        ("", _) => 1,
        ("autoscaling", "v2") => 30,
        ("flowcontrol.apiserver.k8s.io" | "resource.k8s.io", "v1") => 21,
        (_, "v1") => 15,
        ("admissionregistration.k8s.io", "v1beta1") => 12,
        _ => 9,
    }
}

/// Makes what is missing, corrects what differs, and removes what is not wanted, of those with this value of the label.
/// Returns whether all was done: others may have been faster.
async fn reconcile(
    api: &Api,
    resource: &Arc<Resource>,
    wanted: &Wanted,
    value: &'static str,
) -> Result<bool, Error> {
    let present = api.extensions.newest(&api.cache);
    let is_ours = |service: &ApiService| service.automanaged.as_deref() == Some(value);
    let missing = wanted.iter().filter(|(name, _)| !present.all.contains_key(name.as_str()));
    let missing = missing.filter_map(|(name, spec)| {
        let target = Target { resource, namespace: "", name };
        let Value::Object(object) = object_of(name, spec, value) else { return None };
        Some(together::Wanted { target, object, instead_of: InsteadOf::Nothing })
    });
    let mut is_done = api.write_all(missing.collect()).await?;
    for (name, spec) in wanted {
        let found = present.all.get(name.as_str()).filter(|found| is_ours(found) && !is_right(found, spec));
        if found.is_some() {
            is_done &= pass(correct(api, resource, name, spec).await)?;
        }
    }
    for service in present.all.values() {
        if is_ours(service) && !wanted.contains_key(&*service.name) {
            is_done &= pass(remove(api, resource, service).await)?;
        }
    }
    Ok(is_done)
}

/// Whether something was done. Others may be faster.
fn pass(done: Result<(), Error>) -> Result<bool, Error> {
    match done {
        Ok(()) => Ok(true),
        Err(Error::AlreadyExists { .. } | Error::NotFound { .. } | Error::Conflict { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_right(
    found: &ApiService,
    (version, (group_priority, version_priority)): &(GroupVersion, (u32, u32)),
) -> bool {
    found.remote.is_none()
        && found.version == *version
        && found.group_priority == i64::from(*group_priority)
        && found.version_priority == i64::from(*version_priority)
}

fn spec_of((version, (group_priority, version_priority)): &(GroupVersion, (u32, u32))) -> Value {
    json!({
        "group": version.group().as_str(),
        "version": version.version(),
        "groupPriorityMinimum": *group_priority,
        "versionPriority": *version_priority,
    })
}

fn object_of(name: &str, spec: &(GroupVersion, (u32, u32)), value: &str) -> Value {
    json!({
        "kind": "APIService",
        "apiVersion": "apiregistration.k8s.io/v1",
        "metadata": {"name": name, "labels": {AUTOMANAGED: value}},
        "spec": spec_of(spec),
    })
}

async fn correct(
    api: &Api,
    resource: &Arc<Resource>,
    name: &str,
    spec: &(GroupVersion, (u32, u32)),
) -> Result<(), Error> {
    let Some(found) = api.cache.any().get(resource.id, "", name) else { return Ok(()) };
    let mut object: ObjectMap = resource.decode_closed(&found)?;
    object.insert("spec", spec_of(spec));
    let request = Request::own(Verb::Update, Target { resource, namespace: "", name });
    api.update(&request, Body::Object(&object)).await.map(drop)
}

async fn remove(api: &Api, resource: &Arc<Resource>, service: &ApiService) -> Result<(), Error> {
    let preconditions = Preconditions { uid: Some(service.uid.to_string()), ..Preconditions::default() };
    let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
    let request = Request::own(Verb::Delete, Target { resource, namespace: "", name: &service.name });
    api.delete(&request.with(&options)).await.map(drop)
}
