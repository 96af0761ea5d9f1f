//! Stores of earlier releases, in `tests/fixtures`, are opened with the present code.
//!
//! A release adds its own: run `tests/fixtures/make-store vN`, then commit what it wrote. Existing fixtures are never
//! changed.

mod support;

use std::path::{Path, PathBuf};

use http::StatusCode;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection as _};

use crate::support::postgres::{self, Schema};
use crate::support::process::Installation;
use crate::support::rest::{Client, revision};

const CONFIGMAPS: &str = "/api/v1/namespaces/old/configmaps";

/// The other objects in the store: all of `tests/kubectl/kinds.yaml`, except the namespace, which was deleted again.
const OBJECTS: [&str; 11] = [
    "/api/v1/namespaces/old/secrets/credentials",
    "/api/v1/namespaces/old/serviceaccounts/robot",
    "/api/v1/namespaces/old/services/web",
    "/api/v1/namespaces/old/pods/web-0",
    "/api/v1/namespaces/old/persistentvolumeclaims/disk",
    "/apis/apps/v1/namespaces/old/deployments/web",
    "/apis/batch/v1/namespaces/old/jobs/once",
    "/apis/rbac.authorization.k8s.io/v1/namespaces/old/roles/reader",
    "/apis/networking.k8s.io/v1/namespaces/old/ingresses/web",
    "/apis/storage.k8s.io/v1/storageclasses/fast",
    "/api/v1/namespaces/kube-system",
];

/// The dumps for one backend, one per release.
fn fixtures(backend: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let suffix = format!(".{backend}.sql");
    let found: Vec<_> = files.filter(|path| path.to_str().unwrap().ends_with(&suffix)).collect();
    assert!(!found.is_empty(), "there is no fixture for {backend}");
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_of_earlier_releases_on_sqlite() {
    for fixture in fixtures("sqlite") {
        let installation = Installation::sqlite();
        let url = format!("sqlite://{}?mode=rwc", installation.dir().join("state.db").display());
        let mut connection = SqliteConnection::connect(&url).await.unwrap();
        let dump = std::fs::read_to_string(&fixture).unwrap();
        sqlx::raw_sql(AssertSqlSafe(dump)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
        opens(&fixture, installation).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_of_earlier_releases_on_postgres() {
    for fixture in fixtures("postgres") {
        let schema = Schema::create().await;
        postgres::execute(&schema.url(), &std::fs::read_to_string(&fixture).unwrap()).await;
        opens(&fixture, Installation::postgres(&schema)).await;
    }
}

/// Reads, lists, watches and writes, before and after a restart.
async fn opens(fixture: &Path, installation: Installation) {
    println!("{}", fixture.display());
    let installation = installation.without_heartbeats();
    // The test needs the old history.
    let installation = installation.with("--compaction-interval=0");
    let server = installation.start().await;
    let client = installation.client().await;
    let facts = get(&client, &format!("{CONFIGMAPS}/facts")).await;
    let start: u64 = facts["data"]["start"].as_str().unwrap().parse().unwrap();

    reads(&client).await;
    let told = watches_the_past(&client, start).await;
    lists_of_the_past(&client, start, &told).await;
    writes(&client).await;

    server.terminate().await;
    assert_eq!(server.end().await.code(), Some(0));
    let _server = installation.start().await;
    assert_eq!(names(&get(&client, CONFIGMAPS).await), ["facts", "kept", "new", "settings"]);
}

async fn get(client: &Client, path: &str) -> Value {
    client.get(path).await.unwrap().ok()
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

async fn reads(client: &Client) {
    let kept = get(client, &format!("{CONFIGMAPS}/kept")).await;
    assert_eq!(kept["data"], json!({"color": "grün"}));
    assert_eq!(kept["metadata"]["namespace"], "old");
    for path in OBJECTS {
        let object = get(client, path).await;
        let name = path.rsplit('/').next().unwrap();
        assert_eq!(object["metadata"]["name"], name);
        // The list of its kind contains it, too, with the same uid.
        let list = get(client, path.strip_suffix(name).unwrap().trim_end_matches('/')).await;
        let items = list["items"].as_array().unwrap();
        assert!(items.iter().any(|item| item["metadata"]["uid"] == object["metadata"]["uid"]), "{path}");
    }
    // Objects from before the defaults existed have them, also for selectors.
    let deployment = get(client, "/apis/apps/v1/namespaces/old/deployments/web").await;
    assert_eq!(deployment["spec"]["progressDeadlineSeconds"], 600);
    assert_eq!(deployment["spec"]["template"]["spec"]["schedulerName"], "default-scheduler");
    let pods =
        get(client, "/api/v1/namespaces/old/pods?fieldSelector=spec.schedulerName%3Ddefault-scheduler").await;
    assert_eq!(pods["items"][0]["spec"]["dnsPolicy"], "ClusterFirst");
    for gone in [&format!("{CONFIGMAPS}/gone"), "/api/v1/namespaces/team"] {
        assert_eq!(client.get(gone).await.unwrap().status, StatusCode::NOT_FOUND);
    }
}

/// The revisions of the events after `start`.
async fn watches_the_past(client: &Client, start: u64) -> Vec<u64> {
    let mut watch = client.watch(&format!("{CONFIGMAPS}?watch=1&resourceVersion={start}")).await.unwrap();
    let mut told = Vec::new();
    for (kind, name) in [
        ("ADDED", "kept"),
        ("ADDED", "gone"),
        ("MODIFIED", "kept"),
        ("DELETED", "gone"),
        ("ADDED", "again"),
        ("DELETED", "again"),
        ("ADDED", "again"),
        ("ADDED", "settings"),
        ("ADDED", "facts"),
    ] {
        let event = watch.event().await;
        assert_event(&event, kind, name);
        told.push(revision(&event["object"]));
    }
    assert!(told[0] > start && told.is_sorted_by(|a, b| a < b), "{told:?}");
    told
}

fn assert_event(event: &Value, kind: &str, name: &str) {
    assert_eq!((&event["type"], &event["object"]["metadata"]["name"]), (&json!(kind), &json!(name)));
}

async fn lists_of_the_past(client: &Client, start: u64, told: &[u64]) {
    for (at, expected) in [
        (start, vec![]),
        (told[1], vec![("gone", "blue"), ("kept", "blue")]),
        (told[2], vec![("gone", "blue"), ("kept", "grün")]),
        (told[4], vec![("again", "blue"), ("kept", "grün")]),
        (told[5], vec![("kept", "grün")]),
    ] {
        let list =
            get(client, &format!("{CONFIGMAPS}?resourceVersion={at}&resourceVersionMatch=Exact")).await;
        let items = list["items"].as_array().unwrap().iter();
        let text = |value: &'_ Value| value.as_str().unwrap().to_owned();
        let found = items.map(|item| (text(&item["metadata"]["name"]), text(&item["data"]["color"])));
        let expected = expected.into_iter().map(|(name, color)| (name.to_owned(), color.to_owned()));
        assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "at {at}");
    }
}

/// Creates, replaces and deletes; a watch from the end of the old release's history reports it.
async fn writes(client: &Client) {
    let end = revision(&get(client, CONFIGMAPS).await);
    let mut watch = client.watch(&format!("{CONFIGMAPS}?watch=1&resourceVersion={end}")).await.unwrap();
    let new = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}});
    assert_eq!(revision(&client.post(CONFIGMAPS, &new).await.unwrap().ok()), end + 1);
    let path = format!("{CONFIGMAPS}/kept");
    let mut kept = get(client, &path).await;
    kept["data"]["color"] = json!("green");
    client.put(&path, &kept).await.unwrap().ok();
    assert_eq!(client.put(&path, &kept).await.unwrap().status, StatusCode::CONFLICT);
    client.delete(&format!("{CONFIGMAPS}/again"), None).await.unwrap().ok();
    for (kind, name) in [("ADDED", "new"), ("MODIFIED", "kept"), ("DELETED", "again")] {
        assert_event(&watch.event().await, kind, name);
    }
}
