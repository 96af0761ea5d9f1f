//! The ServiceCIDR `kubernetes`: the networks of the flags, from which Services get their addresses until somebody adds
//! others (`pkg/controlplane/controller/defaultservicecidr`).

use super::bootstrap;
use crate::api::apply::Applier;
use crate::api::error::Error;
use crate::api::options::DryRun;
use crate::api::options::write::{FieldValidation, PatchOptions, WriteOptions};
use crate::api::part::Part;
use crate::api::services::OF_FLAGS as NAME;
use crate::api::strictness::{Requester, Warnings};
use crate::api::{Api, ObjectMap, Target, fields, now};
use crate::patch::apply::ownership::Conflicts;
use crate::schema::names::Gvr;
use crate::tree::{Value, json};
use crate::user::User;

const RESOURCE: Gvr = Gvr::fixed("networking.k8s.io/v1", "servicecidrs");
const MANAGER: &str = "kubernetes-service-cidr-controller";

/// Creates it if it is missing, gives it the second network that the flags have got, and says that it is ready.
pub async fn reconcile(api: &Api) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&RESOURCE) else { return Ok(()) };
    let networks: Vec<String> = api.config.services.networks.iter().map(ToString::to_string).collect();
    let target = Target { resource, namespace: "", name: NAME };
    let find = async || -> Result<Found, Error> {
        let Some(found) = api.cache.fresh().await?.get(resource.id, "", NAME) else {
            return Ok(Found::Nothing);
        };
        Ok(match found.to_map() {
            Ok(map) => Found::Object(map),
            Err(error) => {
                api.unreadable.tell("service-cidr", &found, error);
                Found::Unreadable
            }
        })
    };
    let mut found = find().await?;
    if matches!(found, Found::Nothing) {
        let object = json!({
            "kind": "ServiceCIDR",
            "apiVersion": "networking.k8s.io/v1",
            "metadata": {"name": NAME},
            "spec": {"cidrs": networks},
        });
        bootstrap::create(api, &RESOURCE, "", object).await?;
        found = find().await?;
    }
    let Found::Object(mut found) = found else { return Ok(()) };
    if fields::at(&found, &["metadata", "deletionTimestamp"]).is_some() {
        return Ok(());
    }
    let own: Vec<&str> = fields::items(&found, &["spec", "cidrs"]).iter().filter_map(Value::as_str).collect();
    if own.len() == 1 && networks.len() == 2 && own[0] == networks[0] {
        fields::object_mut(&mut found, "spec").insert("cidrs", json!(networks));
        api.update(
            target,
            Part::Main,
            || Ok(found.clone()),
            &WriteOptions::default(),
            Requester { user: &User::apiserver(), warnings: &Warnings::default() },
        )
        .await?;
    } else if own != networks {
        tracing::warn!(?own, flags = ?networks, "the ServiceCIDR \"kubernetes\" is not what the flags say");
    } else if !says(&found, "True") && !says(&found, "False") {
        apply_ready(api, target).await?;
    }
    Ok(())
}

enum Found {
    Nothing,
    Object(ObjectMap),
    /// It is there, and stays as it is.
    Unreadable,
}

/// Whether its condition `Ready` has this status.
fn says(found: &ObjectMap, status: &str) -> bool {
    let conditions = fields::items(found, &["status", "conditions"]);
    conditions.iter().any(|condition| condition["type"] == "Ready" && condition["status"] == status)
}

async fn apply_ready(api: &Api, target: Target<'_>) -> Result<(), Error> {
    let config = json!({
        "kind": "ServiceCIDR",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {"name": NAME},
        "status": {"conditions": [{
            "type": "Ready",
            "status": "True",
            "lastTransitionTime": now(),
            "message": "Kubernetes default Service CIDR is ready",
        }]},
    });
    let write = WriteOptions {
        field_manager: Some(MANAGER.to_owned()),
        field_validation: FieldValidation::default(),
        dry_run: DryRun::No,
    };
    let options = PatchOptions { write, conflicts: Conflicts::Force };
    let (user, warnings) = (User::apiserver(), Warnings::default());
    let applier = Applier { requester: Requester { user: &user, warnings: &warnings }, may_create: &Ok(()) };
    api.apply(target, Part::Status, config.to_string().as_bytes(), &options, applier).await.map(drop)
}
