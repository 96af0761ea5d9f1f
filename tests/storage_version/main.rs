//! Servers of one store, their encodings, and which of them wait for others: the assertions of `docs/spec/storage-version.md`.

#[macro_use]
#[path = "../support/mod.rs"]
mod support;

mod collection;
mod formats;
mod gate;
mod identity;
mod leaving;
mod media_type;
mod migration;
mod registration;
mod trouble;
mod validation;

use std::time::Duration;

use rowplane::api::Api;
use rowplane::cache::Range;
use rowplane::controllers::IdentityLeases;
use rowplane::identity::ServerIdentity;
use rowplane::schema::names::{GroupResource, GroupVersion, Gvr};
use rowplane::server::config::{IdentityConfig, Registration};
use serde_json::Value;

use crate::support::client::Client;
use crate::support::server::Setup;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
const VERSIONS: &str = "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions";
const AUTOSCALERS: &str = "autoscaling.horizontalpodautoscalers";
const OF_SERVERS: &str = "labelSelector=apiserver.kubernetes.io/identity%3Dkube-apiserver";
const OFTEN: Duration = Duration::from_millis(20);
const NEVER: Duration = Duration::from_secs(1 << 30);

/// Servers hold a lease, but register nothing.
fn identified(mut setup: Setup, renew_interval: Duration, gc_period: Duration) -> Setup {
    let leases = IdentityLeases { duration_seconds: 3600, renew_interval, gc_period };
    let hostname_override = Some("rowplane-0".to_owned());
    setup.identity = Some(IdentityConfig { hostname_override, leases, registration: Registration::Off });
    setup
}

/// The next server has this host name, and registers.
fn on_host(setup: &mut Setup, hostname: &str) {
    let leases = IdentityLeases { duration_seconds: 3600, renew_interval: OFTEN * 10, gc_period: NEVER };
    let hostname_override = Some(hostname.to_owned());
    setup.identity = Some(IdentityConfig { hostname_override, leases, registration: Registration::On });
}

/// The next server stores autoscalers in this version.
fn autoscalers_in(setup: &mut Setup, api_version: &str) {
    let autoscalers = GroupResource::new("autoscaling", "horizontalpodautoscalers");
    setup.storage_versions = vec![(autoscalers, GroupVersion::parse(api_version).expect("an apiVersion"))];
}

fn id(hostname: &str) -> String {
    ServerIdentity::of_host(hostname).id().to_owned()
}

async fn version_of(client: &Client, name: &str) -> Value {
    client.get(format!("{VERSIONS}/{name}")).await.ok()
}

/// All entries as `id=encodingVersion`, in order.
fn entries(version: &Value) -> Vec<String> {
    let entries = version["status"]["storageVersions"].as_array().map_or(&[][..], Vec::as_slice);
    let text = |entry: &Value, field: &str| entry[field].as_str().expect("text").to_owned();
    entries.iter().map(|e| format!("{}={}", text(e, "apiServerID"), text(e, "encodingVersion"))).collect()
}

/// Status, reason and time of the only condition.
fn condition(version: &Value) -> (String, String, String) {
    let conditions = version["status"]["conditions"].as_array().expect("conditions");
    assert_eq!(conditions.len(), 1, "{version}");
    assert_eq!(conditions[0]["type"], "AllEncodingVersionsEqual");
    let text = |field: &str| conditions[0][field].as_str().expect("text").to_owned();
    (text("status"), text("reason"), text("lastTransitionTime"))
}

/// The number of entries in all StorageVersions.
fn entry_count(api: &Api) -> usize {
    let versions = api.resources.get(&Gvr::fixed("internal.apiserver.k8s.io/v1alpha1", "storageversions"));
    let (objects, all) = (api.cache.any().objects(versions.expect("served").id), Range::of(None));
    let objects = objects.range(&all).map(|object| object.to_map().expect("JSON"));
    objects.map(|object| entries(&serde_json::to_value(object).expect("JSON")).len()).sum()
}
