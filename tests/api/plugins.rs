//! What upstream's admission plugins fill in and refuse (`api/admission/`).

use http::Method;
use serde_json::{Value, json};

use crate::support::server::{Setup, TestServer};

const PODS: &str = "/api/v1/namespaces/t/pods";
const CLAIMS: &str = "/api/v1/namespaces/t/persistentvolumeclaims";
const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";
const STORAGE: &str = "/apis/storage.k8s.io/v1/storageclasses";
const INGRESSES: &str = "/apis/networking.k8s.io/v1/namespaces/t/ingresses";
const INGRESS_CLASSES: &str = "/apis/networking.k8s.io/v1/ingressclasses";
const RUNTIMES: &str = "/apis/node.k8s.io/v1/runtimeclasses";

on_every_store! {
    priorities_of_pods,
    one_default_priority,
    pods_tolerate_lost_nodes,
    nodes_begin_tainted,
    storage_is_protected,
    default_classes,
    runtime_classes,
    limits_of_a_namespace,
    apply_owns_nothing_of_plugins,
}

fn pod(name: &str, spec: Value) -> Value {
    let mut whole = json!({"containers": [{"name": "c", "image": "i"}]});
    if let (Value::Object(whole), Value::Object(spec)) = (&mut whole, spec) {
        whole.extend(spec);
    }
    json!({"metadata": {"name": name}, "spec": whole})
}

fn forbidden(refused: &Value, text: &str) {
    assert_eq!((&refused["code"], &refused["reason"]), (&json!(403), &json!("Forbidden")), "{refused}");
    assert_eq!(refused["message"], text);
}

async fn priority_class(server: &TestServer, name: &str, value: i64, default: bool) {
    let class = json!({"metadata": {"name": name}, "value": value, "globalDefault": default});
    server.post(CLASSES, &class).await.expect(201);
}

async fn priorities_of_pods(setup: Setup) {
    let server = setup.start().await;
    let plain = server.post(PODS, &pod("plain", json!({}))).await.expect(201);
    assert_eq!((&plain["spec"]["priority"], &plain["spec"]["priorityClassName"]), (&json!(0), &Value::Null));
    assert_eq!(plain["spec"]["preemptionPolicy"], "PreemptLowerPriority");
    let system = pod("system", json!({"priorityClassName": "system-node-critical"}));
    assert_eq!(server.post(PODS, &system).await.expect(201)["spec"]["priority"], 2_000_001_000);
    let unknown = server.post(PODS, &pod("x", json!({"priorityClassName": "high"}))).await.failure();
    forbidden(&unknown, "pods \"x\" is forbidden: no PriorityClass with name high was found");
    priority_class(&server, "high", 1000, false).await;
    let other = pod("x", json!({"priorityClassName": "high", "priority": 5}));
    let text = "pods \"x\" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority \
                admission controller computed 1000 from the given PriorityClass name";
    forbidden(&server.post(PODS, &other).await.failure(), text);
    // What was filled in stays when a client that does not know it writes the Pod back.
    let mut stripped = plain.clone();
    let spec = stripped["spec"].as_object_mut().expect("a spec");
    spec.remove("priority");
    spec.remove("preemptionPolicy");
    let written = server.put(format!("{PODS}/plain"), &stripped).await.ok();
    assert_eq!(written["spec"], plain["spec"]);
}

async fn one_default_priority(setup: Setup) {
    let server = setup.start().await;
    priority_class(&server, "usual", 7, true).await;
    let second = json!({"metadata": {"name": "second"}, "value": 1, "globalDefault": true});
    let text = "priorityclasses.scheduling.k8s.io \"second\" is forbidden: PriorityClass usual is already marked as \
                default. Only one default can exist";
    forbidden(&server.post(CLASSES, &second).await.failure(), text);
    let made = server.post(PODS, &pod("p", json!({}))).await.expect(201);
    assert_eq!((&made["spec"]["priority"], &made["spec"]["priorityClassName"]), (&json!(7), &json!("usual")));
}

async fn pods_tolerate_lost_nodes(setup: Setup) {
    let server = setup.start().await;
    let lost = |key: &str| {
        let key = format!("node.kubernetes.io/{key}");
        json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300})
    };
    let made = server.post(PODS, &pod("p", json!({}))).await.expect(201);
    assert_eq!(made["spec"]["tolerations"], json!([lost("not-ready"), lost("unreachable")]));
    let own = json!({"key": "node.kubernetes.io/not-ready", "operator": "Exists"});
    let made = server.post(PODS, &pod("q", json!({"tolerations": [own]}))).await.expect(201);
    assert_eq!(made["spec"]["tolerations"], json!([own, lost("unreachable")]));
    let all = json!([{"operator": "Exists"}]);
    let made = server.post(PODS, &pod("r", json!({"tolerations": all}))).await.expect(201);
    assert_eq!(made["spec"]["tolerations"], all);
}

async fn nodes_begin_tainted(setup: Setup) {
    let server = setup.start().await;
    let made = server.post("/api/v1/nodes", &json!({"metadata": {"name": "n"}})).await.expect(201);
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    assert_eq!(made["spec"]["taints"], json!([taint]));
    // A controller takes it off, and it stays off.
    let ready = json!({"spec": {"taints": null}});
    assert_eq!(server.patch("/api/v1/nodes/n", &ready).await.ok()["spec"]["taints"], Value::Null);
}

fn claim(name: &str, spec: Value) -> Value {
    let mut whole = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    if let (Value::Object(whole), Value::Object(spec)) = (&mut whole, spec) {
        whole.extend(spec);
    }
    json!({"metadata": {"name": name}, "spec": whole})
}

async fn storage_is_protected(setup: Setup) {
    let server = setup.start().await;
    let made = server.post(CLAIMS, &claim("c", json!({}))).await.expect(201);
    assert_eq!(made["metadata"]["finalizers"], json!(["kubernetes.io/pvc-protection"]));
    let volume = json!({"metadata": {"name": "v", "finalizers": ["ex.io/a"]}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}});
    let made = server.post("/api/v1/persistentvolumes", &volume).await.expect(201);
    assert_eq!(made["metadata"]["finalizers"], json!(["ex.io/a", "kubernetes.io/pv-protection"]));
}

async fn default_classes(setup: Setup) {
    let server = setup.start().await;
    let none = server.post(CLAIMS, &claim("before", json!({}))).await.expect(201);
    assert_eq!(none["spec"]["storageClassName"], Value::Null);
    let mark = json!({"storageclass.kubernetes.io/is-default-class": "true"});
    for (name, annotations) in [("fast", json!({})), ("usual", mark)] {
        let class = json!({"metadata": {"name": name, "annotations": annotations}, "provisioner": "ex.io/p"});
        server.post(STORAGE, &class).await.expect(201);
    }
    let made = server.post(CLAIMS, &claim("after", json!({}))).await.expect(201);
    assert_eq!(made["spec"]["storageClassName"], "usual");
    let said = server.post(CLAIMS, &claim("said", json!({"storageClassName": ""}))).await.expect(201);
    assert_eq!(said["spec"]["storageClassName"], "");
    let mark = json!({"ingressclass.kubernetes.io/is-default-class": "true"});
    let class =
        json!({"metadata": {"name": "nginx", "annotations": mark}, "spec": {"controller": "ex.io/i"}});
    server.post(INGRESS_CLASSES, &class).await.expect(201);
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let ingress = json!({"metadata": {"name": "i"}, "spec": {"defaultBackend": backend}});
    let made = server.post(INGRESSES, &ingress).await.expect(201);
    assert_eq!(made["spec"]["ingressClassName"], "nginx");
}

async fn runtime_classes(setup: Setup) {
    let server = setup.start().await;
    let wanted = json!({"runtimeClassName": "vm", "nodeSelector": {"a": "1"}});
    let unknown = server.post(PODS, &pod("p", wanted.clone())).await.failure();
    forbidden(&unknown, "pods \"p\" is forbidden: pod rejected: RuntimeClass \"vm\" not found");
    let class = json!({"metadata": {"name": "vm"}, "handler": "vm", "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"vm": "yes"}, "tolerations": [{"key": "vm", "operator": "Exists"}]}});
    server.post(RUNTIMES, &class).await.expect(201);
    let made = server.post(PODS, &pod("p", wanted)).await.expect(201);
    assert_eq!(made["spec"]["overhead"], json!({"cpu": "250m"}));
    assert_eq!(made["spec"]["nodeSelector"], json!({"a": "1", "vm": "yes"}));
    assert_eq!(made["spec"]["tolerations"].as_array().map(Vec::len), Some(3));
    let text = "pods \"q\" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined \
                Overhead";
    let refused = server.post(PODS, &pod("q", json!({"overhead": {"cpu": "1"}}))).await.failure();
    forbidden(&refused, text);
}

async fn limits_of_a_namespace(setup: Setup) {
    let server = setup.start().await;
    let limits = json!([
        {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}},
    ]);
    let range = json!({"metadata": {"name": "l"}, "spec": {"limits": limits}});
    server.post("/api/v1/namespaces/t/limitranges", &range).await.expect(201);
    let nameless = server.post("/api/v1/namespaces/t/limitranges", &json!({"spec": {"limits": []}})).await;
    assert_eq!(nameless.expect(201)["metadata"]["name"].as_str().map(str::len), Some(36), "a uid");
    let made = server.post(PODS, &pod("p", json!({}))).await.expect(201);
    assert_eq!(
        made["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}})
    );
    assert_eq!(
        made["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
    );
    assert_eq!(made["status"]["qosClass"], "Burstable");
    let large = json!({"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "3"}}}]});
    let text = "pods \"q\" is forbidden: maximum cpu usage per Container is 1, but limit is 3";
    let refused = server.post(PODS, &pod("q", large)).await.failure();
    forbidden(&refused, text);
    let wanted = json!({"resources": {"requests": {"storage": "3Gi"}}});
    let refused = server.post(CLAIMS, &claim("c", wanted)).await.failure();
    let text = "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi";
    forbidden(&refused, &format!("persistentvolumeclaims \"c\" is forbidden: {text}"));
}

async fn apply_owns_nothing_of_plugins(setup: Setup) {
    let server = setup.start().await;
    let mut config = pod("p", json!({}));
    config["apiVersion"] = "v1".into();
    config["kind"] = "Pod".into();
    let request = server.request(Method::PATCH, format!("{PODS}/p?fieldManager=m"));
    let made = request.body("application/apply-patch+yaml", config.to_string()).await.expect(201);
    assert_eq!(made["spec"]["priority"], 0);
    let owned = &made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"];
    let owned: Vec<&String> = owned.as_object().expect("fields").keys().collect();
    assert_eq!(owned, ["f:containers"]);
}
