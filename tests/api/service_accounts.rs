//! Tokens of service accounts: asked for, used, reviewed, ended (docs/spec/auth.md, assertions 12 to 28 and 34).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use rowplane::auth::pki::{Retired, TokenKeys};
use rowplane::wall_clock::WallClock;
use serde_json::{Value, json};

use crate::support::client::{Answer, Watch};
use crate::support::database::Database;
use crate::support::server::{Setup, TestServer};

on_every_store! {
    auth_17_a_token_says_whose_it_is,
    auth_18_lives_have_bounds,
    auth_19_what_a_token_cannot_be_bound_to,
    auth_20_21_a_token_ends_with_its_pod,
    auth_22_tokens_of_secrets_and_nodes,
    auth_23_tokens_in_pods_live_longer,
    auth_24_names_and_uids_have_to_fit,
    auth_25_26_audiences,
    auth_16_a_token_ends_with_its_account,
    auth_28_discovery,
}

on_both_databases! {
    auth_12_secrets_are_filled,
    auth_13_the_day_of_the_last_use_is_noted,
    auth_14_a_token_is_marked_invalid,
    auth_15_secrets_go_with_their_accounts,
    auth_34_namespaces_come_with_what_pods_need,
}

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const ACCOUNTS: &str = "/api/v1/namespaces/t/serviceaccounts";
const TOKENS: &str = "/api/v1/namespaces/t/serviceaccounts/robot/token";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";

/// A server with the account `robot`.
async fn start(setup: &Setup) -> TestServer {
    let server = setup.start().await;
    server.post(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.expect(201);
    server
}

async fn request(server: &TestServer, spec: Value) -> Answer {
    server.post(TOKENS, &json!({"spec": spec})).await
}

async fn token(server: &TestServer, spec: Value) -> String {
    text(&request(server, spec).await.expect(201)["status"]["token"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// The claims, or the header, of a token.
fn part(token: &str, index: usize) -> Value {
    let part = token.split('.').nth(index).expect("a part");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
}

/// What a TokenReview says of a token.
async fn review(server: &TestServer, token: &str, audiences: &[&str]) -> Value {
    let question = json!({"spec": {"token": token, "audiences": audiences}});
    server.post(REVIEWS, &question).await.expect(201)["status"].clone()
}

/// Whether the server knows the token, also where everybody may read.
async fn is_known(server: &TestServer, token: &str) -> bool {
    match server.token(token).get("/version").await.status {
        200 => true,
        401 => false,
        other => panic!("{other}"),
    }
}

async fn pod(server: &TestServer, name: &str, account: &str) -> Value {
    let spec = json!({"serviceAccountName": account, "nodeName": "n", "terminationGracePeriodSeconds": 30,
        "containers": [{"name": "c", "image": "i"}]});
    server
        .post("/api/v1/namespaces/t/pods", &json!({"metadata": {"name": name}, "spec": spec}))
        .await
        .expect(201)
}

async fn auth_17_a_token_says_whose_it_is(setup: Setup) {
    let server = start(&setup).await;
    let account = server.get(format!("{ACCOUNTS}/robot")).await.ok();
    let answer = request(&server, json!({})).await.expect(201);
    assert_eq!(
        (&answer["kind"], &answer["apiVersion"]),
        (&json!("TokenRequest"), &json!("authentication.k8s.io/v1"))
    );
    assert_eq!(
        answer["spec"],
        json!({"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": null})
    );
    assert_eq!(answer["metadata"]["name"], "robot");
    assert_eq!(answer["metadata"]["uid"], account["metadata"]["uid"]);
    let token = text(&answer["status"]["token"]);
    let claims = part(&token, 1);
    let number = |claim: &str| claims[claim].as_i64().expect("a number");
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!(ISSUER), &json!([ISSUER])));
    assert_eq!(claims["sub"], "system:serviceaccount:t:robot");
    assert_eq!((number("exp") - number("iat"), number("nbf")), (3600, number("iat")));
    let named =
        json!({"namespace": "t", "serviceaccount": {"name": "robot", "uid": account["metadata"]["uid"]}});
    assert_eq!(claims["kubernetes.io"], named);
    let keys = server.get("/openid/v1/jwks").await.ok();
    assert_eq!(part(&token, 0), json!({"alg": "ES256", "kid": keys["keys"][0]["kid"]}));
    let status = review(&server, &token, &[]).await;
    let user = json!({
        "username": "system:serviceaccount:t:robot",
        "uid": account["metadata"]["uid"],
        "groups": ["system:serviceaccounts", "system:serviceaccounts:t", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [format!("JTI={}", text(&claims["jti"]))]},
    });
    assert_eq!(status, json!({"authenticated": true, "user": user, "audiences": [ISSUER]}));
    // The account has no rights, but is somebody.
    let refused = server.token(&token).get(ACCOUNTS).await.failure();
    assert!(
        text(&refused["message"]).contains("User \"system:serviceaccount:t:robot\" cannot list"),
        "{refused}"
    );
    assert!(is_known(&server, &token).await);
    let (head, signature) = token.rsplit_once('.').expect("a signature");
    let swapped: String = signature.chars().rev().collect();
    assert!(!is_known(&server, &format!("{head}.{swapped}")).await);
    assert!(!is_known(&server, &format!("{head}.")).await);
}

async fn auth_18_lives_have_bounds(mut setup: Setup) {
    setup.authentication.service_accounts.max_token_expiration = Some(std::time::Duration::from_secs(7200));
    let server = start(&setup).await;
    for (seconds, why) in [
        (599_i64, "may not specify a duration less than 10 minutes"),
        ((1 << 32) + 1, "may not specify a duration larger than 2^32 seconds"),
    ] {
        let failure = request(&server, json!({"expirationSeconds": seconds})).await.failure();
        let want = format!(
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: {seconds}: {why}"
        );
        assert_eq!((&failure["code"], &failure["message"]), (&json!(422), &json!(want)));
    }
    let answer = request(&server, json!({"expirationSeconds": 7201})).await;
    let warning = "299 - \"requested expiration of 7201 seconds shortened to 7200 seconds\"";
    assert_eq!(answer.header("warning"), Some(warning));
    assert_eq!(answer.expect(201)["spec"]["expirationSeconds"], 7200);
}

async fn auth_19_what_a_token_cannot_be_bound_to(setup: Setup) {
    let server = start(&setup).await;
    pod(&server, "other", "other").await;
    pod(&server, "own", "robot").await;
    let bound = async |kind: &str, name: &str, uid: &str| {
        let reference = json!({"apiVersion": "v1", "kind": kind, "name": name, "uid": uid});
        request(&server, json!({"boundObjectRef": reference})).await.failure()
    };
    for ((kind, name, uid), code, message) in [
        (
            ("Pod", "other", ""),
            400,
            "cannot bind token for serviceaccount \"robot\" to pod running with different serviceaccount name.",
        ),
        (("ConfigMap", "x", ""), 400, "cannot bind token to object of type /v1, Kind=ConfigMap"),
        (
            ("Pod", "own", "another"),
            409,
            "Operation cannot be fulfilled on Pod \"own\": the UID in the bound object reference (another) does not match the UID in record. The object might have been deleted and then recreated",
        ),
        (("Pod", "none", ""), 404, "pods \"none\" not found"),
        (("Secret", "none", ""), 404, "secrets \"none\" not found"),
        (("Node", "none", ""), 404, "nodes \"none\" not found"),
    ] {
        let failure = bound(kind, name, uid).await;
        assert_eq!((&failure["code"], &failure["message"]), (&json!(code), &json!(message)));
    }
    let kind = "ValidatingWebhookConfiguration";
    let reference = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "name": "x"});
    let failure = request(&server, json!({"boundObjectRef": reference})).await.failure();
    let message = "cannot bind token to object of type admissionregistration.k8s.io/v1, \
                   Kind=ValidatingWebhookConfiguration (feature gate APIServerWebhookAuthenticationToken is disabled)";
    assert_eq!((&failure["code"], &failure["message"]), (&json!(400), &json!(message)));
}

fn to_pod(name: &str) -> Value {
    json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": name}})
}

async fn auth_20_21_a_token_ends_with_its_pod(mut setup: Setup) {
    let seconds = Arc::new(AtomicU64::new(0));
    let ahead = seconds.clone();
    setup.clock =
        WallClock::new(move || SystemTime::now() + Duration::from_secs(ahead.load(Ordering::SeqCst)));
    let server = start(&setup).await;
    let node = server.post("/api/v1/nodes", &json!({"metadata": {"name": "n"}})).await.expect(201);
    let made = pod(&server, "p", "robot").await;
    let token = token(&server, to_pod("p")).await;
    let extra = review(&server, &token, &[]).await["user"]["extra"].clone();
    let id = text(&part(&token, 1)["jti"]);
    let want = json!({
        "authentication.kubernetes.io/credential-id": [format!("JTI={id}")],
        "authentication.kubernetes.io/pod-name": ["p"],
        "authentication.kubernetes.io/pod-uid": [made["metadata"]["uid"]],
        "authentication.kubernetes.io/node-name": ["n"],
        "authentication.kubernetes.io/node-uid": [node["metadata"]["uid"]],
    });
    assert_eq!(extra, want);
    // While it terminates, which it may do for 30 seconds, and a minute longer, the Pod still needs its token.
    let pods = "/api/v1/namespaces/t/pods/p";
    server.delete(pods).await.ok();
    for (later, is_valid) in [(0, true), (80, true), (100, false), (0, true)] {
        seconds.store(later, Ordering::SeqCst);
        assert_eq!(is_known(&server, &token).await, is_valid, "{later} seconds later");
    }
    server.delete(format!("{pods}?gracePeriodSeconds=0")).await.ok();
    assert!(!is_known(&server, &token).await);
    let why = review(&server, &token, &[]).await;
    assert_eq!(why, json!({"user": {}, "error": "service account token has been invalidated"}));
    let again = pod(&server, "p", "robot").await;
    let (now, then) = (text(&again["metadata"]["uid"]), text(&made["metadata"]["uid"]));
    let error = format!("pod UID ({now}) does not match service account pod ref claim ({then})");
    assert_eq!(review(&server, &token, &[]).await["error"], error);
}

async fn auth_22_tokens_of_secrets_and_nodes(setup: Setup) {
    let server = start(&setup).await;
    for (kind, path, collection) in [
        ("Node", "/api/v1/nodes/b", "/api/v1/nodes"),
        ("Secret", "/api/v1/namespaces/t/secrets/b", "/api/v1/namespaces/t/secrets"),
    ] {
        let made = server.post(collection, &json!({"metadata": {"name": "b"}})).await.expect(201);
        let reference =
            json!({"apiVersion": "v1", "kind": kind, "name": "b", "uid": made["metadata"]["uid"]});
        let token = token(&server, json!({"boundObjectRef": reference})).await;
        assert!(is_known(&server, &token).await);
        server.delete(path).await.ok();
        assert!(!is_known(&server, &token).await, "{kind}");
    }
}

async fn auth_23_tokens_in_pods_live_longer(setup: Setup) {
    let server = start(&setup).await;
    pod(&server, "p", "robot").await;
    let life = async |audiences: &[&str], seconds: i64| {
        let mut spec = to_pod("p");
        spec["audiences"] = json!(audiences);
        spec["expirationSeconds"] = seconds.into();
        let answer = request(&server, spec).await.expect(201);
        assert_eq!(answer["spec"]["expirationSeconds"], seconds);
        let claims = part(&text(&answer["status"]["token"]), 1);
        let number = |claim: &Value| claim.as_i64().unwrap_or_default();
        let warning = number(&claims["kubernetes.io"]["warnafter"]);
        let life = number(&claims["exp"]) - number(&claims["iat"]);
        (life, if warning == 0 { 0 } else { warning - number(&claims["iat"]) })
    };
    assert_eq!(life(&[], 3607).await, (31_536_000, 3607));
    assert_eq!(life(&["vault"], 3607).await, (3607, 0));
    assert_eq!(life(&[], 3608).await, (3608, 0));
}

async fn auth_24_names_and_uids_have_to_fit(setup: Setup) {
    let server = start(&setup).await;
    let with = async |metadata: Value| server.post(TOKENS, &json!({"metadata": metadata})).await.failure();
    let uid = text(&server.get(format!("{ACCOUNTS}/robot")).await.ok()["metadata"]["uid"]);
    let failure = with(json!({"uid": "another"})).await;
    let want = format!(
        "Operation cannot be fulfilled on TokenRequest.authentication.k8s.io \"robot\": the UID in the token request (another) does not match the UID of the service account ({uid})"
    );
    assert_eq!((&failure["code"], &failure["message"]), (&json!(409), &json!(want)));
    let failure = with(json!({"name": "other"})).await;
    let want = "TokenRequest.authentication.k8s.io \"robot\" is invalid: metadata.name: Invalid value: \"other\": must match the service account name if specified";
    assert_eq!((&failure["code"], &failure["message"]), (&json!(422), &json!(want)));
    let none = server.post("/api/v1/namespaces/t/serviceaccounts/none/token", &json!({})).await.failure();
    assert_eq!(none["message"], "serviceaccounts \"none\" not found");
}

async fn auth_25_26_audiences(setup: Setup) {
    let server = start(&setup).await;
    let token = token(&server, json!({"audiences": ["x", "z"]})).await;
    assert!(!is_known(&server, &token).await);
    let status = review(&server, &token, &["y", "x"]).await;
    assert_eq!((&status["authenticated"], &status["audiences"]), (&json!(true), &json!(["x"])));
    let status = review(&server, &token, &["y"]).await;
    let error = "token audiences [\"x\" \"z\"] is invalid for the target audiences [\"y\"]";
    assert_eq!(status, json!({"user": {}, "error": error}));
    assert_eq!(review(&server, "garbage", &[]).await, json!({"user": {}, "error": "invalid bearer token"}));
    let empty = server.post(REVIEWS, &json!({"spec": {}})).await;
    empty.bad_request("token is required for TokenReview in authentication");
}

async fn auth_16_a_token_ends_with_its_account(setup: Setup) {
    let server = start(&setup).await;
    let token = token(&server, json!({})).await;
    assert!(is_known(&server, &token).await);
    let first = text(&server.delete(format!("{ACCOUNTS}/robot")).await.ok()["metadata"]["uid"]);
    assert!(!is_known(&server, &token).await);
    assert_eq!(review(&server, &token, &[]).await["error"], "serviceaccounts \"robot\" not found");
    let again = server.post(ACCOUNTS, &json!({"metadata": {"name": "robot"}})).await.expect(201);
    assert!(!is_known(&server, &token).await);
    let now = text(&again["metadata"]["uid"]);
    let error = format!("service account UID ({now}) does not match claim ({first})");
    assert_eq!(review(&server, &token, &[]).await["error"], error);
}

async fn auth_28_discovery(setup: Setup) {
    let server = start(&setup).await;
    let (configuration, keys) = ("/.well-known/openid-configuration", "/openid/v1/jwks");
    let answer = server.get(configuration).await;
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("public, max-age=3600"));
    let document = answer.json();
    assert_eq!(document["issuer"], ISSUER);
    assert_eq!(document["jwks_uri"], format!("https://192.0.2.7:{}/openid/v1/jwks", server.port()));
    assert_eq!(document["id_token_signing_alg_values_supported"], json!(["ES256"]));
    let answer = server.get(keys).await;
    assert_eq!(answer.header("content-type"), Some("application/jwk-set+json"));
    let key = answer.json()["keys"][0].clone();
    assert_eq!((&key["kty"], &key["crv"], &key["use"]), (&json!("EC"), &json!("P-256"), &json!("sig")));
    for path in [configuration, keys] {
        assert_eq!(server.anonymous().get(path).await.status, 403);
        assert_eq!(server.token("alice-token").get(path).await.status, 403);
    }
}

/// The Secret, once it holds a token.
async fn filled(server: &TestServer, name: &str) -> Value {
    let path = format!("/api/v1/namespaces/t/secrets?watch=1&fieldSelector=metadata.name%3D{name}");
    let mut watch = server.watch(path).await;
    loop {
        let event = watch.next().await.expect("an event");
        if event["object"]["data"]["token"].is_string() {
            return event["object"].clone();
        }
    }
}

async fn next(watch: &mut Watch) -> Value {
    watch.next().await.expect("an event")
}

fn token_secret(name: &str) -> Value {
    json!({"metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token"})
}

const SECRETS: &str = "/api/v1/namespaces/t/secrets";

fn decoded(value: &Value) -> String {
    String::from_utf8(STANDARD.decode(text(value)).expect("base64")).expect("text")
}

async fn auth_12_secrets_are_filled(mut setup: Setup) {
    setup.namespace_contents = true;
    let server = start(&setup).await;
    server.post(SECRETS, &token_secret("held")).await.expect(201);
    let secret = filled(&server, "held").await;
    assert_eq!(decoded(&secret["data"]["namespace"]), "t");
    assert!(decoded(&secret["data"]["ca.crt"]).starts_with("-----BEGIN CERTIFICATE-----\n"));
    let account = server.get(format!("{ACCOUNTS}/robot")).await.ok();
    let annotations = &secret["metadata"]["annotations"];
    assert_eq!(annotations["kubernetes.io/service-account.uid"], account["metadata"]["uid"]);
    let token = decoded(&secret["data"]["token"]);
    let status = review(&server, &token, &[]).await;
    assert_eq!(status["user"]["username"], "system:serviceaccount:t:robot");
    assert_eq!(status["user"].get("extra"), None);
    // A token that the Secret does not hold any more is none.
    server.patch(format!("{SECRETS}/held"), &json!({"data": {"token": null}})).await.ok();
    let again = decoded(&filled(&server, "held").await["data"]["token"]);
    assert!(is_known(&server, &again).await);
    let error = review(&server, &token, &[]).await["error"].clone();
    assert_eq!(error, "Token does not match server's copy");
}

async fn auth_14_a_token_is_marked_invalid(setup: Setup) {
    let server = start(&setup).await;
    server.post(SECRETS, &token_secret("held")).await.expect(201);
    let token = decoded(&filled(&server, "held").await["data"]["token"]);
    let mark = async |value: Value| {
        let labels = json!({"kubernetes.io/legacy-token-invalid-since": value});
        server.patch(format!("{SECRETS}/held"), &json!({"metadata": {"labels": labels}})).await.ok();
    };
    assert!(is_known(&server, &token).await);
    mark("2026-01-01".into()).await;
    assert!(!is_known(&server, &token).await);
    let error = review(&server, &token, &[]).await["error"].clone();
    assert_eq!(
        error,
        "the token in secret t/held for service account t/robot has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the 'kubernetes.io/legacy-token-invalid-since' label from the secret to temporarily allow use of this token"
    );
    mark(Value::Null).await;
    assert!(is_known(&server, &token).await);
    // An account that lists the Secret has it from an old controller.
    server.patch(format!("{ACCOUNTS}/robot"), &json!({"secrets": [{"name": "held"}]})).await.ok();
    let answer = server.token(&token).get("/version").await;
    let warning = "299 - \"Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.\"";
    assert_eq!(answer.header("warning"), Some(warning));
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("\nserviceaccount_legacy_auto_token_uses_total 1\n"), "{metrics}");
    for counted in
        ["legacy_tokens_total", "legacy_manual_token_uses_total", "invalid_legacy_auto_token_uses_total"]
    {
        let none = format!("\nserviceaccount_{counted} 0\n");
        assert!(
            metrics.contains(&format!("\nserviceaccount_{counted} ")) && !metrics.contains(&none),
            "{metrics}"
        );
    }
}

async fn auth_15_secrets_go_with_their_accounts(setup: Setup) {
    let server = start(&setup).await;
    server.post(SECRETS, &token_secret("first")).await.expect(201);
    let token = decoded(&filled(&server, "first").await["data"]["token"]);
    server.delete(format!("{SECRETS}/first")).await.ok();
    let status = review(&server, &token, &[]).await;
    assert_eq!(status["error"], "Token has been invalidated");
    server.post(SECRETS, &token_secret("second")).await.expect(201);
    filled(&server, "second").await;
    let mut watch = server.watch(format!("{SECRETS}?watch=1&fieldSelector=metadata.name%3Dsecond")).await;
    server.delete(format!("{ACCOUNTS}/robot")).await.ok();
    while next(&mut watch).await["type"] != "DELETED" {}
}

async fn auth_34_namespaces_come_with_what_pods_need(mut setup: Setup) {
    setup.namespace_contents = true;
    let server = setup.start_empty().await;
    let made = server.namespace("fresh").await;
    let (account, root_ca) = (
        "/api/v1/namespaces/fresh/serviceaccounts/default",
        "/api/v1/namespaces/fresh/configmaps/kube-root-ca.crt",
    );
    let map = server.get(root_ca).await.ok();
    let rv = |object: &Value| text(&object["metadata"]["resourceVersion"]).parse::<u64>().expect("a number");
    // In one transaction: nothing came in between.
    let default = server.get(account).await.ok();
    assert_eq!((rv(&default) + 1, rv(&map) + 1), (rv(&map), rv(&made)));
    assert!(text(&map["data"]["ca.crt"]).contains("BEGIN CERTIFICATE"));
    assert_eq!(map["metadata"]["managedFields"][0]["manager"], "kube-apiserver");
    for system in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        server.get(format!("/api/v1/namespaces/{system}/serviceaccounts/default")).await.ok();
        server.get(format!("/api/v1/namespaces/{system}/configmaps/kube-root-ca.crt")).await.ok();
    }
    // What is deleted or changed comes back.
    let mut watch = server
        .watch(format!("/api/v1/namespaces/fresh/configmaps?watch=1&resourceVersion={}", rv(&made)))
        .await;
    server.patch(root_ca, &json!({"data": {"ca.crt": "forged", "more": "x"}})).await.ok();
    while next(&mut watch).await["object"]["data"] != map["data"] {}
    server.delete(root_ca).await.ok();
    while next(&mut watch).await["type"] != "ADDED" {}
    let mut watch = server
        .watch(format!("/api/v1/namespaces/fresh/serviceaccounts?watch=1&resourceVersion={}", rv(&made)))
        .await;
    server.delete(account).await.ok();
    while next(&mut watch).await["type"] != "ADDED" {}
    // A namespace that goes away takes both with it.
    let ending = server.delete("/api/v1/namespaces/fresh").await.ok();
    let watching = format!(
        "/api/v1/namespaces?watch=1&fieldSelector=metadata.name%3Dfresh&resourceVersion={}",
        rv(&ending)
    );
    let mut watch = server.watch(watching).await;
    while next(&mut watch).await["type"] != "DELETED" {}
    // A dry run leaves nothing behind.
    server.post("/api/v1/namespaces?dryRun=All", &json!({"metadata": {"name": "dry"}})).await.expect(201);
    assert_eq!(server.get("/api/v1/namespaces/dry/configmaps").await.ok()["items"], json!([]));
}

async fn auth_13_the_day_of_the_last_use_is_noted(mut setup: Setup) {
    setup.cluster_authentication = true;
    let server = start(&setup).await;
    server.post(SECRETS, &token_secret("held")).await.expect(201);
    let token = decoded(&filled(&server, "held").await["data"]["token"]);
    let mut watch = server.watch(format!("{SECRETS}?watch=1&fieldSelector=metadata.name%3Dheld")).await;
    assert!(is_known(&server, &token).await);
    let label = |object: &Value| object["metadata"]["labels"]["kubernetes.io/legacy-token-last-used"].clone();
    let noted = loop {
        let object = next(&mut watch).await["object"].clone();
        if label(&object).is_string() {
            break object;
        }
    };
    let today = jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date().to_string();
    assert_eq!(label(&noted), today);
    // Another use on the same day writes nothing.
    let before = server.revision().await;
    assert!(is_known(&server, &token).await);
    server.post(SECRETS, &json!({"metadata": {"name": "after"}})).await.expect(201);
    assert_eq!(server.revision().await, before + 1);
    let tracking =
        "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking";
    assert_eq!(server.get(tracking).await.ok()["data"], json!({"since": today}));
}

/// Two servers with keys of their own believe each other's tokens, and both know at once when one has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_believe_each_others_tokens() {
    let one_setup = Setup::new(Database::postgres().await);
    let mut other_setup = Setup::new(Database::sqlite());
    other_setup.detour = Some(one_setup.database.datastore());
    let (one, other) = (start(&one_setup).await, other_setup.start_empty().await);
    let keys = async |server: &TestServer| server.get("/openid/v1/jwks").await.ok()["keys"].clone();
    let token = token(&one, json!({})).await;
    assert!(is_known(&one, &token).await && is_known(&other, &token).await);
    assert_eq!(part(&token, 0)["kid"], keys(&one).await[0]["kid"]);
    assert_ne!(keys(&one).await[0], keys(&other).await[0], "each signs with its own key");
    assert_eq!(keys(&other).await.as_array().map(Vec::len), Some(2), "and publishes that of the other");
    one.delete(format!("{ACCOUNTS}/robot")).await.ok();
    assert!(!is_known(&other, &token).await, "an answered write counts on every replica");
    assert!(!is_known(&one, &token).await);
    other.stop().await;
    one.stop().await;
}

/// 27: a new key signs on, what the old ones have signed stays valid on every server, until they are discarded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_27_keys_are_rotated_by_command() {
    let one_setup = Setup::new(Database::postgres().await);
    let mut other_setup = Setup::new(Database::sqlite());
    other_setup.detour = Some(one_setup.database.datastore());
    let (one, other) = (start(&one_setup).await, other_setup.start_empty().await);
    let (old, of_other) = (token(&one, json!({})).await, token(&other, json!({})).await);
    let known = async |token: &str| (is_known(&one, token).await, is_known(&other, token).await);
    TokenKeys::rotate(&one_setup.file("pki"), Retired::Keep).expect("a new key");
    one.reload_credentials().await;
    let new = token(&one, json!({})).await;
    assert_ne!(part(&old, 0)["kid"], part(&new, 0)["kid"]);
    for token in [&new, &old, &of_other] {
        assert_eq!(known(token).await, (true, true));
    }
    let keys = one.get("/openid/v1/jwks").await.ok();
    assert_eq!(keys["keys"].as_array().map(Vec::len), Some(3), "{keys}");
    TokenKeys::rotate(&one_setup.file("pki"), Retired::Discard).expect("a new key");
    one.reload_credentials().await;
    let newest = token(&one, json!({})).await;
    for (token, is_known) in [(&newest, true), (&new, false), (&old, false), (&of_other, true)] {
        assert_eq!(known(token).await, (is_known, is_known));
    }
    one.stop().await;
    let one = one_setup.start_empty().await;
    assert!(is_known(&one, &newest).await && !is_known(&one, &new).await);
    other.stop().await;
    one.stop().await;
}

/// 27: tokens of an issuer that is no longer the first one stay valid.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_27_issuers_follow_one_another() {
    let mut setup = Setup::new(Database::memory());
    let server = start(&setup).await;
    let old = token(&server, json!({})).await;
    server.stop().await;
    setup.authentication.service_accounts.issuers = vec!["https://new.example".to_owned(), ISSUER.to_owned()];
    let server = setup.start().await;
    let new = token(&server, json!({})).await;
    assert_eq!(part(&new, 1)["iss"], "https://new.example");
    assert_eq!(part(&old, 0)["kid"], part(&new, 0)["kid"]);
    assert!(is_known(&server, &old).await && is_known(&server, &new).await);
    server.stop().await;
    setup.authentication.service_accounts.issuers.pop();
    let server = setup.start().await;
    assert!(!is_known(&server, &old).await && is_known(&server, &new).await);
    server.stop().await;
}
