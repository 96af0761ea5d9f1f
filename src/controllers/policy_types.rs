//! Writes into the status of ValidatingAdmissionPolicies what is wrong with their expressions, as
//! `validatingadmissionpolicy-status-controller` of kube-controller-manager does. Where both run, both write the same.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::names::Names;
use crate::api::admission::dynamic::policies::type_checking;
use crate::api::error::Error;
use crate::api::options::write::WriteOptions;
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::{Api, Target, fields};
use crate::kinds::behavior::part::Part;
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
    let mut names = Names::of(&api, policies.id);
    loop {
        for name in std::mem::take(&mut names.open) {
            match check(&api, &policies, &name).await {
                Ok(()) | Err(Error::NotFound { .. }) => {}
                Err(error) => {
                    tracing::warn!(%error, name, "the types of a policy cannot be checked, will try again");
                    names.open.insert(name);
                }
            }
        }
        let may_retry = !names.open.is_empty();
        tokio::select! {
            () = names.changed() => {}
            () = sleep(RETRY), if may_retry => {}
        }
        names.add_changed().await?;
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
    let options = WriteOptions::forced(MANAGER);
    let request = Request::own(Verb::Patch, target).on(Part::Status).with(&options);
    api.apply(&request, Part::Status, applied.to_string().as_bytes()).await.map(drop)
}
