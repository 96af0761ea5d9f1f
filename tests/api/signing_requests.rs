//! Certificates for those who ask (section 4 of `docs/spec/auth.md`): who may approve and sign, and the controllers that do.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, DnValue, IsCa, KeyPair};
use serde_json::{Value, json};

use crate::support::client::{Client, Protocol};
use crate::support::server::{Setup, TestServer};

on_every_store! {
    controllers_approve_and_sign,
    signers_have_their_own_authorities,
    auth_79_to_84_admission_110_who_may_approve_sign_and_attest,
    what_is_checked_is_what_every_other_reader_finds,
}

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
const NODE_CLIENT: [&str; 2] = ["client auth", "digital signature"];

/// What somebody asks a signer for.
fn request(key: &KeyPair, (common_name, organization): (&str, &str), signer: &str, usages: &[&str]) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.distinguished_name.push(DnType::CommonName, common_name);
    let pem = params.serialize_request(key).expect("a request").pem().expect("PEM");
    let spec = json!({"request": STANDARD.encode(pem), "signerName": signer, "usages": usages});
    json!({"metadata": {"generateName": "r-"}, "spec": spec})
}

async fn create(client: &Client, request: &Value) -> String {
    let made = client.post(REQUESTS, request).await.expect(201);
    format!("{REQUESTS}/{}", made["metadata"]["name"].as_str().expect("a name"))
}

/// The status once it says this.
async fn until(server: &TestServer, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    loop {
        let status = server.get(path).await.ok()["status"].clone();
        if is_so(&status) {
            return status;
        }
        tokio::task::yield_now().await;
    }
}

async fn approve(server: &TestServer, path: &str) {
    let mut request = server.get(path).await.ok();
    request["status"]["conditions"] =
        json!([{"type": "Approved", "status": "True", "reason": "x", "message": "x"}]);
    server.put(format!("{path}/approval"), &request).await.ok();
}

/// A kubelet without a certificate gets one, by which it is known as its node.
async fn controllers_approve_and_sign(mut setup: Setup) {
    let controllers = &mut setup.certificate_controllers;
    (controllers.approving, controllers.signing, controllers.cleaning) = (true, true, true);
    let server = setup.start().await;
    let role = "system:certificates.k8s.io:certificatesigningrequests:nodeclient";
    for (name, role) in [("bootstrap", role), ("bootstrapper", "system:node-bootstrapper")] {
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "User", "name": "alice"}],
        });
        server.post(BINDINGS, &binding).await.expect(201);
    }
    let (alice, key) = (server.token("alice-token"), KeyPair::generate().expect("a key"));
    let clients = "kubernetes.io/kube-apiserver-client-kubelet";
    let node = ("system:node:n", "system:nodes");
    let path = create(&alice, &request(&key, node, clients, &NODE_CLIENT)).await;
    let status = until(&server, &path, |status| status["certificate"].is_string()).await;
    let approved = &status["conditions"][0];
    assert_eq!((&approved["type"], &approved["reason"]), (&json!("Approved"), &json!("AutoApproved")));
    assert_eq!(approved["message"], "Auto approving kubelet client certificate after SubjectAccessReview.");
    let mut kubeconfig = server.kubeconfig.clone();
    let user = kubeconfig.auth_infos[0].auth_info.as_mut().expect("a user");
    user.client_certificate_data = Some(status["certificate"].as_str().expect("a certificate").to_owned());
    user.client_key_data = Some(STANDARD.encode(key.serialize_pem()).into());
    let kubelet = Client::of_certificate(&kubeconfig, Protocol::Any);
    let who = kubelet.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({})).await.expect(201);
    assert_eq!(who["status"]["userInfo"]["username"], "system:node:n");
    assert_eq!(who["status"]["userInfo"]["groups"], json!(["system:nodes", "system:authenticated"]));
    // Others wait for somebody who approves; what does not fit its signer has failed then.
    let path = create(&alice, &request(&key, node, "kubernetes.io/kubelet-serving", &["server auth"])).await;
    approve(&server, &path).await;
    let status = until(&server, &path, |status| status["conditions"][1].is_object()).await;
    let failed = &status["conditions"][1];
    assert_eq!((&failed["type"], &failed["reason"]), (&json!("Failed"), &json!("SignerValidationFailure")));
    assert_eq!(failed["message"], "DNS or IP subjectAltName is required");
    // A signer elsewhere is left alone.
    let foreign = create(&alice, &request(&key, ("jane", "devs"), "example.com/s", &["client auth"])).await;
    approve(&server, &foreign).await;
    let mut wanted = request(&key, ("jane", "devs"), "kubernetes.io/kube-apiserver-client", &["client auth"]);
    wanted["spec"]["expirationSeconds"] = 7200.into();
    let own = create(&alice, &wanted).await;
    approve(&server, &own).await;
    until(&server, &own, |status| status["certificate"].is_string()).await;
    assert!(server.get(&foreign).await.ok()["status"]["certificate"].is_null());
    // Those that were requested for a time are counted; a signer elsewhere makes one for as long as it likes.
    wanted["spec"]["signerName"] = "example.com/s".into();
    let foreign = create(&alice, &wanted).await;
    approve(&server, &foreign).await;
    let mut issued = server.get(&foreign).await.ok();
    issued["status"]["certificate"] = STANDARD.encode(ca()).into();
    server.put(format!("{foreign}/status"), &issued).await.ok();
    server.put(format!("{foreign}/status"), &server.get(&foreign).await.ok()).await.ok();
    let metrics = server.get("/metrics").await.text();
    let count = |line: &str| metrics.contains(&format!("apiserver_certificates_registry_csr_{line} 1\n"));
    assert!(
        count("requested_duration_total{signerName=\"kubernetes.io/kube-apiserver-client\"}"),
        "{metrics}"
    );
    assert!(count("honored_duration_total{signerName=\"kubernetes.io/kube-apiserver-client\"}"), "{metrics}");
    assert!(count("requested_duration_total{signerName=\"other\"}"), "{metrics}");
    assert!(!metrics.contains("honored_duration_total{signerName=\"other\"}"), "{metrics}");
    server.stop().await;
}

/// Each signer has a CA of its own, whose files may change; a signer without one signs nothing.
async fn signers_have_their_own_authorities(mut setup: Setup) {
    let files = ["kubelets.crt", "kubelets.key"].map(|name| setup.file(name));
    let make = |name: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a CA");
        std::fs::write(&files[0], certificate.pem()).expect("write");
        std::fs::write(&files[1], key.serialize_pem()).expect("write");
    };
    make("first");
    setup.certificate_controllers.signing = true;
    let own = (files[0].clone(), files[1].clone());
    let kubelets = "kubernetes.io/kube-apiserver-client-kubelet";
    setup.certificate_controllers.authorities = [(kubelets, own)].into();
    let server = setup.start().await;
    let (key, node) = (KeyPair::generate().expect("a key"), ("system:node:n", "system:nodes"));
    let issuer = async || {
        let path = create(&server, &request(&key, node, kubelets, &NODE_CLIENT)).await;
        approve(&server, &path).await;
        let status = until(&server, &path, |status| status["certificate"].is_string()).await;
        let text = STANDARD.decode(status["certificate"].as_str().expect("a certificate")).expect("base64");
        let (_, pem) = x509_parser::pem::parse_x509_pem(&text).expect("PEM");
        let certificate = pem.parse_x509().expect("a certificate");
        certificate.issuer().to_string()
    };
    let clients = ["client auth"];
    let other =
        create(&server, &request(&key, ("jane", "devs"), "kubernetes.io/kube-apiserver-client", &clients))
            .await;
    approve(&server, &other).await;
    assert_eq!(issuer().await, "CN=first");
    make("second");
    assert_eq!(issuer().await, "CN=second");
    std::fs::write(&files[0], "rubbish").expect("write");
    assert_eq!(issuer().await, "CN=second");
    assert!(server.get(&other).await.ok()["status"]["certificate"].is_null());
}

fn message(refused: &Value) -> &str {
    refused["message"].as_str().expect("a message")
}

/// Lets alice do this.
async fn allow(server: &TestServer, name: &str, rules: Value) {
    let role = json!({"metadata": {"name": name}, "rules": rules});
    server.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &role).await.expect(201);
    let role = json!({"kind": "ClusterRole", "name": name});
    let subjects = json!([{"kind": "User", "name": "alice"}]);
    let binding = json!({"metadata": {"name": name}, "roleRef": role, "subjects": subjects});
    server.post(BINDINGS, &binding).await.expect(201);
}

/// Lets alice do this for a signer, or for all of a domain.
async fn allow_signer(server: &TestServer, verb: &str, signer: &str) {
    let rule = json!({"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": [signer], "verbs": [verb]});
    allow(server, verb, json!([rule])).await;
}

fn ca() -> String {
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.self_signed(&key).expect("a certificate").pem()
}

/// Assertions 79 to 84.
async fn auth_79_to_84_admission_110_who_may_approve_sign_and_attest(setup: Setup) {
    let server = setup.start().await;
    let all = json!([{"apiGroups": ["certificates.k8s.io"], "verbs": ["*"], "resources": [
        "certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status",
        "clustertrustbundles", "podcertificaterequests/status"]}]);
    allow(&server, "certificates", all).await;
    let (alice, key) = (server.token("alice-token"), KeyPair::generate().expect("a key"));
    // 82: nobody becomes a master this way.
    let client =
        request(&key, ("x", "system:masters"), "kubernetes.io/kube-apiserver-client", &["client auth"]);
    let refused = alice.post(REQUESTS, &client).await.failure();
    let why = "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed";
    assert!(
        refused["code"] == 403 && message(&refused).ends_with(&format!(" is forbidden: {why}")),
        "{refused}"
    );
    // 79: who asks is not what he says.
    let mut wanted = request(&key, ("x", "devs"), "example.com/s", &["client auth"]);
    wanted["spec"]["username"] = "root".into();
    let path = create(&alice, &wanted).await;
    let mut stored = server.get(&path).await.ok();
    assert_eq!(stored["spec"]["username"], "alice");
    // 80: approving takes a right to the signer.
    let approved = json!([{"type": "Approved", "status": "True", "reason": "x", "message": "x"}]);
    stored["status"]["conditions"] = approved;
    let approval = format!("{path}/approval");
    let refused = alice.put(&approval, &stored).await.failure();
    let why = "is forbidden: user not permitted to approve requests with signerName \"example.com/s\"";
    assert!(refused["code"] == 403 && message(&refused).ends_with(why), "{refused}");
    allow_signer(&server, "approve", "example.com/*").await;
    let mut stored = alice.put(&approval, &stored).await.ok();
    let denied = json!({"type": "Denied", "status": "True", "reason": "x", "message": "x"});
    let mut both = stored.clone();
    both["status"]["conditions"].as_array_mut().expect("conditions").push(denied);
    let refused = alice.put(&approval, &both).await.failure();
    assert!(message(&refused).contains("Approved and Denied conditions are mutually exclusive"), "{refused}");
    // 81: so does signing; who changes nothing needs no right.
    let status = format!("{path}/status");
    alice.put(&status, &stored).await.ok();
    stored["metadata"].as_object_mut().expect("metadata").remove("resourceVersion");
    stored["status"]["certificate"] = STANDARD.encode(ca()).into();
    let refused = alice.put(&status, &stored).await.failure();
    let why = "is forbidden: user not permitted to sign requests with signerName \"example.com/s\"";
    assert!(refused["code"] == 403 && message(&refused).ends_with(why), "{refused}");
    allow_signer(&server, "sign", "example.com/s").await;
    alice.put(&status, &stored).await.ok();
    stored["status"]["certificate"] = STANDARD.encode(ca()).into();
    let refused = alice.put(&status, &stored).await.failure();
    assert!(message(&refused).ends_with("updates may not modify existing certificate content"), "{refused}");
    // 83: bundles of a signer are attested, others are not.
    let bundles = "/apis/certificates.k8s.io/v1/clustertrustbundles";
    let own = json!({"metadata": {"name": "own"}, "spec": {"trustBundle": ca()}});
    alice.post(bundles, &own).await.expect(201);
    let of_signer = json!({
        "metadata": {"name": "example.com:s:one"},
        "spec": {"signerName": "example.com/s", "trustBundle": ca()},
    });
    let refused = alice.post(bundles, &of_signer).await.failure();
    let why = "is forbidden: user not permitted to attest for signerName \"example.com/s\"";
    assert!(refused["code"] == 403 && message(&refused).ends_with(why), "{refused}");
    let made = server.post(bundles, &of_signer).await.expect(201);
    let path = format!("{bundles}/example.com:s:one");
    let mut finalized = made.clone();
    finalized["metadata"]["finalizers"] = json!(["example.com/x"]);
    let mut finalized = alice.put(&path, &finalized).await.ok();
    finalized["metadata"]["labels"] = json!({"a": "b"});
    assert_eq!(alice.put(&path, &finalized).await.status, 403, "a label is not what collectors change");
    allow_signer(&server, "attest", "example.com/s").await;
    finalized["metadata"]["finalizers"] = json!([]);
    alice.put(&path, &finalized).await.ok();
    alice.delete(&path).await.ok();
    // 84: certificates of Pods are issued by their signer alone.
    let params = CertificateParams::default().serialize_request(&key).expect("a request");
    let spec = json!({
        "signerName": "example.org/s", "podName": "p", "podUID": "1", "serviceAccountName": "a", "serviceAccountUID": "2",
        "nodeName": "n", "nodeUID": "3", "stubPKCS10Request": STANDARD.encode(params.der()),
    });
    let pods = "/apis/certificates.k8s.io/v1/namespaces/t/podcertificaterequests";
    let asked = json!({"metadata": {"name": "c"}, "spec": spec});
    let mut asked = server.post(pods, &asked).await.expect(201);
    let status = format!("{pods}/c/status");
    alice.put(&status, &asked).await.ok();
    let time = asked["metadata"]["creationTimestamp"].clone();
    asked["status"]["conditions"] = json!([{"type": "Denied", "status": "True", "reason": "x", "message": "x", "lastTransitionTime": time}]);
    let refused = alice.put(&status, &asked).await.failure();
    assert_eq!(refused["code"], 422);
    let why = "spec.signerName: Forbidden: User \"alice\" is not permitted to \"sign\" for signer \"example.org/s\"";
    assert!(message(&refused).ends_with(why), "{refused}");
    server.put(&status, &asked).await.ok();
    server.stop().await;
}

/// Three ways to have something signed that was not checked: a string of a type that only others read, a second block behind one
/// that only this server would take, and a signature that proves nothing.
async fn what_is_checked_is_what_every_other_reader_finds(setup: Setup) {
    let server = setup.start().await;
    let key = KeyPair::generate().expect("a key");
    let clients = "kubernetes.io/kube-apiserver-client";
    let with = |text: &[u8]| {
        let mut asked = request(&key, ("x", "devs"), clients, &["client auth"]);
        asked["spec"]["request"] = STANDARD.encode(text).into();
        asked
    };
    let named = |organization: DnValue| {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, organization);
        params.distinguished_name.push(DnType::CommonName, "x");
        params.serialize_request(&key).expect("a request")
    };
    let masters = "system:masters";
    for masters in [
        DnValue::TeletexString(masters.try_into().expect("a string")),
        DnValue::BmpString(masters.try_into().expect("a string")),
    ] {
        let refused =
            server.post(REQUESTS, &with(named(masters).pem().expect("PEM").as_bytes())).await.failure();
        assert_eq!(refused["code"], 403, "{refused}");
    }
    let wide = named(DnValue::UniversalString(masters.try_into().expect("a string")));
    let refused = server.post(REQUESTS, &with(wide.pem().expect("PEM").as_bytes())).await.failure();
    assert!(message(&refused).contains("unsupported string type"), "{refused}");
    let plain = named("devs".into());
    let (der, pem) = (plain.der().to_vec(), plain.pem().expect("PEM"));
    let other = pem.replace("END CERTIFICATE REQUEST", "END CERTIFICATE REQUEST1");
    let master = named(masters.into()).pem().expect("PEM");
    for text in [format!("Data:\n{pem}"), format!("{pem}x\n")] {
        server.post(REQUESTS, &with(text.as_bytes())).await.expect(201);
    }
    for text in [format!("{other}{master}"), format!("{pem}{master}")] {
        let refused = server.post(REQUESTS, &with(text.as_bytes())).await.failure();
        assert!(message(&refused).contains("there must be one PEM block"), "{refused}");
    }
    let ecdsa_with_sha256 = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
    let at = der.windows(10).rposition(|part| part == ecdsa_with_sha256).expect("an algorithm");
    for (place, why) in [(at + 9, "algorithm unimplemented"), (der.len() - 1, "ECDSA verification failure")] {
        let mut broken = der.clone();
        broken[place] ^= 1;
        broken[place] |= if place == at + 9 { 0x70 } else { 0 };
        let text = pem::encode(&pem::Pem::new("CERTIFICATE REQUEST", broken));
        let refused = server.post(REQUESTS, &with(text.as_bytes())).await.failure();
        assert_eq!(refused["code"], 422, "{refused}");
        assert!(message(&refused).contains(why), "{refused}");
    }
    // White space around it, and lines that end as on Windows, are nothing.
    let text = format!("\n{}\n", pem.replace('\n', "\r\n"));
    server.post(REQUESTS, &with(text.as_bytes())).await.expect(201);
    server.stop().await;
}
