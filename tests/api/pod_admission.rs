//! What Pods are given, and what is refused of them: ServiceAccount, PodSecurity, and the smaller plugins
//! (`docs/spec/admission.md`, section 8). The store does not matter to them, so the tests run in memory.

use rowplane::api::admission::Settings;
use serde_json::{Value, json};

use crate::support::server::{Setup, TestServer, deployment};

on_every_store! {
    admission_90_91_92_pods_have_accounts,
    admission_102_to_108_namespaces_say_what_pods_may,
    admission_109_111_112_113_changes_that_nodes_and_classes_allow,
    admission_114_a_class_does_not_become_a_second_default,
    admission_116_plugins_that_are_off_do_as_upstream_when_on,
    admission_117_owners_take_rights,
}

const PODS: &str = "/api/v1/namespaces/t/pods";
const ACCOUNTS: &str = "/api/v1/namespaces/t/serviceaccounts";
const NAMESPACES: &str = "/api/v1/namespaces";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";
const CLAIMS: &str = "/api/v1/namespaces/t/persistentvolumeclaims";
const NODES: &str = "/api/v1/nodes";
const MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn pod(name: &str, spec: Value) -> Value {
    let mut whole = json!({"containers": [{"name": "c", "image": "i"}]});
    if let (Value::Object(whole), Value::Object(spec)) = (&mut whole, spec) {
        whole.extend(spec);
    }
    json!({"metadata": {"name": name}, "spec": whole})
}

#[track_caller]
fn forbidden(refused: &Value, text: &str) {
    assert_eq!((&refused["code"], &refused["reason"]), (&json!(403), &json!("Forbidden")), "{refused}");
    assert_eq!(refused["message"], text);
}

async fn start(setup: &mut Setup, enabled: &[&str]) -> TestServer {
    setup.namespace_contents = true;
    setup.admission = Settings::new(enabled, &[]).expect("known plugins");
    setup.start().await
}

fn warnings(answer: &crate::support::client::Answer) -> Vec<String> {
    let values = answer.headers.get_all("warning").iter().map(|value| value.to_str().expect("text"));
    values.map(|value| value["299 - \"".len()..value.len() - 1].replace("\\\"", "\"")).collect()
}

async fn admission_90_91_92_pods_have_accounts(mut setup: Setup) {
    let server = start(&mut setup, &[]).await;
    let two = json!({"initContainers": [{"name": "i", "image": "i"}],
        "containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "i", "volumeMounts": [{"name": "v", "mountPath": MOUNT}]}],
        "volumes": [{"name": "v", "emptyDir": {}}]});
    let made = server.post(PODS, &pod("plain", two)).await.expect(201);
    let spec = &made["spec"];
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    let volume = &spec["volumes"][1];
    let name = volume["name"].as_str().expect("a name");
    assert_eq!(
        (name.strip_prefix("kube-api-access-").map(str::len), spec["volumes"].as_array().map(Vec::len)),
        (Some(5), Some(2))
    );
    let sources = json!([
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]);
    assert_eq!(volume["projected"], json!({"sources": sources, "defaultMode": 420}));
    let mount = json!([{"name": name, "readOnly": true, "mountPath": MOUNT}]);
    assert_eq!(
        (&spec["initContainers"][0]["volumeMounts"], &spec["containers"][0]["volumeMounts"]),
        (&mount, &mount)
    );
    assert_eq!(spec["containers"][1]["volumeMounts"], json!([{"name": "v", "mountPath": MOUNT}]));

    let missing = server.post(PODS, &pod("x", json!({"serviceAccountName": "a"}))).await.failure();
    let text =
        "pods \"x\" is forbidden: error looking up service account t/a: serviceaccount \"a\" not found";
    forbidden(&missing, text);
    let account = json!({"metadata": {"name": "a", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}},
        "automountServiceAccountToken": false, "imagePullSecrets": [{"name": "pull"}], "secrets": [{"name": "mine"}]});
    server.post(ACCOUNTS, &account).await.expect(201);
    let made = server.post(PODS, &pod("x", json!({"serviceAccountName": "a"}))).await.expect(201);
    assert_eq!(
        (&made["spec"]["volumes"], &made["spec"]["imagePullSecrets"]),
        (&Value::Null, &json!([{"name": "pull"}]))
    );
    let wants = json!({"serviceAccountName": "a", "automountServiceAccountToken": true, "imagePullSecrets": [{"name": "own"}]});
    let text = "pods \"y\" is forbidden: imagePullSecrets[0].name=\"own\" is not allowed because service account a does not \
                reference that imagePullSecret";
    forbidden(&server.post(PODS, &pod("y", wants)).await.failure(), text);
    let env = json!([{"name": "E", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}]);
    let wants = json!({"serviceAccountName": "a", "containers": [{"name": "c", "image": "i", "env": env}]});
    let text = "pods \"y\" is forbidden: container c with envVar E referencing secret.secretName=\"other\" is not allowed \
                because service account a does not reference that secret";
    forbidden(&server.post(PODS, &pod("y", wants)).await.failure(), text);

    let mut mirror = pod("mirror", json!({"nodeName": "n"}));
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
    let made = server.post(PODS, &mirror).await.expect(201);
    assert_eq!((&made["spec"]["serviceAccountName"], &made["spec"]["volumes"]), (&Value::Null, &Value::Null));
    mirror["metadata"]["name"] = json!("other");
    mirror["spec"]["imagePullSecrets"] = json!([{"name": "s"}]);
    forbidden(
        &server.post(PODS, &mirror).await.failure(),
        "pods \"other\" is forbidden: a mirror pod may not reference secrets",
    );
}

async fn label(server: &TestServer, labels: Value) -> crate::support::client::Answer {
    server.patch(format!("{NAMESPACES}/t"), &json!({"metadata": {"labels": labels}})).await
}

async fn admission_102_to_108_namespaces_say_what_pods_may(mut setup: Setup) {
    let server = start(&mut setup, &[]).await;
    let host = json!({"hostNetwork": true});
    server.post(PODS, &pod("old-b", host.clone())).await.expect(201);
    server.post(PODS, &pod("old-a", host.clone())).await.expect(201);
    let bad = label(&server, json!({"pod-security.kubernetes.io/enforce": "none"})).await.failure();
    assert_eq!((&bad["code"], &bad["reason"]), (&json!(422), &json!("Invalid")));
    let text = "Namespace \"t\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"none\": must \
                be one of privileged, baseline, restricted";
    assert_eq!(bad["message"], text);

    let warned = label(&server, json!({"pod-security.kubernetes.io/warn": "baseline"})).await;
    assert_eq!(warnings(&warned), Vec::<String>::new());
    let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"hostNetwork": true, "containers": [{"name": "a", "image": "i"}]}});
    let answer = server.post(DEPLOYMENTS, &deployment("d", json!({"template": template}))).await;
    answer.expect(201);
    assert_eq!(
        warnings(&answer),
        ["would violate PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"]
    );

    let stricter =
        json!({"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": null});
    let answer = label(&server, stricter).await;
    let reasons = "host namespaces, allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile";
    assert_eq!(
        warnings(&answer),
        [
            "existing pods in namespace \"t\" violate the new PodSecurity enforce level \"restricted:latest\"".to_owned(),
            format!("old-a (and 1 other pod): {reasons}"),
        ]
    );
    let text = "pods \"p\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false (container \
                \"c\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"c\" must set \
                securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"c\" must set \
                securityContext.runAsNonRoot=true), seccompProfile (pod or container \"c\" must set \
                securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")";
    forbidden(&server.post(PODS, &pod("p", json!({}))).await.failure(), text);
    // A Pod that is there may change what is not checked.
    server.patch(format!("{PODS}/old-a"), &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    let mut other = server.get(format!("{PODS}/old-a")).await.ok();
    other["spec"]["containers"][0]["image"] = json!("j");
    assert_eq!(server.put(format!("{PODS}/old-a"), &other).await.failure()["code"], 403);
    label(&server, json!({"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.0"})).await.ok();
    let probe = json!({"httpGet": {"port": 1, "host": "h"}});
    let probed = json!({"containers": [{"name": "c", "image": "i", "livenessProbe": probe}]});
    server.post(PODS, &pod("p", probed)).await.expect(201);
}

async fn admission_109_111_112_113_changes_that_nodes_and_classes_allow(mut setup: Setup) {
    let server = start(&mut setup, &[]).await;
    let claim = json!({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast",
        "volumeName": "v", "resources": {"requests": {"storage": "1Gi"}}}});
    server.post(CLAIMS, &claim).await.expect(201);
    let grow = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    let path = format!("{CLAIMS}/c");
    // The kind's own rules refuse what is not bound before the plugin does.
    assert_eq!(server.patch(path.clone(), &grow).await.failure()["code"], 422);
    server
        .patch(
            format!("{path}/status"),
            &json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}),
        )
        .await
        .ok();
    let unable = "persistentvolumeclaims \"c\" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize";
    forbidden(&server.patch(path.clone(), &grow).await.failure(), unable);
    let class = json!({"metadata": {"name": "fast"}, "provisioner": "ex.io/p", "allowVolumeExpansion": true});
    server.post("/apis/storage.k8s.io/v1/storageclasses", &class).await.expect(201);
    server.patch(path, &grow).await.ok();

    let labels =
        json!({"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "other": "o"});
    server.post(NODES, &json!({"metadata": {"name": "n", "labels": labels}})).await.expect(201);
    server
        .patch(
            format!("{NODES}/n/status"),
            &json!({"status": {"allocatable": {"cpu": "2", "memory": "1Gi"}}}),
        )
        .await
        .ok();
    let placed = json!({"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"});
    let requests =
        json!({"resources": {"requests": {"cpu": "1", "memory": "100Mi"}}, "name": "c", "image": "i"});
    let made =
        server.post(PODS, &pod("p", json!({"nodeName": "n", "containers": [requests]}))).await.expect(201);
    assert_eq!(made["metadata"]["labels"], placed);
    server.post(PODS, &pod("q", json!({}))).await.expect(201);
    let binding = json!({"metadata": {"name": "q"}, "target": {"kind": "Node", "name": "n"}});
    server.post(format!("{PODS}/q/binding"), &binding).await.expect(201);
    assert_eq!(server.get(format!("{PODS}/q")).await.ok()["metadata"]["labels"], placed);

    let resize = |cpu: &str| json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "100Mi"}}}]}});
    let path = format!("{PODS}/p/resize");
    let refused = server.patch(path.clone(), &resize("5")).await.failure();
    let text = "pods \"p\" is forbidden: node didn't have enough allocatable resources: cpu, requested: 5000, allocatable: 2000";
    forbidden(&refused, text);
    assert_eq!(refused["details"]["causes"], json!([{"reason": "NodeCapacity"}]));
    let range = json!({"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Pod", "max": {"cpu": "1500m"}, "min": {"cpu": "10m"}}]}});
    server.post("/api/v1/namespaces/t/limitranges", &range).await.expect(201);
    let text = "pods \"p\" is forbidden: maximum cpu usage per Pod is 1500m.  No limit is specified";
    forbidden(&server.patch(path.clone(), &resize("1600m")).await.failure(), text);
    // Other changes of the Pod pass.
    server.patch(format!("{PODS}/p"), &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
}

async fn admission_114_a_class_does_not_become_a_second_default(mut setup: Setup) {
    let server = start(&mut setup, &[]).await;
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    for (name, default) in [("usual", true), ("other", false)] {
        let class = json!({"metadata": {"name": name}, "value": 7, "globalDefault": default});
        server.post(classes, &class).await.expect(201);
    }
    let set = json!({"globalDefault": true});
    let text = "priorityclasses.scheduling.k8s.io \"other\" is forbidden: PriorityClass usual is already marked as default. Only \
                one default can exist";
    forbidden(&server.patch(format!("{classes}/other"), &set).await.failure(), text);
    server.patch(format!("{classes}/usual"), &json!({"description": "x"})).await.ok();
}

async fn admission_116_plugins_that_are_off_do_as_upstream_when_on(mut setup: Setup) {
    let plain = start(&mut setup, &[]).await;
    let service = |addresses: Value| json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 1}], "externalIPs": addresses}});
    plain.post("/api/v1/namespaces/t/services", &service(json!(["1.2.3.4"]))).await.expect(201);
    let made =
        plain.post(PODS, &pod("p", json!({"containers": [{"name": "c", "image": "i:1"}]}))).await.expect(201);
    assert_eq!(made["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
    assert_eq!(
        plain.post("/api/v1/namespaces/new/configmaps", &json!({"metadata": {"name": "c"}})).await.status,
        404
    );
    plain.delete("/api/v1/namespaces/t/services/s").await.ok();
    plain.delete(format!("{PODS}/p?gracePeriodSeconds=0")).await.ok();
    plain.stop().await;

    let server = start(
        &mut setup,
        &[
            "DenyServiceExternalIPs",
            "AlwaysPullImages",
            "NamespaceAutoProvision",
            "NamespaceExists",
            "PodNodeSelector",
            "ExtendedResourceToleration",
            "PodTolerationRestriction",
        ],
    )
    .await;
    let text = "services \"s\" is forbidden: Use of external IPs is denied by admission control";
    forbidden(
        &server.post("/api/v1/namespaces/t/services", &service(json!(["1.2.3.4"]))).await.failure(),
        text,
    );
    server.post("/api/v1/namespaces/t/services", &service(json!([]))).await.expect(201);
    let device = json!({"requests": {"ex.io/gpu": "1"}, "limits": {"ex.io/gpu": "1"}});
    let wants = json!({"containers": [{"name": "c", "image": "i:1", "resources": device}]});
    let made = server.post(PODS, &pod("p", wants)).await.expect(201);
    assert_eq!(made["spec"]["containers"][0]["imagePullPolicy"], "Always");
    let tolerated = made["spec"]["tolerations"].as_array().expect("tolerations");
    assert!(
        tolerated.contains(&json!({"key": "ex.io/gpu", "operator": "Exists", "effect": "NoSchedule"})),
        "{tolerated:?}"
    );
    server.post("/api/v1/namespaces/new/configmaps", &json!({"metadata": {"name": "c"}})).await.expect(201);
    server.get(format!("{NAMESPACES}/new")).await.ok();

    let annotations = json!({"scheduler.alpha.kubernetes.io/node-selector": "zone=a",
        "scheduler.alpha.kubernetes.io/tolerationsWhitelist": "[{\"key\": \"x\", \"operator\": \"Exists\"}]"});
    server.patch(format!("{NAMESPACES}/new"), &json!({"metadata": {"annotations": annotations}})).await.ok();
    let pods = "/api/v1/namespaces/new/pods";
    let refused = server.post(pods, &pod("p", json!({"nodeSelector": {"zone": "b"}}))).await.failure();
    forbidden(
        &refused,
        "pods \"p\" is forbidden: pod node label selector conflicts with its namespace node label selector",
    );
    let refused = server.post(pods, &pod("p", json!({}))).await.failure();
    let text = "Internal error occurred: pod tolerations (possibly merged with namespace default tolerations) conflict with its \
                namespace whitelist";
    assert_eq!((&refused["code"], &refused["message"]), (&json!(500), &json!(text)));
    server.patch(format!("{NAMESPACES}/new"), &json!({"metadata": {"annotations": {"scheduler.alpha.kubernetes.io/tolerationsWhitelist": null}}})).await.ok();
    let made = server.post(pods, &pod("p", json!({"nodeSelector": {"a": "b"}}))).await.expect(201);
    assert_eq!(made["spec"]["nodeSelector"], json!({"a": "b", "zone": "a"}));
}

async fn admission_117_owners_take_rights(mut setup: Setup) {
    let server = start(&mut setup, &["OwnerReferencesPermissionEnforcement"]).await;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "update", "patch"]}]);
    server
        .post(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            &json!({"metadata": {"name": "maps"}, "rules": rules}),
        )
        .await
        .expect(201);
    let binding = json!({"metadata": {"name": "maps"}, "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "alice"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "maps"}});
    server.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await.expect(201);
    let alice = server.token("alice-token");
    let maps = "/api/v1/namespaces/t/configmaps";
    let uid = server.create("o", json!({})).await["metadata"]["uid"].clone();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": uid});
    alice.post(maps, &json!({"metadata": {"name": "a", "ownerReferences": [owner]}})).await.expect(201);
    let text =
        "configmaps \"a\" is forbidden: cannot set an ownerRef on a resource you can't delete: , <nil>";
    forbidden(
        &alice.patch(format!("{maps}/a"), &json!({"metadata": {"ownerReferences": null}})).await.failure(),
        text,
    );
    let mut blocking = owner;
    blocking["blockOwnerDeletion"] = json!(true);
    let text = "configmaps \"b\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't \
                set finalizers on: , <nil>";
    forbidden(
        &alice.post(maps, &json!({"metadata": {"name": "b", "ownerReferences": [blocking]}})).await.failure(),
        text,
    );
    server.post(maps, &json!({"metadata": {"name": "b", "ownerReferences": [blocking]}})).await.expect(201);
}
