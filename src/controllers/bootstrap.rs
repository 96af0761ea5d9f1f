//! The objects that exist from the start: namespaces, the system's priority classes, and the objects that represent the
//! server itself ([`super::servers::kubernetes_service`], [`self::service_cidr`]).

pub mod cluster_authentication;
pub(in crate::controllers) mod create;
pub(in crate::controllers) mod rbac_policy;
pub(in crate::controllers) mod service_cidr;

use self::create::create;
use self::service_cidr::Inconsistency;
use super::servers::identity_lease_gc::Sightings;
use super::servers::kubernetes_service::{self, Advertised};
use super::{aggregation, api_services};
use crate::api::Api;
use crate::api::error::Error;
use crate::schema::names::Gvr;
use crate::tree::{Value, json};

const NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

/// Creates missing objects. Another replica may do the same at the same time.
pub async fn create_system_objects(api: &Api, advertised: &Advertised) -> Result<(), Error> {
    create_system_namespaces(api).await?;
    create_missing(api, priority_classes()).await?;
    rbac_policy::reconcile(api).await?;
    api_services::register_built_in(api).await?;
    if api.config.cluster_controllers {
        aggregation::bring_up_to_date(api).await?;
    }
    // Two servers may conflict here. Nobody needs these objects at once, and a controller tries again.
    let mut sightings = Sightings::default();
    let service = async { kubernetes_service::reconcile(api, advertised, &mut sightings).await };
    // The controller tells of an inconsistency.
    let network = service_cidr::reconcile(api, &mut Inconsistency::Told).await;
    for made in [network, service.await] {
        if let Err(error) = made {
            tracing::warn!(%error, "cannot bring the Service \"kubernetes\" up to date");
        }
    }
    Ok(())
}

/// Creates only the namespaces.
pub async fn create_system_namespaces(api: &Api) -> Result<(), Error> {
    let namespace = |name: &str| json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": name}});
    create_missing(api, NAMESPACES.iter().map(|name| (Gvr::fixed("v1", "namespaces"), namespace(name)))).await
}

async fn create_missing(api: &Api, objects: impl Iterator<Item = (Gvr, Value)>) -> Result<(), Error> {
    let state = api.cache.fresh().await?;
    let missing = |(resource, object): &(Gvr, Value)| {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let resource = api.resources.get(resource);
        resource.is_some_and(|resource| state.get(resource.id, "", name).is_none())
    };
    let created =
        objects.filter(missing).map(async |(resource, object)| create(api, &resource, "", object).await);
    futures_util::future::try_join_all(created).await.map(drop)
}

/// The priority classes that validation reserves for the system (`pkg/apis/scheduling/v1/helpers.go`).
fn priority_classes() -> impl Iterator<Item = (Gvr, Value)> {
    let classes = [
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    ];
    classes.into_iter().map(|(name, value, description)| {
        let object = json!({
            "kind": "PriorityClass",
            "apiVersion": "scheduling.k8s.io/v1",
            "metadata": {"name": name},
            "value": value,
            "description": description,
        });
        (Gvr::fixed("scheduling.k8s.io/v1", "priorityclasses"), object)
    })
}
