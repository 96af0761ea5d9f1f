//! Clusters that other API servers have kept, imported into new stores: what kube-apiserver served is served, and goes
//! on. `tests/upstream/snapshots` makes the snapshots.

mod support;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rowplane::cli::export::Options;
use rowplane::cli::import::{Imported, LiveArgs, Origin};
use rowplane::cli::keys::KeyArgs;
use rowplane::schema::names::GroupResource;
use rowplane::server::datastore::Datastore;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::database::Database;
use crate::support::server::{Setup, TestServer, rv};

const BUMP: u64 = 5000;
const SERVICES: &str = "/api/v1/namespaces/shop/services";

/// A file of testdata/snapshots.
fn unzipped(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/snapshots").join(name);
    let file = std::fs::File::open(path).expect("open");
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).expect("unzip");
    bytes
}

/// The snapshot, as a file.
fn snapshot(dir: &TempDir) -> PathBuf {
    let path = dir.path().join("cluster.db");
    std::fs::write(&path, unzipped("cluster.db.gz")).expect("write");
    path
}

fn origin(from: &Path) -> Origin {
    let (from, etcd_prefix) = (from.display().to_string(), "/registry".to_owned());
    let (live, keys) = (LiveArgs::default(), KeyArgs::default());
    Origin { from, etcd_prefix, bump_revision: Some(BUMP), live, keys }
}

async fn import(from: &Path, datastore: &Datastore) -> Imported {
    origin(from).import(datastore).await.unwrap_or_else(|error| panic!("import: {error}"))
}

/// The items that kube-apiserver served, by the path of their list.
fn served() -> BTreeMap<String, Vec<Value>> {
    serde_json::from_slice(&unzipped("served.json.gz")).expect("JSON")
}

/// Objects that a server or its controllers write when they start, whoever has written them before: rules of aggregated
/// roles, usage of quotas, types of policies, definitions with their names.
fn is_reconciled(path: &str, name: &str) -> bool {
    let of_servers = [
        "/apiservices",
        "/prioritylevelconfigurations",
        "/flowschemas",
        "/leases",
        "/customresourcedefinitions",
        "/resourcequotas",
        "/validatingadmissionpolicies",
    ];
    let of_kubernetes = ["/endpoints", "/endpointslices", "/services"];
    let ends_with = |endings: &[&str]| endings.iter().any(|ending| path.ends_with(ending));
    ends_with(&of_servers)
        || ends_with(&of_kubernetes) && name == "kubernetes"
        || ends_with(&["/configmaps"]) && name == "extension-apiserver-authentication"
        || ends_with(&["/clusterroles"]) && ["admin", "edit", "view"].contains(&name)
}

/// The parts of an object that nothing but its users write.
fn lasting(object: &Value) -> Value {
    json!([object["metadata"]["uid"], object["metadata"]["creationTimestamp"], object["spec"]])
}

/// Objects are served as kube-apiserver did, with their resourceVersions, but for those that the server writes itself.
async fn check_served(server: &TestServer) {
    let (mut same, mut differing) = (0, Vec::new());
    for (path, expected) in served() {
        // ComponentStatuses are no objects: they tell who answers.
        if path == "/api/v1/componentstatuses" {
            continue;
        }
        let listed = server.get(&path).await;
        if listed.status == 404 {
            differing.push(format!("{path} is not served"));
            continue;
        }
        let listed = listed.ok();
        let version = listed["apiVersion"].clone();
        let items = listed["items"].as_array().expect("items").clone();
        for mut wanted in expected {
            let name = wanted["metadata"]["name"].as_str().expect("a name").to_owned();
            let of_it = |item: &&Value| {
                ["name", "namespace"].iter().all(|part| item["metadata"][part] == wanted["metadata"][part])
            };
            let Some(found) = items.iter().find(of_it) else {
                differing.push(format!("{path} {name} is missing"));
                continue;
            };
            let mut found = found.clone();
            found["apiVersion"] = version.clone();
            found["kind"] = wanted["kind"].clone();
            if is_reconciled(&path, &name) && rv(&found) > rv(&wanted) {
                if !path.ends_with("/leases") && lasting(&found) != lasting(&wanted) {
                    differing.push(format!("{path} {name}:\n{found}\n{wanted}"));
                }
                continue;
            }
            for object in [&mut found, &mut wanted] {
                if let Some(managers) = object["metadata"]["managedFields"].as_array_mut() {
                    managers.sort_by_key(Value::to_string);
                }
            }
            if found == wanted {
                same += 1;
            } else {
                differing.push(format!("{path} {name}:\n{found}\n{wanted}"));
            }
        }
    }
    assert!(
        differing.is_empty(),
        "{} of {}:\n{}",
        differing.len(),
        same + differing.len(),
        differing.join("\n")
    );
    assert!(same > 200, "{same}");
}

/// A port or an address that an imported Service has is not given to another one.
async fn check_claims(server: &TestServer) {
    let service = |name: &str, spec: Value| json!({"metadata": {"name": name}, "spec": spec});
    let mut taken = Vec::new();
    for (path, services) in served() {
        if path == "/api/v1/services" {
            for service in services {
                let spec = &service["spec"];
                let ports =
                    spec["ports"].as_array().into_iter().flatten().map(|port| port["nodePort"].clone());
                taken.extend(ports.chain([spec["healthCheckNodePort"].clone()]).filter(Value::is_u64));
            }
        }
    }
    assert_eq!(taken.len(), 4, "{taken:?}");
    for port in taken {
        let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
        let refused = server.post(SERVICES, &service("rival", spec)).await.failure();
        let message = refused["message"].as_str().expect("a message");
        assert!(message.ends_with("provided port is already allocated"), "{message}");
    }
    let inside = server.get(format!("{SERVICES}/inside")).await.ok();
    let spec = json!({"clusterIP": inside["spec"]["clusterIP"], "ports": [{"port": 80}]});
    let refused = server.post(SERVICES, &service("rival", spec)).await.failure();
    assert!(refused["message"].as_str().expect("a message").contains("already allocated"), "{refused}");
    // What a Service gives back is free again.
    server.delete(format!("{SERVICES}/outside")).await.ok();
    let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]});
    server.post(SERVICES, &service("heir", spec)).await.expect(201);
}

/// Versions go on far ahead of those of the source, and watches from then have to list anew.
async fn check_goes_on(server: &TestServer, revision: u64) {
    let path = "/api/v1/namespaces/shop/configmaps/settings";
    let before = server.get(path).await.ok();
    let mut changed = before.clone();
    changed["data"]["key"] = json!("changed");
    let after = server.put(path, &changed).await.ok();
    assert!(rv(&before) <= revision && rv(&after) > revision + BUMP, "{before} {after}");
    let watch = format!("/api/v1/configmaps?watch=1&resourceVersion={revision}");
    assert_eq!(server.watch(watch).await.next().await.expect("an event")["object"]["code"], 410);
    let widgets = "/apis/ex.io/v1/namespaces/shop/widgets";
    let widget = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "new"}});
    let widget = server.post(widgets, &widget).await.expect(201);
    assert_eq!(widget["metadata"]["generation"], 1);
}

async fn a_snapshot_is_imported(target: Database) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = snapshot(&dir);
    let checked = origin(&file).check().await.expect("check");
    let target = Setup::new(target);
    let imported = import(&file, &target.database.datastore()).await;
    assert_eq!(imported.summary.revision, checked.summary.revision);
    let widgets = GroupResource::new("ex.io", "widgets");
    assert_eq!((checked.summary.objects[&widgets], imported.summary.objects[&widgets]), (2, 2));
    assert_eq!(imported.findings.refused.named(), Vec::<String>::new());
    let left: Vec<&str> = imported.findings.left.keys().map(String::as_str).collect();
    assert_eq!(left, ["/registry/masterleases/", "/registry/peerserverleases/", "/registry/ranges/"]);
    let again = origin(&file).import(&target.database.datastore()).await.expect_err("used");
    assert!(again.to_string().contains("not empty"), "{again}");

    let server = target.start_empty().await;
    check_served(&server).await;
    check_claims(&server).await;
    check_goes_on(&server, imported.summary.revision.0).await;
    server.stop().await;
}

/// A file that is cut or changed leaves the store empty.
async fn a_damaged_snapshot_is_refused(target: Database) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (whole, bad) = (unzipped("cluster.db.gz"), dir.path().join("bad.db"));
    let datastore = target.datastore();
    let refused = async |bytes: &[u8], why: &str| {
        std::fs::write(&bad, bytes).expect("write");
        let error = origin(&bad).import(&datastore).await.expect_err(why).to_string();
        assert_eq!(error, format!("{} {why}", bad.display()));
    };
    refused(&whole[..whole.len() / 2], "is no database of etcd: it is truncated").await;
    refused(b"something else", "is no database of etcd: it does not begin as bbolt's files do").await;
    let mut changed = whole.clone();
    let last = changed.len() - 100;
    changed[last] ^= 1;
    refused(&changed, "is damaged: its checksum is not that of its content").await;
    let missing = origin(&dir.path().join("none")).import(&datastore).await.expect_err("missing").to_string();
    assert!(missing.contains("No such file"), "{missing}");

    std::fs::write(&bad, whole).expect("write");
    import(&bad, &datastore).await;
}

/// An export is checked for the release that is to read it.
async fn an_older_release_does_not_know_all_kinds(target: Database) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let datastore = target.datastore();
    import(&snapshot(&dir), &datastore).await;
    let refused = async |release: Option<&str>| {
        let release = release.map(|release| release.parse().expect("a release"));
        let options = Options { etcd_prefix: "/registry".to_owned(), release, keys: KeyArgs::default() };
        let (summary, refused) = options.check(&datastore).await.expect("check");
        let written = options.write(&datastore, &dir.path().join("export.db")).await;
        assert_eq!(written.is_ok(), refused.named().is_empty(), "{written:?}");
        (summary.objects.values().sum::<u64>(), refused.named().to_vec())
    };
    let (all, none) = refused(None).await;
    assert_eq!(none, Vec::<String>::new());
    let (others, named) = refused(Some("1.33")).await;
    assert_eq!(others + named.len() as u64, all);
    let gpu = "cannot export deviceclasses.resource.k8s.io \"gpu\": Kubernetes 1.33 does not know \
               resource.k8s.io/v1 DeviceClass, which is of 1.34";
    assert!(named.iter().any(|line| line == gpu), "{named:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_release_does_not_know_all_kinds_of_sqlite() {
    an_older_release_does_not_know_all_kinds(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_release_does_not_know_all_kinds_of_postgres() {
    an_older_release_does_not_know_all_kinds(Database::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_imported_into_sqlite() {
    a_snapshot_is_imported(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_is_imported_into_postgres() {
    a_snapshot_is_imported(Database::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_snapshot_is_refused_by_sqlite() {
    a_damaged_snapshot_is_refused(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_snapshot_is_refused_by_postgres() {
    a_damaged_snapshot_is_refused(Database::postgres().await).await;
}
