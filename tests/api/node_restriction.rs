//! What the admission plugin NodeRestriction lets kubelets write (3.5 of `docs/spec/auth.md`, 4.5 of
//! `docs/spec/admission.md`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DnType, KeyPair};
use rowplane::api::admission::Settings;
use serde_json::{Value, json};

use crate::support::client::Answer;
use crate::support::server::Setup;

on_every_store! {
    auth_69_admission_115_kubelets_write_what_is_of_their_node,
}

const PODS: &str = "/api/v1/namespaces/t/pods";
const NODES: &str = "/api/v1/nodes";

async fn refused(answer: impl IntoFuture<Output = Answer>, why: &str) {
    let refused = answer.await.failure();
    assert_eq!(refused["code"], 403, "{refused}");
    let message = refused["message"].as_str().expect("a message");
    assert!(message.ends_with(&format!("is forbidden: {why}")), "{message}");
}

fn pod(name: &str, node: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}})
}

async fn auth_69_admission_115_kubelets_write_what_is_of_their_node(mut setup: Setup) {
    setup.admission = Settings::new(&["NodeRestriction"], &["ServiceAccount"]).expect("it is there");
    let lines = [
        "root-token,root,u-2,system:masters",
        "node-token,system:node:n,,system:nodes",
        "alice-token,alice,u-1",
    ];
    std::fs::write(setup.file("tokens.csv"), lines.map(|line| format!("{line}\n")).concat()).expect("write");
    let server = setup.start().await;
    let node = server.token("node-token");

    // Its own Node, without labels that steer.
    let own = |labels: Value| json!({"metadata": {"name": "n", "labels": labels}});
    refused(
        node.post(NODES, &own(json!({"node-role.kubernetes.io/x": "", "kubernetes.io/hostname": "n"}))),
        "node \"n\" is not allowed to set the following labels: node-role.kubernetes.io/x",
    )
    .await;
    refused(
        node.post(NODES, &json!({"metadata": {"name": "m"}})),
        "node \"n\" is not allowed to modify node \"m\"",
    )
    .await;
    let made = node.post(NODES, &own(json!({"kubernetes.io/hostname": "n"}))).await.expect(201);
    let changed = |path: &[&str], value: Value| {
        let mut node = made.clone();
        let place = path.iter().fold(&mut node, |place, part| &mut place[*part]);
        *place = value;
        node
    };
    let path = format!("{NODES}/n");
    let taints = json!([{"key": "a", "effect": "NoSchedule"}]);
    for (node_now, why) in [
        (changed(&["spec", "taints"], taints), "node \"n\" is not allowed to modify taints"),
        (
            changed(&["metadata", "labels", "a.k8s.io/b"], "c".into()),
            "is not allowed to modify labels: a.k8s.io/b",
        ),
    ] {
        refused(node.put(&path, &node_now), why).await;
    }
    node.put(&path, &changed(&["metadata", "labels", "example.com/x"], "y".into())).await.ok();

    // Mirror Pods of its own.
    let uid = made["metadata"]["uid"].clone();
    let mirror = json!({
        "metadata": {
            "name": "mirror",
            "annotations": {"kubernetes.io/config.mirror": "x"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": uid, "controller": true}],
        },
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    });
    refused(
        node.post(PODS, &pod("p", "n")),
        "pod does not have \"kubernetes.io/config.mirror\" annotation, node \"n\" can only create mirror pods",
    )
    .await;
    let mirror_with = |path: &str, value: Value| {
        let mut pod = mirror.clone();
        *pod.pointer_mut(path).expect("a place") = value;
        pod
    };
    for (pod, why) in [
        (
            mirror_with("/spec/nodeName", "m".into()),
            "node \"n\" can only create pods with spec.nodeName set to itself",
        ),
        (
            mirror_with("/metadata/ownerReferences", json!([])),
            "node \"n\" can only create pods with an owner reference set to itself",
        ),
        (
            mirror_with("/metadata/ownerReferences/0/controller", false.into()),
            "node \"n\" can only create pods with a controller owner reference set to itself",
        ),
        (
            mirror_with(
                "/spec/containers",
                json!([{"name": "c", "image": "i", "envFrom": [{"secretRef": {"name": "s"}}]}]),
            ),
            "node \"n\" can not create pods that reference secrets",
        ),
    ] {
        refused(node.post(PODS, &pod), why).await;
    }
    node.post(PODS, &mirror).await.expect(201);
    server.post(PODS, &pod("mine", "n")).await.expect(201);
    server.post(PODS, &pod("theirs", "m")).await.expect(201);
    refused(
        node.delete(format!("{PODS}/theirs")),
        "node \"n\" can only delete pods with spec.nodeName set to itself",
    )
    .await;
    let mut status = server.get(format!("{PODS}/mine")).await.ok();
    status["status"]["phase"] = "Running".into();
    node.put(format!("{PODS}/mine/status"), &status).await.ok();
    let mut labelled = server.get(format!("{PODS}/mine")).await.ok();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    refused(
        node.put(format!("{PODS}/mine/status"), &labelled),
        "node \"n\" cannot update labels through pod status",
    )
    .await;
    let eviction =
        |name: &str| json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    refused(
        node.post(format!("{PODS}/theirs/eviction"), &eviction("theirs")),
        "node n can only evict pods with spec.nodeName set to itself",
    )
    .await;

    // 69: tokens for its Pods and what they name.
    server
        .post("/api/v1/namespaces/t/serviceaccounts", &json!({"metadata": {"name": "default"}}))
        .await
        .expect(201);
    let mut mine = pod("accounted", "n");
    mine["spec"]["serviceAccountName"] = "default".into();
    let source = json!({"serviceAccountToken": {"path": "t", "audience": "vault"}});
    mine["spec"]["volumes"] = json!([{"name": "v", "projected": {"sources": [source]}}]);
    let mine = server.post(PODS, &mine).await.expect(201);
    let tokens = "/api/v1/namespaces/t/serviceaccounts/default/token";
    let bound = |pod: &Value, audiences: Value| {
        let reference = json!({"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]});
        json!({"spec": {"boundObjectRef": reference, "audiences": audiences}})
    };
    refused(node.post(tokens, &json!({"spec": {}})), "node requested token not bound to a pod").await;
    let mut no_uid = bound(&mine, json!(["vault"]));
    no_uid["spec"]["boundObjectRef"]["uid"] = "".into();
    refused(node.post(tokens, &no_uid), "node requested token with a pod binding without a uid").await;
    let theirs = server.get(format!("{PODS}/theirs")).await.ok();
    refused(
        node.post(tokens, &bound(&theirs, json!(["vault"]))),
        "node requested token bound to a pod scheduled on a different node",
    )
    .await;
    refused(node.post(tokens, &bound(&mine, json!(["a", "b"]))), "node may only request 0 or 1 audiences")
        .await;
    refused(
        node.post(tokens, &bound(&mine, json!(["elsewhere"]))),
        "system:node:n is not authorized to request tokens for audience \"elsewhere\"",
    )
    .await;
    node.post(tokens, &bound(&mine, json!(["vault"]))).await.expect(201);
    let mut lost = pod("lost", "n");
    lost["spec"]["serviceAccountName"] = "default".into();
    lost["spec"]["volumes"] = json!([
        {"name": "d", "csi": {"driver": "d.example.com"}},
        {"name": "c", "persistentVolumeClaim": {"claimName": "c"}},
    ]);
    let lost = server.post(PODS, &lost).await.expect(201);
    refused(
        node.post(tokens, &bound(&lost, json!(["elsewhere"]))),
        "error validating audience \"elsewhere\": [csidriver.storage.k8s.io \"d.example.com\" not found, \
         persistentvolumeclaim \"c\" not found]",
    )
    .await;
    let rule = json!({"apiGroups": [""], "resources": ["elsewhere"], "verbs": ["request-serviceaccounts-token-audience"]});
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let role = json!({"metadata": {"name": "audience"}, "rules": [rule]});
    server.post(format!("{rbac}/clusterroles"), &role).await.expect(201);
    let binding = json!({
        "metadata": {"name": "audience"},
        "roleRef": {"kind": "ClusterRole", "name": "audience"},
        "subjects": [{"kind": "Group", "name": "system:nodes"}],
    });
    server.post(format!("{rbac}/clusterrolebindings"), &binding).await.expect(201);
    node.post(tokens, &bound(&mine, json!(["elsewhere"]))).await.expect(201);

    // Leases, CSINodes and requests of certificates in its name.
    let lease = |name: &str| json!({"metadata": {"name": name}, "spec": {}});
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    refused(
        node.post(leases, &lease("m")),
        "can only access node lease with the same name as the requesting node",
    )
    .await;
    node.post(leases, &lease("n")).await.expect(201);
    let csi = |name: &str| json!({"metadata": {"name": name}, "spec": {"drivers": []}});
    let csi_nodes = "/apis/storage.k8s.io/v1/csinodes";
    refused(
        node.post(csi_nodes, &csi("m")),
        "can only access CSINode with the same name as the requesting node",
    )
    .await;
    node.post(csi_nodes, &csi("n")).await.expect(201);
    let request = |name: &str| {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.serialize_request(&key).expect("a request").pem().expect("PEM");
        json!({"metadata": {"generateName": "r-"}, "spec": {
            "request": STANDARD.encode(pem), "signerName": "kubernetes.io/kubelet-serving", "usages": ["server auth"]}})
    };
    let requests = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
    refused(
        node.post(requests, &request("system:node:m")),
        "can only create a node CSR with CN=system:node:n",
    )
    .await;
    node.post(requests, &request("system:node:n")).await.expect(201);

    // Certificates of its Pods, by signers that these name, or that it may ask all the same.
    let certificate = json!({"podCertificate": {"signerName": "example.com/mounted", "keyType": "ED25519"}});
    let mut asking = pod("asking", "n");
    asking["spec"]["serviceAccountName"] = "default".into();
    asking["spec"]["volumes"] = json!([{"name": "v", "projected": {"sources": [certificate]}}]);
    asking["spec"]["volumes"][0]["projected"]["sources"][0]["podCertificate"]["credentialBundlePath"] =
        "c".into();
    let asking = server.post(PODS, &asking).await.expect(201);
    let account = server.get("/api/v1/namespaces/t/serviceaccounts/default").await.ok();
    let certificate = |signer: &str| {
        let key = KeyPair::generate().expect("a key");
        let request = CertificateParams::default().serialize_request(&key).expect("a request");
        json!({"metadata": {"generateName": "c-"}, "spec": {
            "signerName": signer, "podName": "asking", "podUID": asking["metadata"]["uid"],
            "serviceAccountName": "default", "serviceAccountUID": account["metadata"]["uid"],
            "nodeName": "n", "nodeUID": uid, "stubPKCS10Request": STANDARD.encode(request.der())}})
    };
    let certificates = "/apis/certificates.k8s.io/v1/namespaces/t/podcertificaterequests";
    refused(
        node.post(certificates, &certificate("example.com/other")),
        "pod \"t/asking\" does not mount a podCertificate projected volume for signer \"example.com/other\"",
    )
    .await;
    node.post(certificates, &certificate("example.com/mounted")).await.expect(201);
    let rule = json!({"apiGroups": ["certificates.k8s.io"], "resources": ["example.com:other"], "resourceNames": ["default"],
        "verbs": ["request-serviceaccounts-podcertificate-signer"]});
    server.patch(format!("{rbac}/clusterroles/audience"), &json!({"rules": [rule]})).await.ok();
    node.post(certificates, &certificate("example.com/other")).await.expect(201);
    server.stop().await;
}
