//! Credentials and policies that nobody means well: refused or taken at their word, and nobody else notices.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rcgen::{CertificateParams, DnType, DnValue, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use serde_json::{Value, json};

use crate::support::client::{Client, Protocol};
use crate::support::database::Database;
use crate::support::server::{CONFIGMAPS, Setup, config_map};

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// A client with a certificate of the server's own CA, for this user.
fn certified(setup: &Setup, name: &str, groups: &[&str]) -> Client {
    let read = |name: &str| std::fs::read_to_string(setup.file("pki").join(name)).expect("a file");
    let key = KeyPair::from_pem(&read("ca.key")).expect("a key");
    let issuer = Issuer::from_ca_cert_pem(&read("ca.crt"), key).expect("a CA");
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, DnValue::Utf8String(name.to_owned()));
    for group in groups {
        params.distinguished_name.push(DnType::OrganizationName, DnValue::Utf8String((*group).to_owned()));
    }
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().expect("a key");
    let made = params.signed_by(&key, &issuer).expect("a certificate");
    let mut kubeconfig = setup.kubeconfig();
    let user = kubeconfig.auth_infos[0].auth_info.as_mut().expect("a user");
    user.client_certificate_data = Some(STANDARD.encode(made.pem()));
    user.client_key_data = Some(STANDARD.encode(key.serialize_pem()).into());
    Client::of_certificate(&kubeconfig, Protocol::Any)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_names_in_certificates_are_names() {
    let setup = Setup::new(Database::memory());
    let server = setup.start().await;
    let long = "x".repeat(8000);
    for name in [
        "<script>alert(1)</script>",
        "a\nb: c\r\n",
        "null\0byte",
        "\u{202e}nimda",
        "system:serviceaccount:t:robot",
        "{\"a\": \"b\"}",
        "a,O=system:masters",
        "%s%n%x",
        "../../etc/passwd",
        &long,
    ] {
        let odd = certified(&setup, name, &["o/u", ""]);
        let review = odd.post(WHO, &json!({})).await.expect(201);
        assert_eq!(review["status"]["userInfo"]["username"], name);
        let refused = odd.get(CONFIGMAPS).await;
        assert_eq!(refused.status, 403, "{name:?}");
        assert_eq!(refused.json()["reason"], "Forbidden");
    }
    // As upstream's group adder has it: whoever is named so does not count as authenticated.
    let anonymous = certified(&setup, "system:anonymous", &["o/u"]);
    assert_eq!(anonymous.post(WHO, &json!({})).await.status, 403);
    server.get(CONFIGMAPS).await.ok();
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_that_were_tampered_with_are_refused() {
    let setup = Setup::new(Database::memory());
    let server = setup.start().await;
    server
        .post("/api/v1/namespaces/t/serviceaccounts", &json!({"metadata": {"name": "robot"}}))
        .await
        .expect(201);
    let made = server.post("/api/v1/namespaces/t/serviceaccounts/robot/token", &json!({})).await.expect(201);
    let token = made["status"]["token"].as_str().expect("a token").to_owned();
    let status = async |token: &str| server.token(token).get(CONFIGMAPS).await.status;
    assert_eq!(status(&token).await, 403);
    for end in (1..token.len()).step_by(7) {
        assert_eq!(status(&token[..end]).await, 401, "cut at {end}");
    }
    for at in (0..token.len()).step_by(5) {
        let mut changed = token.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'Q' } else { b'A' };
        let changed = String::from_utf8(changed).expect("ASCII");
        // The last letter of a part also holds bits that are no part of it.
        let is_same = |part: (&str, &str)| URL_SAFE_NO_PAD.decode(part.0) == URL_SAFE_NO_PAD.decode(part.1);
        if !changed.split('.').zip(token.split('.')).all(is_same) {
            assert_eq!(status(&changed).await, 401, "changed at {at}");
        }
    }
    let claims = token.split('.').nth(1).expect("claims");
    for alg in ["none", "None", "HS256", "RS256", ""] {
        let header = URL_SAFE_NO_PAD.encode(json!({"alg": alg, "typ": "JWT"}).to_string());
        for signature in ["", "AAAA", token.rsplit('.').next().expect("a signature")] {
            assert_eq!(status(&format!("{header}.{claims}.{signature}")).await, 401, "{alg}");
        }
    }
    for length in [10_000, 100_000] {
        let refused = server.token(&format!("{token}{}", "A".repeat(length))).get(CONFIGMAPS).await.status;
        assert!([400, 401, 431].contains(&refused), "{refused}");
    }
    assert_eq!(status(&token).await, 403);
    server.stop().await;
}

/// If work or memory grew with the product of rules and bindings, or with the square of rules, this would take hours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn policies_of_tens_of_thousands_of_rules_cost_what_they_are() {
    let setup = Setup::new(Database::memory());
    let server = setup.start().await;
    server.post(CONFIGMAPS, &config_map("p7", json!({}))).await.expect(201);
    let rules = |prefix: &str, count: usize| -> Value {
        let rule = |n| json!({"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": [format!("{prefix}{n}")]});
        (0..count).map(rule).collect()
    };
    let role = json!({"metadata": {"name": "large"}, "rules": rules("p", 25_000)});
    server.post(format!("{RBAC}/namespaces/t/roles"), &role).await.expect(201);
    for number in 0..300 {
        let binding = json!({
            "metadata": {"name": format!("b{number}")},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "large"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
        });
        server.post(format!("{RBAC}/namespaces/t/rolebindings"), &binding).await.expect(201);
    }
    let alice = server.token("alice-token");
    alice.get(format!("{CONFIGMAPS}/p7")).await.ok();
    assert_eq!(alice.get(format!("{CONFIGMAPS}/q7")).await.status, 403);
    // What she may do is told as far as it fits.
    let question = json!({"spec": {"namespace": "t"}});
    let review =
        alice.post("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", &question).await.expect(201);
    assert_eq!(review["status"]["incomplete"], true);
    assert!(review["status"]["resourceRules"].as_array().expect("rules").len() > 1000);
    // She may make roles of what she has, if it can be compared.
    let maker = json!({"metadata": {"name": "maker"}, "rules": [
        {"verbs": ["create"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"]}]});
    server.post(format!("{RBAC}/namespaces/t/roles"), &maker).await.expect(201);
    let binding = json!({
        "metadata": {"name": "makers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "maker"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice"}],
    });
    server.post(format!("{RBAC}/namespaces/t/rolebindings"), &binding).await.expect(201);
    for (name, own, want) in
        [("few", rules("p", 10), 201), ("other", rules("q", 10), 403), ("many", rules("q", 25_000), 403)]
    {
        let role = json!({"metadata": {"name": name}, "rules": own});
        let answer = alice.post(format!("{RBAC}/namespaces/t/roles"), &role).await;
        assert_eq!(answer.status, want, "{name}: {}", answer.text());
    }
    // A role that consists of such ones has their rules.
    let parts = json!({"metadata": {"name": "whole"}, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"part": "of-whole"}}]}});
    server.post(format!("{RBAC}/clusterroles"), &parts).await.expect(201);
    let part =
        json!({"metadata": {"name": "part", "labels": {"part": "of-whole"}}, "rules": rules("p", 25_000)});
    server.post(format!("{RBAC}/clusterroles"), &part).await.expect(201);
    let whole = server.get(format!("{RBAC}/clusterroles/whole")).await.ok();
    assert_eq!(whole["rules"].as_array().expect("rules").len(), 25_000);
    // A second one would make it larger than an object may be; it is written all the same, and others are, too.
    let part =
        json!({"metadata": {"name": "part-2", "labels": {"part": "of-whole"}}, "rules": rules("r", 25_000)});
    server.post(format!("{RBAC}/clusterroles"), &part).await.expect(201);
    server.post(CONFIGMAPS, &config_map("others", json!({}))).await.expect(201);
    server.stop().await;
}
