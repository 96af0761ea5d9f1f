//! Credentials as people have them: tokens of service accounts, plugins that are run for one, and an issuer's tokens.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::support::site::{CONFIGURATION, Site, key, now, token};
use crate::tool::Kubectl;

/// What `auth whoami` says of a user.
async fn who(kubectl: &Kubectl, flags: &str) -> (String, Vec<String>) {
    let line = format!("auth whoami -o json {flags}");
    let review: Value = serde_json::from_str(&kubectl.run(&line).await).expect("JSON");
    let user = &review["status"]["userInfo"];
    let groups = user["groups"].as_array().expect("groups").iter();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    (text(&user["username"]), groups.map(text).collect())
}

pub async fn shows_tokens_of_accounts(kubectl: &Kubectl) {
    kubectl.run("create serviceaccount robot").await;
    let token = kubectl.run("create token robot --duration=10m").await;
    let robot = kubectl.kubeconfig("robot", &json!({"token": token.trim()}));
    let (name, groups) = who(kubectl, &robot).await;
    assert_eq!(name, "system:serviceaccount:default:robot");
    assert_eq!(groups, ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]);
    let refused = kubectl.fail(&format!("get configmaps {robot}")).await;
    assert!(refused.contains(r#"cannot list resource "configmaps" in API group """#), "{refused}");
    kubectl.run("create rolebinding robots --clusterrole=view --serviceaccount=default:robot").await;
    kubectl.run(&format!("get configmaps {robot}")).await;
    let may = kubectl.end_of(&format!("auth can-i get secrets {robot}"), "").await;
    assert_eq!((may.success, &*may.stdout), (false, "no\n"));
    kubectl.run("delete serviceaccount robot").await;
    let refused = kubectl.fail(&format!("get configmaps {robot}")).await;
    assert!(refused.contains("You must be logged in to the server"), "{refused}");
}

/// A plugin shows a token, another one a certificate.
pub async fn runs_plugins(kubectl: &Kubectl) {
    let pem = |name: &str| std::fs::read_to_string(kubectl.dir().join("pki").join(name)).expect("a file");
    let certificate = json!({"clientCertificateData": pem("admin.crt"), "clientKeyData": pem("admin.key")});
    for (name, status, user) in [
        ("of-a-token", json!({"token": "jane-token"}), "jane"),
        ("of-a-certificate", certificate, "kubernetes-admin"),
    ] {
        let kind = "ExecCredential";
        let shown = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": kind, "status": status});
        let (answer, program) = (kubectl.dir().join(format!("{name}.json")), kubectl.dir().join(name));
        std::fs::write(&answer, shown.to_string()).expect("write the answer");
        // It leaves what it was asked.
        let script = format!(
            "#!/bin/sh\nprintf %s \"$KUBERNETES_EXEC_INFO\" > '{0}.asked'\nexec cat '{0}'\n",
            answer.display()
        );
        std::fs::write(&program, script).expect("write the plugin");
        let may_run = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&program, may_run).expect("make it a program");
        let exec = json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": program,
            "interactiveMode": "Never",
            "provideClusterInfo": true,
        });
        let config = kubectl.kubeconfig(&format!("{name}.config"), &json!({"exec": exec}));
        assert_eq!(who(kubectl, &config).await.0, user);
        let asked = std::fs::read_to_string(format!("{}.asked", answer.display())).expect("it was run");
        let asked: Value = serde_json::from_str(&asked).expect("JSON");
        assert!(asked["spec"]["cluster"]["server"].is_string(), "{asked}");
    }
}

/// kubectl's own plugin shows a token of an issuer, and asks the issuer for another one when that has ended.
pub async fn shows_tokens_of_an_issuer(minor: u32) {
    let (site, key) = (Site::start().await, key());
    site.publish(&[&key]);
    let url = site.url();
    let endpoints = json!({
        "issuer": url,
        "jwks_uri": format!("{url}/keys"),
        "token_endpoint": format!("{url}/token"),
    });
    site.put(CONFIGURATION, &endpoints);
    let authority = |dir: &std::path::Path| dir.join("issuer.crt");
    let kubectl = Kubectl::start_with(minor, |dir| {
        std::fs::write(authority(dir), &site.certificate).expect("write the certificate");
        vec![
            format!("--oidc-issuer-url={url}"),
            "--oidc-client-id=me".to_owned(),
            format!("--oidc-ca-file={}", authority(dir).display()),
            "--oidc-signing-algs=ES256".to_owned(),
            "--oidc-username-prefix=oidc:".to_owned(),
            "--oidc-groups-claim=groups".to_owned(),
        ]
    })
    .await;
    let shown = |token: &str| {
        json!({"auth-provider": {"name": "oidc", "config": {
            "idp-issuer-url": url,
            "idp-certificate-authority": authority(kubectl.dir()),
            "client-id": "me",
            "client-secret": "secret",
            "id-token": token,
            "refresh-token": "again",
        }}})
    };
    let good = token(&key, &site, json!({"groups": ["builders"]}));
    let config = kubectl.kubeconfig("good", &shown(&good));
    // The server may still be asking for the issuer's keys.
    while !kubectl.end_of(&format!("get --raw /version {config}"), "").await.success {}
    assert_eq!(
        who(&kubectl, &config).await,
        ("oidc:jane".to_owned(), vec!["builders".to_owned(), "system:authenticated".to_owned()])
    );
    assert!(kubectl.fail(&format!("get configmaps {config}")).await.contains("oidc:jane"));
    kubectl.run("create rolebinding builders --clusterrole=edit --group=builders").await;
    kubectl.run(&format!("create configmap made {config}")).await;

    let ended = token(&key, &site, json!({"exp": now() - 60}));
    let config = kubectl.kubeconfig("ended", &shown(&ended));
    let refused = kubectl.fail(&format!("get configmaps {config}")).await;
    assert!(refused.contains("failed to refresh token"), "{refused}");
    let next = token(&key, &site, json!({"sub": "john", "groups": ["builders"]}));
    let answer = json!({"access_token": "a", "token_type": "Bearer", "expires_in": 600, "id_token": next});
    site.put("/token", &answer);
    assert_eq!(who(&kubectl, &config).await.0, "oidc:john");
    assert_eq!(kubectl.run(&format!("get configmaps -o name {config}")).await, "configmap/made\n");
}
