//! ResourceQuota: what a namespace may use, counted in the transactions of the writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rowplane::cache::Range;
use rowplane::wall_clock::WallClock;
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::server::{Setup, TestServer, names};

const PODS: &str = "/api/v1/namespaces/t/pods";
const QUOTAS: &str = "/api/v1/namespaces/t/resourcequotas";
const SERVICES: &str = "/api/v1/namespaces/t/services";
const CLAIMS: &str = "/api/v1/namespaces/t/persistentvolumeclaims";
const CONFIGMAPS: &str = "/api/v1/namespaces/t/configmaps";

on_every_store! {
    admission_16_93_95_97_a_quota_counts_and_refuses,
    admission_94_a_hundred_writers_get_what_there_is,
    admission_101_a_quota_is_counted_when_it_is_written,
    random_writes_are_counted_exactly,
    devices_count_as_the_extended_resource_of_their_class,
    pods_past_their_grace_period_hold_nothing,
    random_deletions_give_back_once,
    figures_without_measure,
    admission_96_98_100_kinds_and_scopes_count_as_they_do_upstream,
}

fn quota(name: &str, hard: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"hard": hard}})
}

fn pod(name: &str, cpu: &str) -> Value {
    let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}});
    json!({"metadata": {"name": name}, "spec": {"containers": [container]}})
}

#[track_caller]
fn forbidden(refused: &Value, text: &str) {
    assert_eq!((&refused["code"], &refused["reason"]), (&json!(403), &json!("Forbidden")), "{refused}");
    assert_eq!(refused["message"], text);
}

async fn status(server: &TestServer, name: &str) -> Value {
    server.get(format!("{QUOTAS}/{name}")).await.ok()["status"].clone()
}

async fn used(server: &TestServer, name: &str) -> Value {
    status(server, name).await["used"].clone()
}

async fn admission_16_93_95_97_a_quota_counts_and_refuses(setup: Setup) {
    let server = setup.start().await;
    let made = server.post(QUOTAS, &quota("q", json!({"pods": "1", "requests.cpu": "1"}))).await.expect(201);
    assert_eq!(
        made["status"],
        json!({"hard": {"pods": "1", "requests.cpu": "1"}, "used": {"pods": "0", "requests.cpu": "0"}})
    );
    server.post(PODS, &pod("a", "600m")).await.expect(201);
    assert_eq!(used(&server, "q").await, json!({"pods": "1", "requests.cpu": "600m"}));
    let text = "pods \"b\" is forbidden: exceeded quota: q, requested: pods=1,requests.cpu=600m, used: \
                pods=1,requests.cpu=600m, limited: pods=1,requests.cpu=1";
    let refused = server.post(PODS, &pod("b", "600m")).await.failure();
    forbidden(&refused, text);
    assert_eq!(refused["details"], json!({"name": "b", "kind": "pods"}));
    let text = "pods \"b\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1";
    forbidden(&server.post(PODS, &pod("b", "400m")).await.failure(), text);
    // What exists already is refused for the quota first, and charges nothing.
    forbidden(&server.post(PODS, &pod("a", "1m")).await.failure(), &text.replace("\"b\"", "\"a\""));
    server.patch(format!("{QUOTAS}/q"), &json!({"spec": {"hard": {"pods": "3"}}})).await.ok();
    assert_eq!(server.post(PODS, &pod("a", "1m")).await.failure()["reason"], "AlreadyExists");
    let dry = format!("{PODS}?dryRun=All");
    server.post(dry.clone(), &pod("b", "100m")).await.expect(201);
    assert_eq!(server.post(dry, &pod("b", "500m")).await.failure()["code"], 403);
    assert_eq!(used(&server, "q").await, json!({"pods": "1", "requests.cpu": "600m"}));
    // A Pod that has ended holds nothing any more, nor does one that is gone.
    server.patch(format!("{PODS}/a/status"), &json!({"status": {"phase": "Succeeded"}})).await.ok();
    assert_eq!(used(&server, "q").await, json!({"pods": "0", "requests.cpu": "0"}));
    server.post(PODS, &pod("b", "1")).await.expect(201);
    assert_eq!(used(&server, "q").await, json!({"pods": "1", "requests.cpu": "1"}));
    let now = json!({"gracePeriodSeconds": 0});
    server.delete(format!("{PODS}/b")).json(&now).await.ok();
    assert_eq!(used(&server, "q").await, json!({"pods": "0", "requests.cpu": "0"}));
    server.delete(format!("{QUOTAS}/q")).await.ok();
    server.post(PODS, &pod("c", "5")).await.expect(201);
}

async fn admission_94_a_hundred_writers_get_what_there_is(setup: Setup) {
    let mut servers = vec![setup.start().await];
    if matches!(setup.database, Database::Postgres(_)) {
        servers.push(setup.start().await);
    }
    servers[0].post(QUOTAS, &quota("q", json!({"pods": "10", "count/pods": "50"}))).await.expect(201);
    let create = |n: usize| servers[n % servers.len()].post(PODS, &pod(&format!("p{n}"), "1m"));
    let answers = join_all((0..100).map(|n| async move { create(n).await })).await;
    let made = answers.iter().filter(|answer| answer.status == 201).count();
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        let message = answer.json()["message"].as_str().expect("a message").to_owned();
        assert!(
            message.ends_with("exceeded quota: q, requested: pods=1, used: pods=10, limited: pods=10"),
            "{message}"
        );
    }
    assert_eq!(made, 10);
    assert_eq!(used(&servers[0], "q").await, json!({"pods": "10", "count/pods": "10"}));
    let last = servers.last().expect("a server");
    let delete = |name: String| last.delete(format!("{PODS}/{name}")).json(&json!({"gracePeriodSeconds": 0}));
    join_all(
        names(&last.get(PODS).await.ok()).into_iter().map(|name| async move { delete(name).await.ok() }),
    )
    .await;
    assert_eq!(used(&servers[0], "q").await, json!({"pods": "0", "count/pods": "0"}));
}

async fn admission_101_a_quota_is_counted_when_it_is_written(setup: Setup) {
    let server = setup.start().await;
    for n in 0..3 {
        server.post(PODS, &pod(&format!("p{n}"), "100m")).await.expect(201);
        server.create(&format!("c{n}"), json!({})).await;
    }
    let hard = json!({"pods": "9", "cpu": "2", "configmaps": "3", "count/configmaps": "7", "resourcequotas": "2", "count/nothing.ex.io": "1"});
    let made = server.post(QUOTAS, &quota("q", hard.clone())).await.expect(201);
    assert_eq!(made["status"]["hard"], hard);
    assert_eq!(
        made["status"]["used"],
        json!({"pods": "3", "cpu": "300m", "configmaps": "3", "count/configmaps": "3", "resourcequotas": "1"})
    );
    let over = "configmaps \"x\" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=3, limited: configmaps=3";
    forbidden(&server.post(CONFIGMAPS, &json!({"metadata": {"name": "x"}})).await.failure(), over);
    // Another limit counts what was not counted before; what somebody else has counted does not matter.
    let spec = json!({"spec": {"hard": {"pods": "2", "secrets": "1", "cpu": null, "configmaps": null}}});
    let changed = server.patch(format!("{QUOTAS}/q"), &spec).await.ok();
    assert_eq!(changed["status"]["used"]["secrets"], "0");
    assert_eq!(
        (&changed["status"]["used"]["pods"], &changed["status"]["used"]["cpu"]),
        (&json!("3"), &Value::Null)
    );
    let false_count = json!({"status": {"used": {"pods": "0"}}});
    server.patch(format!("{QUOTAS}/q/status"), &false_count).await.ok();
    assert_eq!(used(&server, "q").await["pods"], "3");
    server.post(QUOTAS, &quota("r", json!({"resourcequotas": "5"}))).await.expect(201);
    assert_eq!(
        (used(&server, "q").await["resourcequotas"].clone(), used(&server, "r").await),
        (json!("2"), json!({"resourcequotas": "2"}))
    );
    server.delete(format!("{QUOTAS}/r")).await.ok();
    assert_eq!(used(&server, "q").await["resourcequotas"], "1");
}

/// What is larger than 64 bits is as much as there can be, as for upstream; sums go beyond it.
async fn figures_without_measure(setup: Setup) {
    let server = setup.start().await;
    for (hard, text) in [
        (json!({"pods": "-1"}), "must be greater than or equal to 0"),
        (json!({"pods": "0.5"}), "must be an integer"),
        (json!({"nothing": "1"}), "must be a standard resource for quota"),
    ] {
        let refused = server.post(QUOTAS, &quota("q", hard)).await.failure();
        assert_eq!(refused["code"], 422, "{refused}");
        assert!(refused["message"].as_str().is_some_and(|found| found.contains(text)), "{refused}");
    }
    for wrong in ["much", "1e", "1Zi", "0x10"] {
        let refused = server.post(QUOTAS, &quota("q", json!({"pods": wrong}))).await.failure();
        assert_eq!(refused["code"], 400, "{refused}");
    }
    let hard = json!({"pods": "9223372036854775807", "requests.cpu": "9223372036854775807", "configmaps": "99999999E"});
    server.post(QUOTAS, &quota("q", hard)).await.expect(201);
    server.post(PODS, &pod("a", "9223372036854775806")).await.expect(201);
    server.post(PODS, &pod("b", "1")).await.expect(201);
    assert_eq!(used(&server, "q").await["requests.cpu"], "9223372036854775807");
    let refused = server.post(PODS, &pod("c", "1m")).await.failure();
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("exceeded quota: q")), "{refused}");
    let refused = server.post(PODS, &pod("c", "9223372036854775807")).await.failure();
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("exceeded quota: q")), "{refused}");
    // What nobody limits counts without an end, and is given back exactly.
    server.delete(format!("{QUOTAS}/q")).await.ok();
    for name in ["c", "d"] {
        server.post(PODS, &pod(name, "9223372036854775807")).await.expect(201);
    }
    server.post(QUOTAS, &quota("q", json!({"requests.cpu": "1"}))).await.expect(201);
    assert_ne!(used(&server, "q").await["requests.cpu"], "0");
    let now = json!({"gracePeriodSeconds": 0});
    for name in ["a", "c", "d"] {
        server.delete(format!("{PODS}/{name}")).json(&now).await.ok();
    }
    assert_eq!(used(&server, "q").await["requests.cpu"], "1");
}

async fn admission_96_98_100_kinds_and_scopes_count_as_they_do_upstream(setup: Setup) {
    let server = setup.start().await;
    server
        .post(QUOTAS, &quota("limits", json!({"limits.cpu": "1", "limits.memory": "1Gi"})))
        .await
        .expect(201);
    let text =
        "pods \"p\" is forbidden: failed quota: limits: must specify limits.cpu for: c; limits.memory for: c";
    forbidden(&server.post(PODS, &pod("p", "1m")).await.failure(), text);
    server.delete(format!("{QUOTAS}/limits")).await.ok();

    let scoped = |name: &str, scope: &str| json!({"metadata": {"name": name}, "spec": {"hard": {"pods": "5"}, "scopes": [scope]}});
    for (name, scope) in [
        ("best", "BestEffort"),
        ("worse", "NotBestEffort"),
        ("ends", "Terminating"),
        ("stays", "NotTerminating"),
    ] {
        server.post(QUOTAS, &scoped(name, scope)).await.expect(201);
    }
    let classes =
        json!([{"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]);
    let spec = json!({"hard": {"pods": "1"}, "scopeSelector": {"matchExpressions": classes}});
    server.post(QUOTAS, &json!({"metadata": {"name": "critical"}, "spec": spec})).await.expect(201);
    let mut plain = pod("plain", "1m");
    plain["spec"]["containers"][0]["resources"] = json!({});
    server.post(PODS, &plain).await.expect(201);
    let mut ending = pod("ending", "1m");
    ending["spec"]["activeDeadlineSeconds"] = json!(9);
    ending["spec"]["priorityClassName"] = json!("system-node-critical");
    server.post(PODS, &ending).await.expect(201);
    let mut counts = Vec::new();
    for name in ["best", "worse", "ends", "stays", "critical"] {
        counts.push(used(&server, name).await["pods"].as_str().expect("a count").to_owned());
    }
    assert_eq!(counts, ["1", "1", "1", "1", "1"]);
    // A deadline moves a Pod from one scope to the other.
    server.patch(format!("{PODS}/plain"), &json!({"spec": {"activeDeadlineSeconds": 5}})).await.ok();
    assert_eq!(
        (used(&server, "ends").await, used(&server, "stays").await),
        (json!({"pods": "2"}), json!({"pods": "0"}))
    );

    let hard = json!({"services.nodeports": "2", "services.loadbalancers": "1", "requests.storage": "10Gi",
        "fast.storageclass.storage.k8s.io/requests.storage": "5Gi", "persistentvolumeclaims": "3"});
    server.post(QUOTAS, &quota("net", hard)).await.expect(201);
    let port = |n: u16| json!({"name": format!("p{n}"), "port": n});
    let service =
        |ports: Vec<Value>| json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}});
    let refused = server.post(SERVICES, &service(vec![port(1), port(2), port(3)])).await.failure();
    let text = "services \"s\" is forbidden: exceeded quota: net, requested: services.nodeports=3, used: services.nodeports=0, limited: services.nodeports=2";
    forbidden(&refused, text);
    server.post(SERVICES, &service(vec![port(1), port(2)])).await.expect(201);
    assert_eq!(used(&server, "net").await["services.nodeports"], "2");
    server.patch(format!("{QUOTAS}/net"), &json!({"spec": {"hard": {"services.nodeports": "0"}}})).await.ok();
    // What lowers its use passes, though there is more in use than allowed.
    server.patch(format!("{SERVICES}/s"), &json!({"spec": {"type": "ClusterIP"}})).await.ok();
    assert_eq!(used(&server, "net").await["services.nodeports"], "0");

    let claim = |name: &str, size: &str| {
        json!({"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast", "resources": {"requests": {"storage": size}}}})
    };
    server.post(CLAIMS, &claim("a", "3Gi")).await.expect(201);
    let text = "persistentvolumeclaims \"b\" is forbidden: exceeded quota: net, requested: \
                fast.storageclass.storage.k8s.io/requests.storage=3Gi, used: \
                fast.storageclass.storage.k8s.io/requests.storage=3Gi, limited: \
                fast.storageclass.storage.k8s.io/requests.storage=5Gi";
    forbidden(&server.post(CLAIMS, &claim("b", "3Gi")).await.failure(), text);
    assert_eq!(used(&server, "net").await["requests.storage"], "3Gi");
}

/// Random writes by several clients, on two servers where there can be two: at the end the quotas have counted what is
/// there, also the one that comes in the middle, and at no time more than they allow.
async fn random_writes_are_counted_exactly(setup: Setup) {
    let mut servers = vec![setup.start().await];
    if matches!(setup.database, Database::Postgres(_)) {
        servers.push(setup.start().await);
    }
    let first = &servers[0];
    let made = first.post(QUOTAS, &quota("early", json!({"pods": "12"}))).await.expect(201);
    let start = made["metadata"]["resourceVersion"].as_str().expect("a revision");
    let mut watch = first.watch(format!("{QUOTAS}?watch=true&resourceVersion={start}")).await;
    let clients = (0..8).map(|seed| work(&servers[seed % servers.len()], seed as u64));
    let late = async {
        first.post(QUOTAS, &quota("late", json!({"pods": "20", "requests.cpu": "9"}))).await.expect(201);
    };
    futures_util::future::join(join_all(clients), late).await;
    let pods = first.get(PODS).await.ok();
    let running =
        pods["items"].as_array().expect("items").iter().filter(|pod| pod["status"]["phase"] != "Failed");
    let cpu = |pod: &Value| milli(&pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]);
    let (number, sum) = running.fold((0, 0), |(number, sum), pod| (number + 1, sum + cpu(pod)));
    assert_eq!(used(first, "early").await, json!({"pods": number.to_string()}));
    let late = used(first, "late").await;
    assert_eq!((&late["pods"], milli(&late["requests.cpu"])), (&json!(number.to_string()), sum));
    first.delete(format!("{QUOTAS}/early")).await.ok();
    loop {
        let event = watch.next().await.expect("an event");
        if event["type"] == "DELETED" {
            break;
        }
        if event["object"]["metadata"]["name"] == "early" {
            let pods = event["object"]["status"]["used"]["pods"].as_str().expect("pods").parse::<u64>();
            assert!(pods.is_ok_and(|pods| pods <= 12), "{event}");
        }
    }
}

fn milli(amount: &Value) -> u64 {
    let amount = amount.as_str().expect("an amount");
    match amount.strip_suffix('m') {
        Some(milli) => milli.parse().expect("a number"),
        None => amount.parse::<u64>().expect("a number") * 1000,
    }
}

/// Creates, ends and deletes Pods.
async fn work(server: &TestServer, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    for n in 0..30 {
        let name = format!("p{}", random.random_range(0..24));
        match random.random_range(0..10) {
            0..6 => drop(server.post(PODS, &pod(&name, &format!("{}m", 100 + n))).await),
            6..8 => {
                let now = json!({"gracePeriodSeconds": 0});
                drop(server.delete(format!("{PODS}/{name}")).json(&now).await);
            }
            _ => {
                let phase = json!({"status": {"phase": "Failed"}});
                drop(server.patch(format!("{PODS}/{name}/status"), &phase).await);
            }
        }
    }
}

/// Claims for devices are charged for the extended resource that a DeviceClass says, unless their Pod is charged for it.
async fn devices_count_as_the_extended_resource_of_their_class(setup: Setup) {
    const CLASSES: &str = "/apis/resource.k8s.io/v1/deviceclasses";
    const DEVICES: &str = "/apis/resource.k8s.io/v1/namespaces/t/resourceclaims";
    const IMPLICIT: &str = "requests.deviceclass.resource.kubernetes.io/gpu";
    const OWN: &str = "gpu.deviceclass.resource.k8s.io/devices";
    let server = setup.start().await;
    let class = json!({"metadata": {"name": "gpu"}, "spec": {"extendedResourceName": "ex.io/gpu"}});
    server.post(CLASSES, &class).await.expect(201);
    let hard = json!({"requests.ex.io/gpu": "3", IMPLICIT: "9", OWN: "9"});
    server.post(QUOTAS, &quota("q", hard)).await.expect(201);
    let amounts = async || {
        let used = used(&server, "q").await;
        ["requests.ex.io/gpu", IMPLICIT, OWN].map(|name| used[name].as_str().unwrap_or("none").to_owned())
    };
    let claim = |name: &str, count: u8| {
        let request = json!({"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}});
        json!({"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})
    };
    server.post(DEVICES, &claim("c", 2)).await.expect(201);
    assert_eq!(amounts().await, ["2", "2", "2"]);
    let text = "resourceclaims.resource.k8s.io \"d\" is forbidden: exceeded quota: q, requested: requests.ex.io/gpu=2, used: \
                requests.ex.io/gpu=2, limited: requests.ex.io/gpu=3";
    forbidden(&server.post(DEVICES, &claim("d", 2)).await.failure(), text);

    // The scheduler makes a claim for a Pod, which the Pod pays for; nobody else can say so.
    let wants = json!({"requests": {"ex.io/gpu": "1"}, "limits": {"ex.io/gpu": "1"}});
    let mut asking = pod("p", "1");
    asking["spec"]["containers"][0]["resources"] = wants;
    let made = server.post(PODS, &asking).await.expect(201);
    assert_eq!(amounts().await, ["3", "2", "2"]);
    let made_for = |name: &str, uid: &Value| {
        let mut claim = claim(name, 1);
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": uid, "controller": true});
        claim["metadata"]["ownerReferences"] = json!([owner]);
        claim["metadata"]["annotations"] = json!({"resource.kubernetes.io/extended-resource-claim": "true"});
        claim
    };
    let uid = &made["metadata"]["uid"];
    let refused = server.post(DEVICES, &made_for("e", &json!("another"))).await.failure();
    assert_eq!(refused["code"], 403, "{refused}");
    server.post(DEVICES, &made_for("e", uid)).await.expect(201);
    assert_eq!(amounts().await, ["3", "3", "3"]);
    let refused = server.post(DEVICES, &made_for("f", uid)).await.failure();
    assert_eq!(refused["code"], 403, "{refused}");

    // A class that stands for something else is counted so when its writer is answered.
    let renamed = |name: &str| json!({"spec": {"extendedResourceName": name}});
    server.patch(format!("{CLASSES}/gpu"), &renamed("ex.io/other")).await.ok();
    assert_eq!(amounts().await, ["1", "3", "3"]);
    server.patch(format!("{CLASSES}/gpu"), &renamed("ex.io/gpu")).await.ok();
    assert_eq!(amounts().await, ["3", "3", "3"]);

    // What is given back is what was taken, also of a claim whose Pod is gone when the collector deletes it.
    let mut watch = server.watch(format!("{DEVICES}?watch=1&fieldSelector=metadata.name%3De")).await;
    server.delete(format!("{PODS}/p")).json(&json!({"gracePeriodSeconds": 0})).await.ok();
    while watch.next().await.expect("the claim goes")["type"] != "DELETED" {}
    assert_eq!(amounts().await, ["2", "2", "2"]);
    server.api.recount("t", "q").await.expect("counted");
    assert_eq!(amounts().await, ["2", "2", "2"]);
    server.delete(format!("{DEVICES}/c")).await.ok();
    assert_eq!(amounts().await, ["0", "0", "0"]);
}

/// Gives the setup a clock that stands still until the test puts it forward, in seconds.
fn with_still_clock(setup: &mut Setup) -> Arc<AtomicU64> {
    // Whole seconds, as timestamps of objects are.
    let now = WallClock::default().seconds();
    let (seconds, start) = (Arc::new(AtomicU64::new(0)), SystemTime::UNIX_EPOCH + Duration::from_secs(now));
    let passed = seconds.clone();
    setup.clock = WallClock::new(move || start + Duration::from_secs(passed.load(Ordering::SeqCst)));
    seconds
}

/// A Pod that only its node can end.
fn bound(name: &str, cpu: &str) -> Value {
    let mut pod = pod(name, cpu);
    pod["spec"]["nodeName"] = json!("n");
    pod
}

/// Deletes a Pod with a grace period. Nobody ends the Pod when the period is over.
async fn end(server: &TestServer, name: &str, grace: u64) {
    let options = json!({"gracePeriodSeconds": grace});
    server.delete(format!("{PODS}/{name}")).json(&options).await.ok();
}

/// How many Pods are noted to be past their grace period.
fn notes(server: &TestServer) -> usize {
    let state = server.api.cache.any();
    let rows = state.objects(server.api.hidden.quota_sets.id());
    rows.range(&Range::of(None)).filter(|row| row.name().starts_with("pods/")).count()
}

/// `QuotaV1Pod` of upstream: the grace period counts from the end of the grace period.
async fn pods_past_their_grace_period_hold_nothing(mut setup: Setup) {
    let seconds = with_still_clock(&mut setup);
    let server = setup.start().await;
    let hard = json!({"pods": "2", "requests.cpu": "1", "count/pods": "9"});
    server.post(QUOTAS, &quota("q", hard)).await.expect(201);
    server.post(PODS, &bound("a", "400m")).await.expect(201);
    server.post(PODS, &bound("b", "400m")).await.expect(201);
    end(&server, "a", 30).await;
    let before = json!({"pods": "2", "requests.cpu": "800m", "count/pods": "2"});
    for passed in [0, 40, 60] {
        seconds.store(passed, Ordering::SeqCst);
        assert_eq!(server.post(PODS, &bound("c", "400m")).await.failure()["code"], 403, "after {passed} s");
        assert_eq!(used(&server, "q").await, before);
    }
    seconds.store(61, Ordering::SeqCst);
    server.post(PODS, &bound("c", "400m")).await.expect(201);
    assert_eq!(used(&server, "q").await, json!({"pods": "2", "requests.cpu": "800m", "count/pods": "3"}));
    assert_eq!(server.post(PODS, &bound("d", "1m")).await.failure()["code"], 403);
    // What it held is given back once, whatever becomes of it.
    let failed = json!({"status": {"phase": "Failed"}});
    server.patch(format!("{PODS}/a/status"), &failed).await.ok();
    assert_eq!((used(&server, "q").await["pods"].clone(), notes(&server)), (json!("2"), 1));
    end(&server, "a", 0).await;
    assert_eq!(used(&server, "q").await, before);
    assert_eq!(notes(&server), 0);
    // A quota that comes later does not count it, either.
    end(&server, "b", 30).await;
    seconds.store(130, Ordering::SeqCst);
    let late = server.post(QUOTAS, &quota("late", json!({"pods": "5", "count/pods": "9"}))).await.expect(201);
    assert_eq!(late["status"]["used"], json!({"pods": "1", "count/pods": "2"}));
    assert_eq!(used(&server, "q").await["pods"], "1");
    let later = server.post(QUOTAS, &quota("later", json!({"requests.cpu": "5"}))).await.expect(201);
    assert_eq!(later["status"]["used"], json!({"requests.cpu": "400m"}));
    // Where nobody asks, the server looks at the clock itself.
    let start = later["metadata"]["resourceVersion"].as_str().expect("a revision");
    let mut watch = server.watch(format!("{QUOTAS}?watch=true&resourceVersion={start}")).await;
    end(&server, "c", 1).await;
    seconds.store(140, Ordering::SeqCst);
    loop {
        let event = watch.next().await.expect("an event");
        if event["object"]["metadata"]["name"] == "q" && event["object"]["status"]["used"]["pods"] == "0" {
            break;
        }
    }
    for name in ["b", "c"] {
        end(&server, name, 0).await;
    }
    assert_eq!(used(&server, "q").await, json!({"pods": "0", "requests.cpu": "0", "count/pods": "0"}));
    assert_eq!((used(&server, "late").await["pods"].clone(), notes(&server)), (json!("0"), 0));
}

/// Clients create, end and delete Pods with and without grace while the clock goes on, on two servers where there can be
/// two: what is given back is given back once.
async fn random_deletions_give_back_once(mut setup: Setup) {
    let seconds = with_still_clock(&mut setup);
    let mut servers = vec![setup.start().await];
    if matches!(setup.database, Database::Postgres(_)) {
        servers.push(setup.start().await);
    }
    let first = &servers[0];
    let hard = json!({"pods": "10", "requests.cpu": "2", "count/pods": "30"});
    first.post(QUOTAS, &quota("q", hard)).await.expect(201);
    let clients = (0..6).map(|seed| grind(&servers[seed % servers.len()], seed as u64, &seconds));
    let late = async {
        first.post(QUOTAS, &quota("late", json!({"pods": "20", "count/pods": "40"}))).await.expect(201);
    };
    let (overdue, ()) = futures_util::future::join(join_all(clients), late).await;
    assert!(overdue.iter().sum::<usize>() > 0, "a Pod was past its grace period");
    let pods = first.get(PODS).await.ok();
    first.api.release_past_grace(None).await.expect("a release");
    let now = setup.clock.timestamp();
    let holds = |pod: &&Value| {
        let grace = pod["metadata"]["deletionGracePeriodSeconds"].as_i64();
        let is_past = grace.is_some_and(|grace| {
            let gone = pod["metadata"]["deletionTimestamp"].as_str().expect("a time");
            gone.parse::<jiff::Timestamp>().expect("a time") + jiff::SignedDuration::from_secs(grace) < now
        });
        pod["status"]["phase"] != "Failed" && !is_past
    };
    let items = pods["items"].as_array().expect("items");
    let cpu = |pod: &Value| milli(&pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]);
    let (number, sum) =
        items.iter().filter(holds).fold((0, 0), |(number, sum), pod| (number + 1, sum + cpu(pod)));
    for name in ["q", "late"] {
        let used = used(first, name).await;
        let counted = (used["pods"].clone(), used["count/pods"].clone());
        assert_eq!(counted, (json!(number.to_string()), json!(items.len().to_string())), "{name}");
    }
    assert_eq!(milli(&used(first, "q").await["requests.cpu"]), sum);
    for name in names(&pods) {
        end(servers.last().expect("a server"), &name, 0).await;
    }
    assert_eq!(used(first, "q").await, json!({"pods": "0", "requests.cpu": "0", "count/pods": "0"}));
    assert_eq!(notes(first), 0);
}

/// Returns how many Pods were past their grace period when this client looked.
async fn grind(server: &TestServer, seed: u64, seconds: &AtomicU64) -> usize {
    let (mut random, mut overdue) = (StdRng::seed_from_u64(seed), 0);
    for n in 0..40 {
        let name = format!("p{}", random.random_range(0..20));
        match random.random_range(0..12) {
            0..6 => drop(server.post(PODS, &bound(&name, &format!("{}m", 100 + n))).await),
            6..9 => {
                let grace = [0, 1, 3][random.random_range(0..3)];
                let grace = json!({"gracePeriodSeconds": grace});
                drop(server.delete(format!("{PODS}/{name}")).json(&grace).await);
            }
            9 => {
                let phase = json!({"status": {"phase": "Failed"}});
                drop(server.patch(format!("{PODS}/{name}/status"), &phase).await);
            }
            10 => drop(seconds.fetch_add(random.random_range(0..4), Ordering::SeqCst)),
            _ => overdue += notes(server),
        }
    }
    overdue
}
