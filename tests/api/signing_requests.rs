//! Certificates for those who ask (section 4 of `docs/spec/auth.md`): who may approve and sign, and the controllers that do.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use crate::support::client::{Client, Protocol};
use crate::support::database::Database;
use crate::support::server::{Setup, TestServer};

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
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controllers_approve_and_sign() {
    let mut setup = Setup::new(Database::memory());
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
    let own = create(
        &alice,
        &request(&key, ("jane", "devs"), "kubernetes.io/kube-apiserver-client", &["client auth"]),
    )
    .await;
    approve(&server, &own).await;
    until(&server, &own, |status| status["certificate"].is_string()).await;
    assert!(server.get(&foreign).await.ok()["status"]["certificate"].is_null());
    server.stop().await;
}
