//! Tokens of issuers elsewhere (assertions 29, 30 and 32): a stand-in for one answers over HTTPS.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rowplane::auth::authentication_config;
use rowplane::auth::authn::DEFAULT_ISSUER;
use rowplane::auth::oidc::{Issuer, Mapping};
use rowplane::server::config::{SettingsFile, TokenWebhook};
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::server::{Setup, TestServer};
use crate::support::site::{CONFIGURATION, Site, key, now, token};

const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

async fn review(server: &TestServer, token: &str) -> Value {
    server.post(REVIEWS, &json!({"spec": {"token": token}})).await.expect(201)["status"].clone()
}

/// The status of a token once the issuer's keys are known.
pub async fn known(server: &TestServer, token: &str) -> Value {
    loop {
        let status = review(server, token).await;
        if status["error"] != "oidc: authenticator not initialized" {
            return status;
        }
        tokio::task::yield_now().await;
    }
}

pub fn issuer(site: &Site, mapping: Mapping) -> Issuer {
    Issuer {
        url: site.url(),
        discovery_url: None,
        authorities: site.certificate.clone().into_bytes(),
        audiences: vec!["me".to_owned()],
        algorithms: vec!["ES256".to_owned()],
        network: None,
        mapping,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_29_tokens_of_an_issuer() {
    let (site, good) = (Site::start().await, key());
    site.publish(&[&good]);
    let mut setup = Setup::new(Database::memory());
    let mapping = Mapping {
        username_claim: "sub".to_owned(),
        username_prefix: "oidc:".to_owned(),
        groups_claim: "groups".to_owned(),
        groups_prefix: "g:".to_owned(),
        required: vec![("hd".to_owned(), "example.com".to_owned())],
        ..Mapping::default()
    };
    setup.authentication.oidc = vec![issuer(&site, mapping)];
    let server = setup.start().await;
    let claims = json!({"hd": "example.com", "groups": ["a", "b"], "jti": "7"});
    let right = token(&good, &site, claims.clone());
    let want = json!({
        "username": "oidc:jane",
        "groups": ["g:a", "g:b", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": ["JTI=7"]},
    });
    assert_eq!(known(&server, &right).await["user"], want);
    assert_eq!(server.token(&right).get("/version").await.status, 200);
    let with = |key: &str, value: Value| {
        let mut claims = claims.clone();
        claims[key] = value;
        token(&good, &site, claims)
    };
    for (wrong, why) in [
        (token(&good, &site, json!({})), "oidc: required claim hd not present in ID token"),
        (with("exp", (now() - 60).into()), "oidc: verify token: oidc: token is expired"),
        (with("exp", now().into()), "oidc: verify token: oidc: token is expired"),
        (with("aud", "you".into()), "oidc: verify token: oidc: expected audience in [\"me\"] got [\"you\"]"),
        (
            with("nbf", (now() + 600).into()),
            "oidc: verify token: oidc: current time is before the nbf (not before) time",
        ),
        (
            token(&key(), &site, claims.clone()),
            "oidc: verify token: failed to verify signature: failed to verify id token signature",
        ),
        (with("iss", "https://elsewhere".into()), "invalid bearer token"),
    ] {
        assert_eq!(review(&server, &wrong).await, json!({"user": {}, "error": why}));
        assert_eq!(server.token(&wrong).get("/version").await.status, 401);
    }
    server.stop().await;
}

/// Groups may be elsewhere, signed by somebody else, for whoever has the token that tells where.
/// An issuer that cannot be reached when the server starts is asked again with the next token, without a pause.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_fetched_when_a_token_has_to_be_verified() {
    let (site, good) = (Site::start().await, key());
    let url = site.url();
    site.put(CONFIGURATION, &json!({"issuer": url, "jwks_uri": format!("{url}/keys")}));
    let mut setup = Setup::new(Database::memory());
    let mapping = Mapping { username_claim: "sub".to_owned(), ..Mapping::default() };
    setup.authentication.oidc = vec![issuer(&site, mapping)];
    let server = setup.start().await;
    let right = token(&good, &site, json!({}));
    let refused = known(&server, &right).await;
    let why = refused["error"].as_str().expect("a reason");
    assert!(why.contains("failed to verify signature: fetching keys"), "{why}");
    site.publish(&[&good]);
    assert_eq!(review(&server, &right).await["user"]["username"], "jane");
    let metrics = server.get("/metrics").await.text();
    let keys = "apiserver_authentication_jwt_authenticator_jwks_fetch_last_";
    for line in [
        "timestamp_seconds{result=\"failure\",jwt_issuer_hash=\"sha256:",
        "timestamp_seconds{result=\"success\",jwt_issuer_hash=\"sha256:",
        "key_set_info{jwt_issuer_hash=\"sha256:",
    ] {
        assert!(metrics.contains(&format!("{keys}{line}")), "{line}: {metrics}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_29_distributed_claims_are_followed_for_groups() {
    let (site, elsewhere) = (Site::start().await, Site::start().await);
    let (good, other) = (key(), key());
    site.publish(&[&good]);
    let mut setup = Setup::new(Database::memory());
    let mapping =
        Mapping { username_claim: "sub".to_owned(), groups_claim: "groups".to_owned(), ..Mapping::default() };
    let mut trusted = issuer(&site, mapping);
    trusted.authorities.extend_from_slice(elsewhere.certificate.as_bytes());
    setup.authentication.oidc = vec![trusted];
    let server = setup.start().await;
    let endpoint = format!("{}/groups", elsewhere.url());
    let tell = |jwt: String| {
        let place = "/groupsBearer let me in".to_owned();
        elsewhere.documents.lock().expect("a lock").insert(place, jwt);
    };
    let asking = |claims: Value| token(&good, &site, claims);
    let sources = json!({"s": {"endpoint": endpoint, "access_token": "let me in"}});
    let away = asking(json!({"_claim_names": {"groups": "s"}, "_claim_sources": sources}));
    tell(token(&other, &elsewhere, json!({"groups": ["a", "b"]})));
    let refused = known(&server, &away).await["error"].as_str().expect("an error").to_owned();
    let why = format!(
        "oidc: could not expand distributed claims: verifying untrusted issuer {} failed: ",
        elsewhere.url()
    );
    assert!(refused.starts_with(&why), "{refused}");
    elsewhere.publish(&[&other]);
    let groups = async |token: &str| review(&server, token).await["user"]["groups"].clone();
    assert_eq!(groups(&away).await, json!(["a", "b", "system:authenticated"]));
    // What the token itself says counts more, and what it does not name is not asked for.
    let own = asking(json!({"groups": ["own"], "_claim_names": {"groups": "s"}, "_claim_sources": sources}));
    assert_eq!(groups(&own).await, json!(["own", "system:authenticated"]));
    let unnamed = asking(json!({"_claim_names": {"roles": "s"}, "_claim_sources": sources}));
    assert_eq!(groups(&unnamed).await, json!(["system:authenticated"]));
    // Lies are refused.
    let error = async |claims: Value| {
        let status = review(&server, &asking(claims)).await;
        let error = status["error"].as_str().unwrap_or_else(|| panic!("{status}")).to_owned();
        error.strip_prefix("oidc: could not expand distributed claims: ").expect("its beginning").to_owned()
    };
    let named =
        |number: u64| json!({"_claim_names": {"groups": "s"}, "_claim_sources": sources, "n": number});
    assert_eq!(error(json!({"_claim_names": {"groups": "s"}})).await, "oidc: no claim sources");
    let missing = "id token _claim_names contained a source t missing in _claims_sources";
    assert_eq!(error(json!({"_claim_names": {"groups": "t"}, "_claim_sources": sources})).await, missing);
    tell(token(&key(), &elsewhere, json!({"groups": ["root"]})));
    let forged =
        "verify distributed claim token: failed to verify signature: failed to verify id token signature";
    assert_eq!(error(named(1)).await, forged);
    tell(token(&other, &elsewhere, json!({"aud": "you", "groups": ["root"]})));
    let audience = "verify distributed claim token: oidc: expected audience in [\"me\"] got [\"you\"]";
    assert_eq!(error(named(2)).await, audience);
    tell(token(&other, &elsewhere, json!({})));
    let empty =
        format!("jwt returned by distributed claim endpoint \"{endpoint}\" did not contain claim: groups");
    assert_eq!(error(named(3)).await, empty);
    server.stop().await;
}

/// A webhook knows tokens that nobody else knows (33).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_33_a_webhook_knows_tokens() {
    let site = Site::start().await;
    let mut setup = Setup::new(Database::memory());
    let kubeconfig = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "hook",
        "contexts": [{"name": "hook", "context": {"cluster": "hook", "user": ""}}],
        "clusters": [{"name": "hook", "cluster": {
            "server": format!("{}/review", site.url()),
            "certificate-authority-data": STANDARD.encode(&site.certificate),
        }}],
    });
    let config_file = setup.file("webhook.kubeconfig");
    std::fs::write(&config_file, kubeconfig.to_string()).expect("write");
    let cache_ttl = std::time::Duration::from_secs(600);
    setup.authentication.webhook = Some(TokenWebhook { config_file, version: "v1".to_owned(), cache_ttl });
    let server = setup.start().await;
    let answer = |status: Value| {
        site.put(
            "/review",
            &json!({"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "status": status}),
        );
    };
    // Nothing is there to answer yet; that is not remembered.
    let error = review(&server, "ours").await["error"].clone();
    assert_eq!(error, "the server could not find the requested resource");
    answer(json!({"authenticated": false, "error": "no such token"}));
    assert_eq!(review(&server, "ours").await["error"], "no such token");
    let user = json!({"username": "jane", "uid": "7", "groups": ["a"], "extra": {"k": ["v"]}});
    answer(json!({"authenticated": true, "user": user}));
    let known = review(&server, "ours").await;
    let want = json!({"username": "jane", "uid": "7", "groups": ["a", "system:authenticated"], "extra": {"k": ["v"]}});
    assert_eq!((&known["user"], &known["audiences"]), (&want, &json!([DEFAULT_ISSUER])));
    assert_eq!(server.token("ours").get("/version").await.status, 200);
    // What was answered is remembered, and tokens of the server's own are not asked about.
    answer(json!({"authenticated": false}));
    assert_eq!(review(&server, "ours").await, known);
    assert_eq!(review(&server, "theirs").await["error"], "invalid bearer token");
    assert_eq!(server.token("root-token").get("/version").await.status, 200);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_30_32_a_file_maps_claims_by_expressions() {
    let (site, good) = (Site::start().await, key());
    site.publish(&[&good]);
    let file = json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "anonymous": {"enabled": true, "conditions": [{"path": "/livez"}]},
        "jwt": [{
            "issuer": {"url": site.url(), "certificateAuthority": site.certificate, "audiences": ["me"]},
            "claimMappings": {
                "username": {"expression": "'user:' + claims.sub"},
                "groups": {"expression": "claims.roles.split(',')"},
            },
            "claimValidationRules": [{"expression": "claims.level >= 3", "message": "too low"}],
        }],
    });
    let own = [DEFAULT_ISSUER.to_owned()];
    let file = authentication_config::parse(file.to_string().as_bytes(), &own).expect("a file");
    let mut setup = Setup::new(Database::memory());
    setup.authentication.oidc = file.issuers;
    setup.authentication.anonymous = file.anonymous.expect("said");
    let server = setup.start().await;
    let right = token(&good, &site, json!({"roles": "a,b", "level": 3}));
    let user = json!({"username": "user:jane", "groups": ["a", "b", "system:authenticated"]});
    assert_eq!(known(&server, &right).await["user"], user);
    let low = token(&good, &site, json!({"roles": "a,b", "level": 2}));
    let why = "oidc: error evaluating claim validation expression: validation expression 'claims.level >= 3' failed: too low";
    assert_eq!(review(&server, &low).await["error"], why);
    assert_eq!(server.token(&low).get("/version").await.status, 401);
    // 32: nobody is anonymous but where the file lets him.
    for (path, status) in [("/livez", 200), ("/readyz", 401), ("/livez/ping", 401), ("/version", 401)] {
        assert_eq!(server.anonymous().get(path).await.status, status, "{path}");
    }
    server.stop().await;
}

/// 31: a file that changes is taken over without a restart, if it can be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_31_the_file_is_read_again() {
    let (site, good) = (Site::start().await, key());
    site.publish(&[&good]);
    let file = |prefix: &str, anonymous: bool| {
        let issuer =
            json!({"url": site.url(), "certificateAuthority": site.certificate, "audiences": ["me"]});
        json!({
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthenticationConfiguration",
            "anonymous": {"enabled": anonymous},
            "jwt": [{"issuer": issuer, "claimMappings": {"username": {"claim": "sub", "prefix": prefix}}}],
        })
        .to_string()
    };
    let own = [DEFAULT_ISSUER.to_owned()];
    let mut setup = Setup::new(Database::memory());
    let path = setup.file("authentication.yaml");
    std::fs::write(&path, file("a:", true)).expect("write");
    let (loaded, text) = authentication_config::load(&path, &own).expect("a file");
    setup.authentication.oidc = loaded.issuers;
    setup.authentication.file = Some(SettingsFile { path, text });
    let server = setup.start().await;
    let token = token(&good, &site, json!({}));
    let user = async || known(&server, &token).await["user"]["username"].clone();
    assert_eq!(user().await, "a:jane");
    for (text, want) in [
        (file("b:", true), "b:jane"),
        ("rubbish".to_owned(), "b:jane"),
        (file("c:", false), "b:jane"),
        (file("d:", true), "d:jane"),
        (json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration", "anonymous": {"enabled": true}}).to_string(), ""),
    ] {
        setup.replace("authentication.yaml", &text);
        server.reload_credentials().await;
        let status = review(&server, &token).await;
        match want {
            "" => assert_eq!(status["error"], "invalid bearer token"),
            want => assert_eq!(status["user"]["username"], want, "{text}"),
        }
    }
    let metrics = server.get("/metrics").await.text();
    let name = "apiserver_authentication_config_controller_automatic_reloads_total";
    for (status, count) in [("success", 3), ("failure", 2)] {
        let line = format!("{name}{{status=\"{status}\",apiserver_id_hash=\"\"}} {count}");
        assert!(metrics.contains(&line), "{line}: {metrics}");
    }
    server.stop().await;
}
