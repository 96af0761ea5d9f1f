//! The registrations of servers, as clients see them.

use std::collections::BTreeSet;

use rowplane::api::storage_version::registration::{Extent, OwnRegistration};
use rowplane::controllers::create_system_namespaces;
use serde_json::{Value, json};

use crate::support::client::Client;
use crate::support::database::Database;
use crate::support::process::Installation;
use crate::support::server::{Setup, names, rv};
use crate::support::verbs::api_on;
use crate::{
    AUTOSCALERS, LEASES, OF_SERVERS, VERSIONS, autoscalers_in, condition, entries, entry_count, id, on_host,
    version_of,
};

on_both_databases! {
    storage_version_2_3_4_there_is_one_object_per_stored_resource,
    storage_version_5_a_single_server_agrees_with_itself,
    storage_version_9_the_same_registration_again_writes_nothing,
    storage_version_16_the_table,
    storage_version_26_the_lease_comes_first,
    storage_version_1_without_the_gate_nothing_is_registered_and_nothing_waits,
    storage_version_8_one_version_after_another_moves_the_time,
    storage_version_24_all_resources_are_registered_at_once,
    storage_version_32_hashes_of_storage_versions,
    the_choice_of_a_storage_version_is_seen_everywhere,
    the_storage_version_of_custom_resources_is_their_definitions,
}

/// The resources that are stored according to discovery.
async fn stored_resources(client: &Client) -> BTreeSet<String> {
    let groups = client.get("/apis").await.ok();
    let versions = groups["groups"].as_array().expect("groups").iter().flat_map(|group| {
        let versions = group["versions"].as_array().expect("versions").iter();
        versions.map(|version| format!("/apis/{}", version["groupVersion"].as_str().expect("text")))
    });
    let mut found = BTreeSet::new();
    for path in versions.chain(["/api/v1".to_owned()]) {
        let list = client.get(&path).await.ok();
        let group = match list["groupVersion"].as_str().expect("text").split_once('/') {
            Some((group, _)) => group.to_owned(),
            None => "core".to_owned(),
        };
        for resource in list["resources"].as_array().expect("resources") {
            if resource.get("storageVersionHash").is_some() {
                found.insert(format!("{group}.{}", resource["name"].as_str().expect("a name")));
            }
        }
    }
    found
}

async fn storage_version_2_3_4_there_is_one_object_per_stored_resource(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start_empty().await;
    let mut expected = stored_resources(&server).await;
    assert!(expected.remove("events.k8s.io.events") && expected.contains("core.events"));
    let found: BTreeSet<String> = names(&server.get(VERSIONS).await.ok()).into_iter().collect();
    assert_eq!(found, expected);
    assert!(found.len() > 50 && !found.iter().any(|name| name.contains("review") || name.contains('/')));
    let rows = setup.database.number("SELECT COUNT(*) FROM storage_versions").await;
    assert_eq!(rows as usize, found.len());
    server.stop().await;
}

async fn storage_version_5_a_single_server_agrees_with_itself(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start_empty().await;
    let list = server.get(VERSIONS).await.ok();
    for version in list["items"].as_array().expect("items") {
        let entries = version["status"]["storageVersions"].as_array().expect("entries");
        assert_eq!(entries.len(), 1, "{version}");
        assert_eq!(entries[0]["apiServerID"], id("rowplane-0"));
        assert_eq!(version["status"]["commonEncodingVersion"], entries[0]["encodingVersion"]);
        let (status, reason, _) = condition(version);
        assert_eq!((&*status, &*reason), ("True", "CommonEncodingVersionSet"));
        assert_eq!(version["spec"], json!({}));
        assert!(version["metadata"]["uid"].is_string() && version["metadata"]["generation"].is_null());
    }
    let autoscalers = version_of(&server, AUTOSCALERS).await;
    let both = json!(["autoscaling/v2", "autoscaling/v1"]);
    assert_eq!(
        autoscalers["status"]["storageVersions"],
        json!([{"apiServerID": id("rowplane-0"), "encodingVersion": "autoscaling/v2",
            "decodableVersions": both, "servedVersions": both}])
    );
    let events = &version_of(&server, "core.events").await["status"]["storageVersions"][0];
    assert_eq!(events["decodableVersions"], json!(["v1", "events.k8s.io/v1"]));
    assert_eq!(events["servedVersions"], json!(["v1"]));
    server.stop().await;
}

async fn storage_version_9_the_same_registration_again_writes_nothing(setup: Setup) {
    let api = api_on(&setup.database).await;
    create_system_namespaces(&api).await.expect("namespaces");
    let revision = async || api.cache.clock().await.expect("clock").revision.0;
    let before = revision().await;
    let own = OwnRegistration::new("apiserver-a", "one");
    api.register(&own, &Extent::Whole).await.expect("register");
    let after = revision().await;
    assert!(after > before + 50, "each object has a revision of its own");
    let again = OwnRegistration::new("apiserver-a", "two");
    for extent in [Extent::Whole, Extent::Repair] {
        api.register(&again, &extent).await.expect("register");
    }
    assert_eq!(revision().await, after);
    let two = "SELECT COUNT(*) FROM servers WHERE id = 'apiserver-a' AND incarnation = 'two'";
    assert_eq!(setup.database.number(two).await, 1);
}

async fn storage_version_16_the_table(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start_empty().await;
    let table = server.get(format!("{VERSIONS}/{AUTOSCALERS}")).accept(TABLE).await.ok();
    let columns: Vec<&Value> =
        table["columnDefinitions"].as_array().expect("columns").iter().map(|c| &c["name"]).collect();
    assert_eq!(columns, ["Name", "CommonEncodingVersion", "StorageVersions", "Age"]);
    let cells = &table["rows"][0]["cells"];
    assert_eq!(
        cells.as_array().expect("cells")[..3],
        [json!(AUTOSCALERS), json!("autoscaling/v2"), json!(format!("{}=autoscaling/v2", id("rowplane-0")))]
    );
    server.stop().await;
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

async fn storage_version_26_the_lease_comes_first(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start_empty().await;
    let mut watch = server.watch(format!("{LEASES}?watch=1&resourceVersion=1&{OF_SERVERS}")).await;
    let lease = watch.expect_named("ADDED", &id("rowplane-0")).await;
    for version in server.get(VERSIONS).await.ok()["items"].as_array().expect("items") {
        assert!(rv(version) > rv(&lease), "{version}");
    }
    server.stop().await;
}

/// Upstream does not serve the group while the gate is off, its default; here earlier registrations stay readable.
async fn storage_version_1_without_the_gate_nothing_is_registered_and_nothing_waits(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start_empty().await;
    // An entry that is not withdrawn, as after a crash.
    let name = "example.com.things";
    let path = format!("{VERSIONS}/{name}");
    server.post(VERSIONS, &json!({"metadata": {"name": name}})).await.expect(201);
    server.stop().await;

    setup.identity.as_mut().expect("an identity").registration = rowplane::server::config::Registration::Off;
    let server = setup.start().await;
    assert_eq!(names(&server.get(VERSIONS).await.ok()), [name]);
    assert_eq!(server.get(&path).await.ok()["metadata"]["name"], name);
    let ready = server.get("/readyz?verbose").await.text();
    assert!(!ready.contains("storage-version-updater"), "{ready}");
    server.create("a", json!({})).await;
    server.stop().await;
}

/// A server that was killed comes back as the same server with another version: its entry is replaced, and the others'
/// entries are never missing.
async fn storage_version_8_one_version_after_another_moves_the_time(setup: Setup) {
    let path = format!("{VERSIONS}/{AUTOSCALERS}");
    let mut installation = Installation::sqlite().with(&format!("--datastore={}", setup.database.url()));
    let server = installation.start().await;
    let client = installation.client().await;
    let mut version = client.get(&path).await.unwrap().ok();
    assert_eq!(condition(&version).0, "True");
    // Times have whole seconds: only a change of an old time is visible.
    let long_ago = "2020-01-01T00:00:00Z";
    version["status"]["conditions"][0]["lastTransitionTime"] = long_ago.into();
    let version = client.put(&format!("{path}/status"), &version).await.unwrap().ok();
    assert_eq!(condition(&version).2, long_ago);
    server.kill().await;

    installation = installation.with("--storage-version=autoscaling/horizontalpodautoscalers=v1");
    let server = installation.start().await;
    let changed = installation.client().await.get(&path).await.unwrap().ok();
    assert_eq!(changed["status"]["commonEncodingVersion"], "autoscaling/v1");
    assert_eq!(changed["status"]["storageVersions"].as_array().map(Vec::len), Some(1));
    let (status, reason, since) = condition(&changed);
    assert_eq!((&*status, &*reason), ("True", "CommonEncodingVersionSet"));
    assert_ne!(since, long_ago);
    drop(server);
}

/// Upstream registers one resource after the other, and accepts writes of each as soon as possible. Here one
/// transaction registers all of them, so that all become writable together.
async fn storage_version_24_all_resources_are_registered_at_once(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start_empty().await;
    let list = server.get(VERSIONS).await.ok();
    let mut revisions: Vec<u64> = list["items"].as_array().expect("items").iter().map(rv).collect();
    revisions.sort_unstable();
    let (first, last) = (revisions[0], revisions[revisions.len() - 1]);
    assert_eq!(last - first + 1, revisions.len() as u64, "no other write came between: {revisions:?}");
    if !setup.is_sqlite() {
        let transactions = "SELECT COUNT(DISTINCT o.xmin::text) FROM objects o JOIN resources r ON r.id = o.resource \
            WHERE r.plural = 'storageversions'";
        assert_eq!(setup.database.number(transactions).await, 1);
    }
    for path in ["/api/v1/namespaces", "/apis/rbac.authorization.k8s.io/v1/clusterroles"] {
        server.post(path, &json!({"metadata": {"name": "new"}})).await.expect(201);
    }
    server.stop().await;
}

async fn storage_version_32_hashes_of_storage_versions(setup: Setup) {
    let server = setup.start_empty().await;
    let hashes = async |path: &str| {
        let list = server.get(path).await.ok();
        let resources = list["resources"].as_array().expect("resources").clone();
        move |name: &str| {
            let found = resources.iter().find(|resource| resource["name"] == name);
            found.unwrap_or_else(|| panic!("{name} is served"))["storageVersionHash"]
                .as_str()
                .map(str::to_owned)
        }
    };
    let core = hashes("/api/v1").await;
    for (name, hash) in [
        ("pods", "xPOwRZ+Yhw8="),
        ("configmaps", "qFsyl6wFWjQ="),
        ("secrets", "S6u1pOWzb84="),
        ("namespaces", "Q3oi5N2YM8M="),
    ] {
        assert_eq!(core(name).as_deref(), Some(hash), "{name}");
    }
    assert_eq!((core("pods/status"), core("bindings")), (None, None));
    assert_eq!(hashes("/apis/apps/v1").await("deployments").as_deref(), Some("8aSe+NMegvE="));
    assert_eq!(hashes("/apis/coordination.k8s.io/v1").await("leases").as_deref(), Some("gqkMMb/YqFM="));
    assert_eq!(hashes("/apis/authentication.k8s.io/v1").await("tokenreviews"), None);
    let (one, two) = (hashes("/apis/autoscaling/v1").await, hashes("/apis/autoscaling/v2").await);
    assert!(one("horizontalpodautoscalers").is_some());
    assert_eq!(one("horizontalpodautoscalers"), two("horizontalpodautoscalers"));
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    for path in ["/api", "/apis"] {
        let text = server.get(path).accept(aggregated).await.text();
        assert!(text.contains("APIGroupDiscoveryList") && !text.contains("torageVersionHash"), "{text}");
    }
    server.stop().await;
}

/// In discovery's hash, in the StorageVersion, and in the rows; both versions are served in any case.
async fn the_choice_of_a_storage_version_is_seen_everywhere(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let path = "/apis/autoscaling/v2/namespaces/t/horizontalpodautoscalers";
    let hash = async |client: &Client| {
        let list = client.get("/apis/autoscaling/v2").await.ok();
        list["resources"][0]["storageVersionHash"].as_str().expect("a hash").to_owned()
    };
    let server = setup.start().await;
    server.post(path, &autoscaler("new")).await.expect(201);
    let usual = hash(&server).await;
    server.stop().await;

    autoscalers_in(&mut setup, "autoscaling/v1");
    let server = setup.start().await;
    assert_ne!(hash(&server).await, usual);
    assert_eq!(
        entries(&version_of(&server, AUTOSCALERS).await),
        [format!("{}=autoscaling/v1", id("rowplane-0"))]
    );
    server.post(path, &autoscaler("old")).await.expect(201);
    for (name, version) in [("new", "autoscaling/v2"), ("old", "autoscaling/v1")] {
        let sql =
            format!("SELECT COUNT(*) FROM objects WHERE name = '{name}' AND stored_version = '{version}'");
        assert_eq!(setup.database.number(&sql).await, 1, "{name}");
    }
    for served in ["v1", "v2"] {
        let path = path.replace("v2", served);
        let list = server.get(&path).await.ok();
        assert_eq!(names(&list), ["new", "old"]);
        let mut watch = server.watch(format!("{path}?watch=1&resourceVersion=0")).await;
        for item in list["items"].as_array().expect("items") {
            assert_eq!(utilization(item, served), 50, "{item}");
            let told = watch.expect("ADDED").await;
            let alone =
                server.get(format!("{path}/{}", told["metadata"]["name"].as_str().expect("text"))).await;
            for object in [&told, &alone.ok()] {
                assert_eq!(object["apiVersion"], format!("autoscaling/{served}"));
                assert_eq!(utilization(object, served), 50, "{object}");
            }
        }
    }
    server.stop().await;
}

fn utilization(object: &Value, served: &str) -> i64 {
    let found = match served {
        "v1" => &object["spec"]["targetCPUUtilizationPercentage"],
        _ => &object["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
    };
    found.as_i64().unwrap_or_default()
}

pub fn autoscaler(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 50}}}],
    }})
}

mod rolling {
    use super::*;

    /// Two servers that agree, then disagree, then agree again.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn storage_version_6_7_servers_agree_and_disagree() {
        let mut setup = Setup::new(Database::postgres().await);
        on_host(&mut setup, "rowplane-0");
        let first = setup.start_empty().await;
        let alone = version_of(&first, AUTOSCALERS).await;
        on_host(&mut setup, "rowplane-1");
        let second = setup.start_empty().await;
        let entry = |host: &str, version: &str| format!("{}={version}", id(host));
        let agreed = version_of(&first, AUTOSCALERS).await;
        assert_eq!(
            entries(&agreed),
            [entry("rowplane-0", "autoscaling/v2"), entry("rowplane-1", "autoscaling/v2")]
        );
        assert_eq!(agreed["status"]["commonEncodingVersion"], "autoscaling/v2");
        assert_eq!(condition(&agreed), condition(&alone));
        second.stop().await;
        assert_eq!(version_of(&first, AUTOSCALERS).await["status"], alone["status"]);

        autoscalers_in(&mut setup, "autoscaling/v1");
        let second = setup.start_empty().await;
        let split = version_of(&first, AUTOSCALERS).await;
        assert_eq!(
            entries(&split),
            [entry("rowplane-0", "autoscaling/v2"), entry("rowplane-1", "autoscaling/v1")]
        );
        assert_eq!(split["status"].get("commonEncodingVersion"), None);
        let (status, reason, _) = condition(&split);
        assert_eq!((&*status, &*reason), ("False", "CommonEncodingVersionUnset"));
        // The others still agree.
        assert_eq!(version_of(&first, "core.pods").await["status"]["commonEncodingVersion"], "v1");
        first.stop().await;
        let settled = version_of(&second, AUTOSCALERS).await;
        assert_eq!(entries(&settled), [entry("rowplane-1", "autoscaling/v1")]);
        assert_eq!(settled["status"]["commonEncodingVersion"], "autoscaling/v1");
        assert_eq!(condition(&settled).0, "True");
        second.stop().await;
    }

    /// No server waits a second for another, as upstream's do after a conflict, and no entry is lost.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn storage_version_27_servers_that_start_at_once_lose_no_entry() {
        let database = Database::postgres().await;
        let first = api_on(&database).await;
        create_system_namespaces(&first).await.expect("namespaces");
        let others = [api_on(&database).await, api_on(&database).await];
        let register = async |n: usize, api: &rowplane::api::Api| {
            let own = OwnRegistration::new(&format!("apiserver-{n}"), "one");
            api.register(&own, &Extent::Whole).await.expect("register");
        };
        tokio::join!(register(0, &first), register(1, &others[0]), register(2, &others[1]));
        assert_eq!(database.number("SELECT COUNT(*) FROM servers").await, 3);
        let rows = database.number("SELECT COUNT(*) FROM storage_versions").await;
        first.cache.fresh().await.expect("fresh");
        let count = entry_count(&first);
        assert_eq!(count as i64, rows);
        assert_eq!(count % 3, 0);
    }
}

/// The version in which custom objects are stored is told in a StorageVersion that goes with the definition.
async fn the_storage_version_of_custom_resources_is_their_definitions(mut setup: Setup) {
    on_host(&mut setup, "rowplane-0");
    let server = setup.start().await;
    let start = server.revision().await;
    let path =
        format!("{VERSIONS}?watch=1&resourceVersion={start}&fieldSelector=metadata.name%3Dex.io.things");
    let mut events = server.watch(path).await;
    let version = |name: &str, is_stored: bool| {
        json!({"name": name, "served": name != "v3", "storage": is_stored, "schema": {"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.ex.io"},
        "spec": {"group": "ex.io", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1", true), version("v2", false), version("v3", false)]},
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let made = server.post(definitions, &definition).await.expect(201);
    let told = events.expect_named("ADDED", "ex.io.things").await;
    let owner = json!([{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "name": "things.ex.io", "uid": made["metadata"]["uid"]}]);
    assert_eq!(told["metadata"]["ownerReferences"], owner);
    assert_eq!(told["status"]["commonEncodingVersion"], "ex.io/v1");
    let own = &told["status"]["storageVersions"][0];
    assert_eq!(own["servedVersions"], json!(["ex.io/v1", "ex.io/v2"]));
    assert_eq!(own["decodableVersions"], json!(["ex.io/v1", "ex.io/v2", "ex.io/v3"]));
    let switch = json!([{"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true}]);
    let request = server.request(http::Method::PATCH, format!("{definitions}/things.ex.io"));
    request.body("application/json-patch+json", switch.to_string()).await.ok();
    let told = events.expect_named("MODIFIED", "ex.io.things").await;
    assert_eq!(told["status"]["commonEncodingVersion"], "ex.io/v2");
    assert_eq!(told["metadata"]["ownerReferences"], owner);
    server.delete(format!("{definitions}/things.ex.io")).await.ok();
    events.expect_named("DELETED", "ex.io.things").await;
    server.stop().await;
}
