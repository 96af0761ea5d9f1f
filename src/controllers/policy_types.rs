//! Writes into the status of ValidatingAdmissionPolicies what is wrong with their expressions, as
//! `validatingadmissionpolicy-status-controller` of kube-controller-manager does. Where both run, both write the same.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::api::error::Error;
use crate::api::options::write::WriteOptions;
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::{Api, Target, fields, type_checking};
use crate::cache::Range;
use crate::kinds::behavior::part::Part;
use crate::patch::apply::ownership::Conflicts;
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

const POLICIES: Gvr = Gvr::fixed("admissionregistration.k8s.io/v1", "validatingadmissionpolicies");
const MANAGER: &str = "validatingadmissionpolicy-status";
/// The pause before a policy is looked at again that could not be written.
const RETRY: Duration = Duration::from_secs(1);

pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let Some(policies) = api.resources.get(&POLICIES).cloned() else {
        return std::future::pending().await;
    };
    let state = api.cache.any();
    let mut watcher = api.cache.watch(policies.id, state.revision);
    let mut open: BTreeSet<String> =
        state.objects(policies.id).range(&Range::of(None)).map(|object| object.name().to_owned()).collect();
    loop {
        for name in std::mem::take(&mut open) {
            match check(&api, &policies, &name).await {
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => {
                    tracing::warn!(%error, name, "the types of a policy cannot be checked, will try again");
                    open.insert(name);
                }
            }
        }
        tokio::select! {
            () = watcher.changed() => {}
            () = sleep(RETRY), if !open.is_empty() => {}
        }
        loop {
            let events = watcher.next().await?;
            let current = events.iter().filter_map(|event| event.current.as_ref());
            open.extend(current.map(|object| object.name().to_owned()));
            if events.is_empty() {
                break;
            }
        }
    }
}

/// Checks a policy, unless its status says that this has been done.
async fn check(api: &Api, policies: &Arc<Resource>, name: &str) -> Result<(), Error> {
    let Some(found) = api.cache.any().get(policies.id, "", name) else { return Ok(()) };
    let policy = policies.decode(&found)?;
    let number = |path: &[&str]| fields::at(&policy, path).and_then(Value::as_i64).unwrap_or_default();
    let generation = number(&["metadata", "generation"]);
    if generation <= number(&["status", "observedGeneration"]) {
        return Ok(());
    }
    let spec = fields::object(&policy, "spec").cloned().unwrap_or_default();
    let warnings = type_checking::warnings(&api.catalog.served(), &spec);
    let status = json!({"observedGeneration": generation, "typeChecking": type_checking::status(&warnings)});
    let applied = json!({"apiVersion": POLICIES.group_version.api_version().as_str(), "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name}, "status": status});
    let target = Target { resource: policies, namespace: "", name };
    let options = WriteOptions {
        field_manager: Some(MANAGER.to_owned()),
        conflicts: Conflicts::Force,
        ..WriteOptions::default()
    };
    let request = Request::own(Verb::Patch, target).on(Part::Status).with(&options);
    api.apply(&request, Part::Status, applied.to_string().as_bytes()).await.map(drop)
}
