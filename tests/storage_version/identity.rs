//! Leases of servers, and the collection of expired ones.

use std::time::Duration;

use jiff::Timestamp;
use rowplane::api::Target;
use rowplane::api::decode::Body;
use rowplane::api::error::Error;
use rowplane::api::options::{GetOptions, ReadAt};
use rowplane::api::request::Request;
use rowplane::controllers::create_system_namespaces;
use rowplane::controllers::servers::identity_lease_gc;
use rowplane::identity::ServerIdentity;
use rowplane::schema::names::Gvr;
use serde_json::{Value, json};

use crate::support::client::Watch;
use crate::support::database::Database;
use crate::support::server::{Setup, TestServer, names, rv};
use crate::support::verbs::api_on;
use crate::{LEASES, NEVER, OF_SERVERS, OFTEN, identified, on_host};
use rowplane::schema::resource::Verb;

on_both_databases! {
    storage_version_17_a_restart_keeps_the_lease,
    storage_version_18_the_lease_is_renewed,
    storage_version_18_a_lease_that_others_write_is_renewed_all_the_same,
    storage_version_19_expired_leases_of_servers_are_removed,
    storage_version_20_a_lease_renewed_before_its_deletion_survives,
    hooks_are_among_the_health_checks,
}

/// As after a pause in which the server's name was taken since it seemed dead. The server must not continue under the
/// name, and must not release it when it ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_name_another_one_has_taken_ends() {
    let mut setup = Setup::new(Database::postgres().await);
    on_host(&mut setup, "rowplane-0");
    let server = setup.start_empty().await;
    let path = format!("{LEASES}/{}", own_lease());
    let usurper = format!("{}_usurper", own_lease());
    let taken = json!({
        "metadata": {"annotations": {"rowplane.dev/instance": "another"}},
        "spec": {"holderIdentity": usurper, "renewTime": "9000-01-01T00:00:00.000000Z"}
    });
    server.patch(&path, &taken).await.ok();
    let failure = server.failed().await.to_string();
    assert!(
        failure.starts_with(&format!("another server ({usurper}) has taken the name \"rowplane-0\"")),
        "{failure}"
    );
    server.stop().await;

    let server = setup.start_empty().await;
    assert_eq!(holder(&server.get(&path).await.ok()), usurper);
    let own = ServerIdentity::of_host(&format!("rowplane-0-{}", server.port()));
    let mut names = names(&server.get(format!("{LEASES}?{OF_SERVERS}")).await.ok());
    names.sort_unstable();
    let mut expected = [own_lease(), own.id().to_owned()];
    expected.sort_unstable();
    assert_eq!(names, expected);
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "t"}})).await.expect(201);
    server.stop().await;
}

fn own_lease() -> String {
    ServerIdentity::of_host("rowplane-0").id().to_owned()
}

async fn watch(server: &TestServer) -> Watch {
    server.watch(format!("{LEASES}?watch=1&{OF_SERVERS}")).await
}

fn holder(lease: &Value) -> String {
    lease["spec"]["holderIdentity"].as_str().expect("a holder").to_owned()
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

fn renew_time(lease: &Value) -> Timestamp {
    lease["spec"]["renewTime"].as_str().expect("a time").parse().expect("a timestamp")
}

async fn storage_version_17_a_restart_keeps_the_lease(setup: Setup) {
    let setup = identified(setup, NEVER, NEVER);
    let server = setup.start().await;
    let first = watch(&server).await.expect_named("ADDED", &own_lease()).await;
    assert_eq!(first["metadata"]["name"], "apiserver-gotpdk75sum55hzo2xkplynseu");
    server.stop().await;

    let server = setup.start().await;
    let mut watch = watch(&server).await;
    let mut lease = watch.expect("ADDED").await;
    if holder(&lease) == holder(&first) {
        lease = watch.expect("MODIFIED").await;
    }
    assert_ne!(holder(&lease), holder(&first));
    assert_eq!(lease["metadata"]["uid"], first["metadata"]["uid"]);
    let all = server.get(format!("{LEASES}?{OF_SERVERS}")).await.ok();
    assert_eq!(names(&all), [own_lease()]);
    server.stop().await;
}

async fn storage_version_18_the_lease_is_renewed(setup: Setup) {
    let setup = identified(setup, OFTEN, NEVER);
    let server = setup.start().await;
    let mut watch = watch(&server).await;
    let mut lease = watch.expect_named("ADDED", &own_lease()).await;
    let labels = json!({
        "apiserver.kubernetes.io/identity": "kube-apiserver", "kubernetes.io/hostname": "rowplane-0"
    });
    assert!(holder(&lease).starts_with(&format!("{}_", own_lease())), "{lease}");
    for _ in 0..3 {
        assert_eq!(lease["metadata"]["labels"], labels);
        assert_eq!(lease["spec"]["leaseDurationSeconds"], 3600);
        assert_eq!(lease["spec"].as_object().map(|spec| spec.len()), Some(3), "{lease}");
        let next = watch.expect_named("MODIFIED", &own_lease()).await;
        let pause = Duration::try_from(renew_time(&next) - renew_time(&lease)).expect("time goes on");
        assert!(pause >= OFTEN, "{pause:?}");
        assert_eq!(holder(&next), holder(&lease));
        lease = next;
    }
    server.stop().await;
}

/// A conflict costs a read; removed labels are restored, and so is a deleted lease.
async fn storage_version_18_a_lease_that_others_write_is_renewed_all_the_same(setup: Setup) {
    let setup = identified(setup, OFTEN, NEVER);
    let server = setup.start().await;
    let path = format!("{LEASES}/{}", own_lease());
    let mut watch = watch(&server).await;
    let first = watch.expect("ADDED").await;
    server.patch(&path, &json!({"metadata": {"labels": null}, "spec": {"holderIdentity": "me"}})).await.ok();
    let left = loop {
        let event = watch.next().await.expect("an event");
        match event["type"].as_str() {
            Some("MODIFIED") => {}
            Some("DELETED") => break event["object"].clone(),
            _ => panic!("{event}"),
        }
    };
    let back = watch.expect_named("ADDED", &own_lease()).await;
    assert!(rv(&back) > rv(&left));
    assert_eq!((holder(&back), &back["metadata"]["uid"]), (holder(&first), &first["metadata"]["uid"]));

    server.delete(&path).await.ok();
    loop {
        let event = watch.next().await.expect("an event");
        if event["type"] == "ADDED" {
            assert_ne!(event["object"]["metadata"]["uid"], first["metadata"]["uid"]);
            break;
        }
    }
    server.stop().await;
}

fn lease(name: &str, spec: Value) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"apiserver.kubernetes.io/identity": "kube-apiserver"}}, "spec": spec
    })
}

/// A lease that is not renewed, so that it expires soon.
fn expired() -> Value {
    json!({"renewTime": now(), "leaseDurationSeconds": 1})
}

/// A lease with times of another clock: an hour must pass here before it is known to be expired.
fn of_another_clock() -> Value {
    json!({"renewTime": "2020-01-01T00:00:00.000000Z", "leaseDurationSeconds": 3600})
}

async fn storage_version_19_expired_leases_of_servers_are_removed(setup: Setup) {
    let setup = identified(setup, NEVER, OFTEN);
    let server = setup.start().await;
    let mut unlabelled = lease("unlabelled", expired());
    unlabelled["metadata"]["labels"] = json!({"apiserver.kubernetes.io/identity": "other"});
    let now = now();
    let alive = lease("alive", json!({"renewTime": now, "leaseDurationSeconds": 3600}));
    for kept in [unlabelled, alive, lease("behind", of_another_clock())] {
        server.post(LEASES, &kept).await.expect(201);
    }
    let elsewhere = LEASES.replace("kube-system", "t");
    server.post(&elsewhere, &lease("elsewhere", expired())).await.expect(201);

    let mut watch = watch(&server).await;
    // At the latest, the second pass has seen everything that existed at the first one.
    for (name, spec) in [
        ("stale", expired()),
        ("timeless", json!({"leaseDurationSeconds": 3600})),
        ("boundless", json!({"renewTime": now})),
    ] {
        server.post(LEASES, &lease(name, spec)).await.expect(201);
        loop {
            let event = watch.next().await.expect("an event");
            if event["type"] == "DELETED" {
                assert_eq!(event["object"]["metadata"]["name"], name);
                break;
            }
        }
    }
    let mut left = names(&server.get(LEASES).await.ok());
    // On PostgreSQL there is also the lease of the replicas' controllers.
    left.retain(|name| *name != own_lease() && name != "rowplane-controllers");
    assert_eq!(left, ["alive", "behind", "unlabelled"]);
    assert_eq!(names(&server.get(&elsewhere).await.ok()), ["elsewhere"]);
    server.stop().await;
}

/// The state that a collector has read may be outdated when it deletes.
async fn storage_version_20_a_lease_renewed_before_its_deletion_survives(setup: Setup) {
    let api = api_on(&setup.database).await;
    create_system_namespaces(&api).await.expect("namespaces");
    let leases = api.resources.get(&Gvr::fixed("coordination.k8s.io/v1", "leases")).expect("leases").clone();
    let target = Target { resource: &leases, namespace: "kube-system", name: "late" };
    let create = async || {
        let lease = serde_json::from_value(lease("late", expired())).expect("an object");
        let request = Request::own(Verb::Create, Target { name: "", ..target });
        api.create(&request, Body::Object(&lease)).await.expect("create");
    };
    let read = async || api.get(target, GetOptions { at: ReadAt::Latest }).await;

    create().await;
    let stale = read().await.expect("there");
    let mut renewed = stale.to_map().expect("an object");
    renewed["spec"]["renewTime"] = now().into();
    api.update(&Request::own(Verb::Update, target), Body::Object(&renewed)).await.expect("renew");
    identity_lease_gc::delete(&api, &stale).await.expect("no error");
    let current = read().await.expect("it survives");
    assert!(current.revision() > stale.revision());

    identity_lease_gc::delete(&api, &current).await.expect("no error");
    assert!(matches!(read().await, Err(Error::NotFound { .. })));
    create().await;
    identity_lease_gc::delete(&api, &current).await.expect("no error");
    read().await.expect("another one of that name survives too");
}

async fn hooks_are_among_the_health_checks(setup: Setup) {
    let text = async |server: &TestServer| server.get("/readyz?verbose").await.text();
    let hooks = ["lease-controller", "lease-garbage-collector"]
        .map(|hook| format!("[+]poststarthook/start-kube-apiserver-identity-{hook} ok\n"));
    let server = setup.start().await;
    let without = text(&server).await;
    server.stop().await;
    let setup = identified(setup, NEVER, NEVER);
    let server = setup.start().await;
    let with = text(&server).await;
    for hook in &hooks {
        assert!(with.contains(hook) && !without.contains(hook), "{with}{without}");
    }
    server.stop().await;
}
