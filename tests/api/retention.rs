//! History that is kept beyond the watch horizon: who wrote what, and how long it can be read.

use rowplane::revision::Revision;
use rowplane::schema::names::GroupResource;
use rowplane::storage::{ChangeFilter, ChangeKind, ResourceId, Writer};
use serde_json::json;

use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, names, rv, token};

on_every_store! {
    writers_are_recorded,
    what_is_recorded_of_writers_is_a_setting,
    exact_reads_reach_below_the_watch_horizon,
}

async fn config_maps(server: &TestServer) -> ResourceId {
    let name = GroupResource::new("", "configmaps");
    server.backend.resource_ids(&[name]).await.expect("an id")[0]
}

/// The changes of ConfigMaps in `t`, newest first.
async fn writers(server: &TestServer) -> Vec<(String, ChangeKind, Option<Writer>)> {
    let (resource, namespace) = (Some(config_maps(server).await), Some("t".into()));
    let filter = ChangeFilter { resource, namespace };
    let found = server.backend.changes_between(&filter, None, Revision(0), 100).await.expect("changes");
    let told = found.into_iter().filter(|change| &*change.name != "kube-root-ca.crt");
    told.map(|change| (change.name.into(), change.event, change.writer)).collect()
}

/// Assertions 31 and 33 of `docs/spec/time-and-sql.md`, the part of what is recorded.
async fn writers_are_recorded(setup: Setup) {
    let server = setup.start().await;
    let agent = "kubectl/v1.37.0 (linux/amd64) kubernetes/1234567";
    let create = server.post(CONFIGMAPS, &config_map("a", json!({"n": "1"}))).header("user-agent", agent);
    create.await.expect(201);
    let a = format!("{CONFIGMAPS}/a");
    let patch = server.patch(format!("{a}?fieldManager=tool"), &json!({"data": {"n": "2"}}));
    patch.header("impersonate-user", "anna").header("impersonate-group", "system:masters").await.ok();
    server.delete(&a).await.ok();
    let told = writers(&server).await;
    let of = |index: usize| told[index].2.clone().expect("a writer");
    let (deleted, patched, created) = (of(0), of(1), of(2));
    assert_eq!(
        told.iter().map(|(_, event, _)| *event).collect::<Vec<_>>(),
        [ChangeKind::Deleted, ChangeKind::Modified, ChangeKind::Added]
    );
    assert_eq!((&*created.verb, &*created.client), ("create", "kubectl/v1.37.0"));
    assert_eq!((&*created.manager, &*created.impersonator), ("kubectl", ""));
    assert_eq!((&*patched.username, &*patched.impersonator), ("anna", &*created.username));
    assert_eq!((&*patched.verb, &*patched.manager, &*patched.subresource), ("patch", "tool", ""));
    assert_eq!((&*deleted.verb, &*deleted.username), ("delete", &*created.username));
}

async fn what_is_recorded_of_writers_is_a_setting(mut setup: Setup) {
    use rowplane::storage::RecordWriters;
    setup.record_writers = RecordWriters::Manager;
    let server = setup.start().await;
    server.create("a", json!({})).await;
    let writer = writers(&server).await[0].2.clone().expect("a writer");
    assert!(
        writer.username.is_empty() && writer.client.is_empty() && !writer.manager.is_empty(),
        "{writer:?}"
    );
    server.stop().await;
    if setup.is_in_memory() {
        return;
    }
    setup.record_writers = RecordWriters::Off;
    let server = setup.start_empty().await;
    server.create("b", json!({})).await;
    assert_eq!(writers(&server).await[0], ("b".to_owned(), ChangeKind::Added, None));
}

/// Assertions 10 and 19 of `docs/spec/time-and-sql.md`: an explicit Exact reaches down to the resource's floor; a revision
/// with a limit, continue tokens and watches end at the watch horizon.
async fn exact_reads_reach_below_the_watch_horizon(setup: Setup) {
    let server = setup.start().await;
    let old = rv(&server.create("a", json!({"n": "1"})).await);
    server.create("z", json!({})).await;
    let page = server.get(format!("{CONFIGMAPS}?limit=1")).await.ok();
    server.set("a", json!({"n": "2"})).await;
    let now = rv(&server.create("b", json!({})).await);
    server.backend.compact(Revision(now)).await.expect("compact");
    let exact = |at: u64| server.get(format!("{CONFIGMAPS}?resourceVersion={at}&resourceVersionMatch=Exact"));
    let list = exact(old).await.ok();
    assert_eq!((rv(&list), names(&list)), (old, vec!["a".to_owned()]));
    assert_eq!(list["items"][0]["data"]["n"], "1");
    let gone = "The resourceVersion for the provided list is too old.";
    server.get(format!("{CONFIGMAPS}?resourceVersion={old}&limit=500")).await.fails(
        410,
        "Expired",
        gone,
        json!(null),
    );
    server.get(format!("{CONFIGMAPS}?limit=1&continue={}", token(&page))).await.expect(410);
    // Each resource has a floor of its own.
    let others = [(config_maps(&server).await, Revision(old))];
    server.backend.raise_floors(Revision(now), &others).await.expect("raised");
    assert_eq!(rv(&exact(old).await.ok()), old);
    exact(old - 1).await.fails(410, "Expired", gone, json!(null));
    let secrets = "/api/v1/namespaces/t/secrets";
    let secrets = server.get(format!("{secrets}?resourceVersion={old}&resourceVersionMatch=Exact")).await;
    secrets.fails(410, "Expired", gone, json!(null));
}
