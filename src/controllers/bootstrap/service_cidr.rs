//! The ServiceCIDR `kubernetes`: the networks of the flags, from which Services get their addresses unless other
//! ServiceCIDRs are added (`pkg/controlplane/controller/defaultservicecidr`).

use super::create::create;
use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::options::write::WriteOptions;
use crate::api::request::Request;
use crate::api::services::OF_FLAGS as NAME;
use crate::api::{Api, ObjectMap, Target, fields};
use crate::controllers::recorder::{self, About, Told};
use crate::kinds::behavior::part::Part;
use crate::patch::PatchKind;
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

const RESOURCE: Gvr = Gvr::fixed("networking.k8s.io/v1", "servicecidrs");
const MANAGER: &str = "kubernetes-service-cidr-controller";

/// Whether an event has told that the flags name other networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inconsistency {
    Untold,
    Told,
}

/// Creates it if it is missing, adds a second network that the flags have gained, and sets its condition to ready.
pub async fn reconcile(api: &Api, inconsistency: &mut Inconsistency) -> Result<(), Error> {
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
        create(api, &RESOURCE, "", object).await?;
        found = find().await?;
    }
    let Found::Object(mut found) = found else { return Ok(()) };
    if fields::at(&found, &["metadata", "deletionTimestamp"]).is_some() {
        return Ok(());
    }
    let own: Vec<&str> = fields::items(&found, &["spec", "cidrs"]).iter().filter_map(Value::as_str).collect();
    if own.len() == 1 && networks.len() == 2 && own[0] == networks[0] {
        fields::object_mut(&mut found, "spec").insert("cidrs", json!(networks));
        api.update(&Request::own(Verb::Update, target), Body::Object(&found)).await?;
    } else if own != networks {
        if *inconsistency == Inconsistency::Untold {
            tell(api, &found, &own, &networks).await;
            *inconsistency = Inconsistency::Told;
        }
    } else if !says(&found, "True") && !says(&found, "False") {
        apply_ready(api, target).await?;
    }
    Ok(())
}

async fn tell(api: &Api, found: &ObjectMap, own: &[&str], networks: &[String]) {
    let (own, flags) = (own.join(" "), networks.join(" "));
    let message = format!(
        "The default ServiceCIDR [{own}] does not match the controller flag configurations [{flags}]"
    );
    tracing::warn!("{message}");
    let uid = fields::at(found, &["metadata", "uid"]).and_then(Value::as_str).unwrap_or_default();
    let about =
        About { api_version: "networking.k8s.io/v1", kind: "ServiceCIDR", namespace: "", name: NAME, uid };
    let told =
        Told { kind: "Warning", reason: "KubernetesDefaultServiceCIDRInconsistent", message: &message };
    recorder::record(api, MANAGER, about, told).await;
}

enum Found {
    Nothing,
    Object(ObjectMap),
    /// It exists, and must stay as it is.
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
            "lastTransitionTime": api.now(),
            "message": "Kubernetes default Service CIDR is ready",
        }]},
    });
    let options = WriteOptions::forced(MANAGER);
    let request = Request::own(Verb::Patch, target).on(Part::Status).with(&options);
    api.patch(&request, PatchKind::Apply, config.to_string().as_bytes()).await.map(drop)
}
