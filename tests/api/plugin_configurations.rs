//! Plugins with configurations of their own (`--admission-control-config-file`; `docs/spec/admission.md`, section 4). The store
//! does not matter to them, so the tests run in memory.

use rowplane::api::admission::Settings;
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::server::{Setup, TestServer, config_map, deployment};
use crate::support::webhook::WebhookServer;

on_every_store! {
    admission_107_users_namespaces_and_runtime_classes_are_exempt,
    admission_116_events_are_limited,
    admission_116_selectors_and_tolerations_are_configured,
    anti_affinity_is_limited_to_nodes,
    updates_need_their_namespace,
    admission_99_custom_objects_count_and_what_no_quota_covers_is_refused,
    images_are_reviewed_by_a_webhook,
}

const PODS: &str = "/api/v1/namespaces/t/pods";
const NAMESPACES: &str = "/api/v1/namespaces";
const EVENTS: &str = "/api/v1/namespaces/t/events";

fn pod(name: &str, spec: Value) -> Value {
    let mut whole = json!({"containers": [{"name": "c", "image": "i"}]});
    if let (Value::Object(whole), Value::Object(spec)) = (&mut whole, spec) {
        whole.extend(spec);
    }
    json!({"metadata": {"name": name}, "spec": whole})
}

/// Starts a server with these plugins on, and with configurations of plugins.
async fn start(setup: &mut Setup, enabled: &[&str], configurations: Value) -> TestServer {
    let plugins = configurations.as_object().expect("an object").iter();
    let plugins: Vec<Value> =
        plugins.map(|(name, content)| json!({"name": name, "configuration": content})).collect();
    let file = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins});
    let path = setup.file("admission.json");
    std::fs::write(&path, file.to_string()).expect("written");
    setup.admission = Settings::new(enabled, &["ServiceAccount"]).expect("known plugins");
    setup.admission.read_file(&path).expect("a configuration");
    setup.start().await
}

#[track_caller]
fn refused(failure: &Value, code: u16, text: &str) {
    assert_eq!((&failure["code"], failure["message"].as_str()), (&json!(code), Some(text)), "{failure}");
}

async fn metrics(server: &TestServer, name: &str) -> Vec<String> {
    let text = server.get("/metrics").await.text();
    let mut lines: Vec<String> =
        text.lines().filter(|line| line.starts_with(name)).map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// 107, and the metrics of PodSecurity.
async fn admission_107_users_namespaces_and_runtime_classes_are_exempt(mut setup: Setup) {
    let configuration = json!({"apiVersion": "pod-security.admission.config.k8s.io/v1", "kind": "PodSecurityConfiguration",
        "defaults": {"enforce": "baseline", "enforce-version": "v1.99", "warn": "restricted", "warn-version": "latest"},
        "exemptions": {"usernames": ["root"], "namespaces": ["free"], "runtimeClasses": ["sandboxed"]}});
    let server = start(&mut setup, &[], json!({"PodSecurity": configuration})).await;
    server.namespace("free").await;
    let handler = json!({"metadata": {"name": "sandboxed"}, "handler": "h"});
    server.post("/apis/node.k8s.io/v1/runtimeclasses", &handler).await.expect(201);
    let bad = json!({"hostNetwork": true});
    let text = "pods \"p\" is forbidden: violates PodSecurity \"baseline:v1.99\": host namespaces (hostNetwork=true)";
    refused(&server.post(PODS, &pod("p", bad.clone())).await.failure(), 403, text);
    let plain = server.post(PODS, &pod("plain", json!({}))).await;
    assert!(
        plain.header("warning").is_some_and(|text| text.contains("would violate PodSecurity")),
        "{plain:?}"
    );
    let root = server.token("root-token");
    let spared = root.post(PODS, &pod("by-root", bad.clone())).await;
    assert_eq!((spared.status, spared.header("warning")), (201, None));
    server.post("/api/v1/namespaces/free/pods", &pod("p", bad)).await.expect(201);
    let sandboxed = json!({"hostNetwork": true, "runtimeClassName": "sandboxed"});
    server.post(PODS, &pod("sandboxed", sandboxed)).await.expect(201);
    let deployments = "/apis/apps/v1/namespaces/t/deployments";
    let made = server.post(deployments, &deployment("d", json!({}))).await;
    assert!(made.header("warning").is_some_and(|text| text.contains("restricted:latest")), "{made:?}");

    let line =
        |name: &str, labels: &str, count: u64| format!("pod_security_{name}_total{{{labels}}} {count}");
    let counted = |decision: &str, level: &str, version: &str, mode: &str, resource: &str, count| {
        let labels = format!(
            "decision=\"{decision}\",policy_level=\"{level}\",policy_version=\"{version}\",mode=\"{mode}\",request_operation=\"create\",resource=\"{resource}\",subresource=\"\""
        );
        line("evaluations", &labels, count)
    };
    // Where other servers may write, what a state of a moment ago refuses is judged again by the newest one.
    let judged = if matches!(setup.database, Database::Postgres(_)) { 2 } else { 1 };
    let mut expected = vec![
        counted("allow", "baseline", "future", "enforce", "pod", 1),
        counted("deny", "baseline", "future", "enforce", "pod", judged),
        counted("deny", "restricted", "latest", "warn", "controller", 1),
        counted("deny", "restricted", "latest", "warn", "pod", 1),
    ];
    expected.sort_unstable();
    assert_eq!(metrics(&server, "pod_security_evaluations_total").await, expected);
    let exempt = |operation: &str, resource: &str, count| {
        let labels = format!("request_operation=\"{operation}\",resource=\"{resource}\",subresource=\"\"");
        line("exemptions", &labels, count)
    };
    // Usual requests have a series before the first of them.
    let exempt = [
        exempt("create", "controller", 0),
        exempt("create", "pod", 3),
        exempt("update", "controller", 0),
        exempt("update", "pod", 0),
    ];
    assert_eq!(metrics(&server, "pod_security_exemptions_total").await, exempt);
}

/// 116: events are limited, each limit for itself; the bucket fills again only with time.
async fn admission_116_events_are_limited(mut setup: Setup) {
    let configuration = json!({"apiVersion": "eventratelimit.admission.k8s.io/v1alpha1", "kind": "Configuration",
        "limits": [{"type": "Namespace", "qps": 1, "burst": 2, "cacheSize": 100}, {"type": "User", "qps": 1, "burst": 3}]});
    let now = setup.clock.now();
    setup.clock = rowplane::wall_clock::WallClock::new(move || now);
    let server = start(&mut setup, &["EventRateLimit"], json!({"EventRateLimit": configuration})).await;
    server.namespace("other").await;
    let event = |name: &str, namespace: &str| {
        json!({"metadata": {"name": name}, "type": "Normal", "reason": "r", "source": {"component": "c"},
            "involvedObject": {"kind": "Pod", "namespace": namespace, "name": "p"}})
    };
    let before = server.get(EVENTS).await.ok()["items"].as_array().map(Vec::len);
    assert_eq!(before, Some(0));
    server.post(EVENTS, &event("a", "t")).await.expect(201);
    server.post(format!("{EVENTS}?dryRun=All"), &event("b", "t")).await.expect(201);
    server.post(EVENTS, &event("b", "t")).await.expect(201);
    let failure = server.post(EVENTS, &event("c", "t")).await.failure();
    refused(&failure, 429, "Too many requests: limit reached on type Namespace for key t");
    assert_eq!(failure["reason"], "TooManyRequests");
    let others = "/api/v1/namespaces/other/events";
    let user = "Too many requests: limit reached on type User for key ";
    let failure = server.post(others, &event("d", "other")).await.failure();
    assert!(failure["message"].as_str().is_some_and(|text| text.starts_with(user)), "{failure}");
    // Other users have a bucket of their own, and other kinds have none.
    server.token("root-token").post(others, &event("d", "other")).await.expect(201);
    server.create("c", json!({})).await;
}

/// 116: what nodes Pods may ask for, and what they may tolerate, where namespaces say nothing.
async fn admission_116_selectors_and_tolerations_are_configured(mut setup: Setup) {
    let tolerations = json!({"apiVersion": "podtolerationrestriction.admission.k8s.io/v1alpha1", "kind": "Configuration",
        "default": [{"key": "a", "operator": "Exists"}],
        "whitelist": [{"key": "a", "operator": "Exists"}, {"operator": "Exists", "effect": "NoExecute"}]});
    let configurations = json!({
        "PodNodeSelector": {"podNodeSelectorPluginConfig": {"clusterDefaultNodeSelector": "zone=a", "t": "zone=a,disk=fast"}},
        "PodTolerationRestriction": tolerations});
    let server = start(&mut setup, &["PodNodeSelector", "PodTolerationRestriction"], configurations).await;
    let made = server.post(PODS, &pod("p", json!({}))).await.expect(201);
    assert_eq!(made["spec"]["nodeSelector"], json!({"zone": "a"}));
    let tolerations = made["spec"]["tolerations"].as_array().expect("tolerations");
    assert!(tolerations.contains(&json!({"key": "a", "operator": "Exists"})), "{tolerations:?}");
    server.post(PODS, &pod("fast", json!({"nodeSelector": {"disk": "fast"}}))).await.expect(201);
    let failure = server.post(PODS, &pod("q", json!({"nodeSelector": {"disk": "slow"}}))).await.failure();
    refused(
        &failure,
        403,
        "pods \"q\" is forbidden: pod node label selector labels conflict with its namespace whitelist",
    );
    let other = json!({"tolerations": [{"key": "b", "operator": "Exists", "effect": "NoSchedule"}]});
    assert_eq!(server.post(PODS, &pod("q", other)).await.status, 500);
}

/// 4.6: Pods are kept away from nodes, and from nothing larger.
async fn anti_affinity_is_limited_to_nodes(mut setup: Setup) {
    let server = start(&mut setup, &["LimitPodHardAntiAffinityTopology"], json!({})).await;
    let apart = |key: &str| {
        let term = json!({"labelSelector": {}, "topologyKey": key});
        json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
    };
    server.post(PODS, &pod("p", apart("kubernetes.io/hostname"))).await.expect(201);
    let text = "pods \"q\" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key \
                kubernetes.io/hostname is allowed";
    refused(&server.post(PODS, &pod("q", apart("zone"))).await.failure(), 403, text);
}

/// 4.1: what is in a namespace that is gone can be deleted, and not changed.
async fn updates_need_their_namespace(mut setup: Setup) {
    let server = start(&mut setup, &[], json!({})).await;
    server.namespace("gone").await;
    let maps = "/api/v1/namespaces/gone/configmaps";
    let mut map = config_map("m", json!({}));
    map["metadata"]["finalizers"] = json!(["ex.io/f"]);
    server.post(maps, &map).await.expect(201);
    server.delete(format!("{NAMESPACES}/gone")).await.ok();
    let mut watch = server.watch(format!("{NAMESPACES}?watch=1&fieldSelector=metadata.name%3Dgone")).await;
    let namespace = json!({"metadata": {"name": "gone"}, "spec": {"finalizers": []}});
    server.put(format!("{NAMESPACES}/gone/finalize"), &namespace).await.ok();
    while watch.next().await.expect("an event")["type"] != "DELETED" {}
    let failure = server.patch(format!("{maps}/m"), &json!({"data": {"a": "b"}})).await.failure();
    refused(&failure, 404, "namespaces \"gone\" not found");
    let failure = server.patch(format!("{maps}/n"), &json!({"data": {"a": "b"}})).await.failure();
    refused(&failure, 404, "configmaps \"n\" not found");
    server.delete(format!("{maps}/m")).await.ok();
}

/// 4.3.6, and 99: custom objects are counted by their resource.
async fn admission_99_custom_objects_count_and_what_no_quota_covers_is_refused(mut setup: Setup) {
    let limited = json!([{"resource": "services", "matchContains": ["services.loadbalancers"]},
        {"apiGroup": "ex.io", "resource": "widgets", "matchContains": ["count/widgets"]},
        {"resource": "pods", "matchScopes": [{"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]}]);
    let configuration = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration", "limitedResources": limited});
    let server = start(&mut setup, &[], json!({"ResourceQuota": configuration})).await;
    let names =
        json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"});
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let definition = json!({"metadata": {"name": "widgets.ex.io"}, "spec": {"group": "ex.io", "scope": "Namespaced", "names": names,
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let widgets = "/apis/ex.io/v1/namespaces/t/widgets";
    let widget = |name: &str| json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name}});
    let text = "widgets.ex.io \"a\" is forbidden: insufficient quota to consume: count/widgets.ex.io";
    refused(&server.post(widgets, &widget("a")).await.failure(), 403, text);
    let quotas = "/api/v1/namespaces/t/resourcequotas";
    let hard = json!({"count/widgets.ex.io": "1"});
    server.post(quotas, &json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})).await.expect(201);
    server.post(widgets, &widget("a")).await.expect(201);
    let used = async || server.get(format!("{quotas}/q")).await.ok()["status"]["used"].clone();
    assert_eq!(used().await, json!({"count/widgets.ex.io": "1"}));
    let text = "widgets.ex.io \"b\" is forbidden: exceeded quota: q, requested: count/widgets.ex.io=1, used: \
                count/widgets.ex.io=1, limited: count/widgets.ex.io=1";
    refused(&server.post(widgets, &widget("b")).await.failure(), 403, text);
    // An update of a counted object is none of the quota's business.
    server.patch(format!("{widgets}/a"), &json!({"metadata": {"labels": {"l": "x"}}})).await.ok();
    server.delete(format!("{widgets}/a")).await.ok();
    assert_eq!(used().await, json!({"count/widgets.ex.io": "0"}));

    let service = |kind: &str| json!({"metadata": {"name": kind.to_lowercase()}, "spec": {"type": kind, "ports": [{"port": 1}]}});
    let services = "/api/v1/namespaces/t/services";
    server.post(services, &service("ClusterIP")).await.expect(201);
    let text =
        "services \"loadbalancer\" is forbidden: insufficient quota to consume: services.loadbalancers";
    refused(&server.post(services, &service("LoadBalancer")).await.failure(), 403, text);
    let critical = pod("p", json!({"priorityClassName": "system-node-critical"}));
    let text = "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical]}]";
    refused(&server.post(PODS, &critical).await.failure(), 500, text);
    let selector = json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]});
    let covers =
        json!({"metadata": {"name": "s"}, "spec": {"hard": {"pods": "1"}, "scopeSelector": selector}});
    server.post(quotas, &covers).await.expect(201);
    server.post(PODS, &critical).await.expect(201);
}

/// 4.6: a webhook decides about images; its verdicts are kept, and its failures let nobody in unless the configuration does.
async fn images_are_reviewed_by_a_webhook(mut setup: Setup) {
    let mut web = WebhookServer::start(&[], |seen| {
        let review = &seen.body;
        let images = review["spec"]["containers"].as_array().cloned().unwrap_or_default();
        let has = |name: &str| images.iter().any(|container| container["image"] == name);
        let status = match (has("bad"), has("silent")) {
            (true, _) => json!({"allowed": false, "reason": "not here"}),
            (_, true) => json!({"allowed": false}),
            _ => json!({"allowed": true}),
        };
        let answer = json!({"apiVersion": review["apiVersion"], "kind": review["kind"], "status": status});
        (200, answer.to_string())
    })
    .await;
    let folder = tempfile::tempdir().expect("a folder");
    let kubeconfig = folder.path().join("images.kubeconfig");
    let cluster = json!({"server": web.url("/review"), "certificate-authority-data": web.ca_bundle});
    let content = json!({"clusters": [{"name": "c", "cluster": cluster}], "users": [{"name": "u", "user": {"token": "secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}], "current-context": "x"});
    std::fs::write(&kubeconfig, content.to_string()).expect("written");
    let configuration = |default_allow: bool| json!({"imagePolicy": {"kubeConfigFile": kubeconfig, "retryBackoff": 1, "allowTTL": 60, "denyTTL": 60, "defaultAllow": default_allow}});
    let server =
        start(&mut setup, &["ImagePolicyWebhook"], json!({"ImagePolicyWebhook": configuration(false)})).await;
    let of = |name: &str, image: &str| {
        let mut pod = pod(
            name,
            json!({"containers": [{"name": "c", "image": image}], "initContainers": [{"name": "i", "image": "init"}]}),
        );
        pod["metadata"]["annotations"] = json!({"x.image-policy.k8s.io/break-glass": "1", "y": "2"});
        pod
    };
    server.post(PODS, &of("a", "good")).await.expect(201);
    let seen = web.seen();
    assert_eq!(
        (seen.len(), &seen[0].headers["authorization"]),
        (1, &http::HeaderValue::from_static("Bearer secret"))
    );
    assert_eq!(
        seen[0].body["spec"],
        json!({"containers": [{"image": "good"}, {"image": "init"}],
        "annotations": {"x.image-policy.k8s.io/break-glass": "1"}, "namespace": "t"})
    );
    assert_eq!(seen[0].body["apiVersion"], "imagepolicy.k8s.io/v1alpha1");
    let text = "pods \"b\" is forbidden: image policy webhook backend denied one or more images: not here";
    refused(&server.post(PODS, &of("b", "bad")).await.failure(), 403, text);
    let text = "pods \"b\" is forbidden: one or more images rejected by webhook backend";
    refused(&server.post(PODS, &of("b", "silent")).await.failure(), 403, text);
    assert_eq!(web.seen().len(), 2);

    // Verdicts are kept by what was asked, and other resources are not looked at.
    server.post(PODS, &of("c", "good")).await.expect(201);
    refused(&server.post(PODS, &of("b", "silent")).await.failure(), 403, text);
    server.create("c", json!({})).await;
    server
        .patch(
            format!("{PODS}/a/ephemeralcontainers"),
            &json!({"spec": {"ephemeralContainers": [{"name": "e", "image": "bad"}]}}),
        )
        .await
        .failure();
    let seen = web.seen();
    assert_eq!((seen.len(), &seen[0].body["spec"]["containers"]), (1, &json!([{"image": "bad"}])));

    web.stop().await;
    let failure = server.post(PODS, &of("d", "new")).await.failure();
    let start_of = format!("pods \"d\" is forbidden: Post \"{}", web.url("/review"));
    assert!(failure["message"].as_str().is_some_and(|text| text.starts_with(&start_of)), "{failure}");
    server.stop().await;
    let open =
        start(&mut setup, &["ImagePolicyWebhook"], json!({"ImagePolicyWebhook": configuration(true)})).await;
    open.post(PODS, &of("d", "new")).await.expect(201);
    open.post("/api/v1/namespaces/t/configmaps", &config_map("m", json!({}))).await.expect(201);
    assert_eq!(open.get(format!("{NAMESPACES}/t")).await.status, 200);
}
