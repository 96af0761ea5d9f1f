//! Who is asking, and may they: certificates, tokens, refusals, reviews.

use http::Method;
use rowplane::auth::authn::Anonymous;
use serde_json::{Value, json};

use crate::support::client::{Answer, Request};
use crate::support::server::{CONFIGMAPS, Setup, config_map};

on_every_store! {
    auth_1_without_credentials_only_the_public_paths,
    auth_1_nobody_is_anonymous_if_that_is_switched_off,
    auth_2_forged_tokens,
    auth_3_what_is_no_bearer_token_is_no_credential,
    auth_5_a_good_certificate_wins_over_a_bad_token,
    a_user_without_rights,
    masters_may_do_everything,
    a_certificate_names_its_user,
    reviews_of_access,
    reviews_of_tokens,
    refusals_come_before_anything_is_told,
    auth_35_masters_act_as_somebody_else,
    auth_36_groups_without_a_user,
    auth_37_without_rights_nobody_acts_as_somebody_else,
}

async fn auth_1_without_credentials_only_the_public_paths(setup: Setup) {
    let server = setup.start().await;
    let nobody = server.anonymous();
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(nobody.get(path).await.status, 200, "{path}");
    }
    for path in ["/api", "/apis", "/metrics", "/openapi/v2", "/", "/nosuch", "/readyz/ping"] {
        let text = format!("forbidden: User \"system:anonymous\" cannot get path \"{path}\"");
        nobody.get(path).await.fails(403, "Forbidden", &text, json!({}));
    }
    for (method, verb) in [
        (Method::POST, "create"),
        (Method::PUT, "update"),
        (Method::PATCH, "patch"),
        (Method::DELETE, "delete"),
    ] {
        refused(&nobody.request(method, format!("{CONFIGMAPS}/x")).await, "system:anonymous", verb);
    }
    refused(&nobody.get(CONFIGMAPS).await, "system:anonymous", "list");
    refused(&nobody.get(format!("{CONFIGMAPS}?watch=1")).await, "system:anonymous", "watch");
}

/// Refused because this user may not do this with ConfigMaps.
#[track_caller]
fn refused(answer: &Answer, user: &str, verb: &str) {
    let failure = answer.failure();
    let text = failure["message"].as_str().expect("a message");
    let want = format!("User \"{user}\" cannot {verb} resource \"configmaps\"");
    assert!(failure["code"] == 403 && text.contains(&want), "{failure}");
}

async fn auth_1_nobody_is_anonymous_if_that_is_switched_off(mut setup: Setup) {
    setup.authentication.anonymous = Anonymous::Nowhere;
    let server = setup.start().await;
    for path in ["/version", "/api", "/healthz", CONFIGMAPS] {
        server.anonymous().get(path).await.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    }
}

async fn auth_2_forged_tokens(setup: Setup) {
    let server = setup.start().await;
    let jwt = "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMuY2x1c3Rlci5sb2NhbCJ9.";
    for token in [
        "forged",
        "root-token2",
        "root-toke",
        "ROOT-TOKEN",
        "alice",
        "root-token,root",
        &"x".repeat(8000),
        jwt,
    ] {
        // Refused even where no credentials are needed, as upstream does.
        for path in [CONFIGMAPS, "/version"] {
            let answer = server.token(token).get(path).await;
            answer.fails(401, "Unauthorized", "Unauthorized", Value::Null);
            assert_eq!(answer.header("www-authenticate"), None);
        }
    }
    // Who the headers of a proxy name is nobody here (9).
    let answer = server.anonymous().get(CONFIGMAPS).header("x-remote-user", "root");
    refused(&answer.header("x-remote-group", "system:masters").await, "system:anonymous", "list");
    let answer = server.token("alice-token").get(CONFIGMAPS).header("x-remote-user", "root");
    refused(&answer.header("x-remote-group", "system:masters").await, "alice", "list");
}

async fn auth_3_what_is_no_bearer_token_is_no_credential(setup: Setup) {
    let server = setup.start().await;
    let nobody = server.anonymous();
    for header in
        ["Basic cm9vdDpyb290", "Bearer", "Bearer ", "root-token", "Token root-token", "Bearer  root-token"]
    {
        let answer = nobody.get(CONFIGMAPS).header("authorization", header).await;
        refused(&answer, "system:anonymous", "list");
        let warning = answer.header("warning");
        let text = "299 - \"the provided Authorization header contains extra space before the bearer token, and is ignored\"";
        assert_eq!(warning, (header == "Bearer  root-token").then_some(text), "{header}");
    }
    for header in ["bearer root-token", "BEARER root-token", "Bearer root-token more"] {
        assert_eq!(nobody.get(CONFIGMAPS).header("authorization", header).await.status, 200, "{header}");
    }
}

async fn auth_5_a_good_certificate_wins_over_a_bad_token(setup: Setup) {
    let server = setup.start().await;
    let answer = server.get(CONFIGMAPS).header("authorization", "Bearer forged").await;
    assert_eq!(answer.status, 200);
}

async fn a_user_without_rights(setup: Setup) {
    let server = setup.start().await;
    server.create("x", json!({})).await;
    let alice = server.token("alice-token");
    let x = format!("{CONFIGMAPS}/x");
    let in_t = |verb: &str| {
        format!(
            "User \"alice\" cannot {verb} resource \"configmaps\" in API group \"\" in the namespace \"t\""
        )
    };
    let named = json!({"name": "x", "kind": "configmaps"});
    let unnamed = json!({"kind": "configmaps"});
    let object = config_map("x", json!({}));
    for (verb, answer) in [
        ("get", alice.get(&x).await),
        ("update", alice.put(&x, &object).await),
        ("patch", alice.patch(&x, &json!({})).await),
        ("delete", alice.delete(&x).await),
    ] {
        let text = format!("configmaps \"x\" is forbidden: {}", in_t(verb));
        answer.fails(403, "Forbidden", &text, named.clone());
    }
    for (verb, answer) in [
        ("list", alice.get(CONFIGMAPS).await),
        ("watch", alice.get(format!("{CONFIGMAPS}?watch=1")).await),
        ("create", alice.post(CONFIGMAPS, &object).await),
        ("deletecollection", alice.delete(CONFIGMAPS).await),
    ] {
        answer.fails(403, "Forbidden", &format!("configmaps is forbidden: {}", in_t(verb)), unnamed.clone());
    }
    let text = "nodes is forbidden: User \"alice\" cannot list resource \"nodes\" in API group \"\" at the cluster scope";
    alice.get("/api/v1/nodes").await.fails(403, "Forbidden", text, json!({"kind": "nodes"}));
    let text = "deployments.apps \"d\" is forbidden: User \"alice\" cannot patch resource \"deployments/status\" in API \
                group \"apps\" in the namespace \"t\"";
    let status = alice.patch("/apis/apps/v1/namespaces/t/deployments/d/status", &json!({})).await;
    status.fails(403, "Forbidden", text, json!({"name": "d", "group": "apps", "kind": "deployments"}));
    let text = "forbidden: User \"alice\" cannot get path \"/metrics\"";
    alice.get("/metrics").await.fails(403, "Forbidden", text, json!({}));
    assert_eq!(server.get(&x).await.status, 200);
}

async fn masters_may_do_everything(setup: Setup) {
    let server = setup.start().await;
    let root = server.token("root-token");
    root.post(CONFIGMAPS, &config_map("x", json!({}))).await.expect(201);
    assert_eq!(root.get("/metrics").await.status, 200);
    root.delete(format!("{CONFIGMAPS}/x")).await.ok();
}

async fn a_certificate_names_its_user(setup: Setup) {
    let server = setup.start().await;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let info = server.post(path, &json!({})).await.expect(201)["status"]["userInfo"].clone();
    let groups = info["groups"].as_array().expect("groups");
    assert!(
        groups.contains(&json!("system:masters")) && groups.contains(&json!("system:authenticated")),
        "{info}"
    );
    let root = server.token("root-token").post(path, &json!({})).await.expect(201);
    let want =
        json!({"username": "root", "uid": "u-2", "groups": ["system:masters", "system:authenticated"]});
    assert_eq!(root["status"]["userInfo"], want);
}

async fn reviews_of_access(setup: Setup) {
    let server = setup.start().await;
    let question =
        json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "t"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(server.post(path, &question).await.expect(201)["status"]["allowed"], true);
    let others = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    for (groups, allowed) in [(json!(["system:masters"]), true), (json!(["developers"]), false)] {
        let mut question = question.clone();
        question["spec"]["user"] = "somebody".into();
        question["spec"]["groups"] = groups;
        assert_eq!(server.post(others, &question).await.expect(201)["status"]["allowed"], allowed);
    }
    assert_eq!(server.get(path).await.status, 405, "they are asked and never stored");
    let text = "the server could not find the requested resource";
    for path in [&*format!("{path}/x"), "/api/v1/namespaces/t/bindings/x"] {
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
            server.request(method, path).await.fails(404, "NotFound", text, json!({}));
        }
    }
}

async fn reviews_of_tokens(setup: Setup) {
    let server = setup.start().await;
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let review = async |token: &str| {
        server.post(path, &json!({"spec": {"token": token}})).await.expect(201)["status"].clone()
    };
    let known = review("alice-token").await;
    assert_eq!((&known["authenticated"], &known["user"]["username"]), (&json!(true), &json!("alice")));
    assert_ne!(review("forged").await["authenticated"], true);
}

/// What is there or not is none of a stranger's business, nor is the form of the request.
async fn refusals_come_before_anything_is_told(setup: Setup) {
    let server = setup.start().await;
    let alice = server.token("alice-token");
    for path in [
        "/api/v1/namespaces/t/configmaps/none",
        "/api/v1/namespaces/none/configmaps",
        "/api/v1/nosuch",
        "/apis/nosuch/v1/things",
        "/nosuch",
        "/api/v1/namespaces/t/configmaps?limit=abc",
    ] {
        assert_eq!(alice.get(path).await.failure()["code"], 403, "{path}");
    }
    // What the resource does not do, or not there.
    for (method, path, verb) in [
        (Method::PUT, "/api/v1/namespaces/t/configmaps", "update"),
        (Method::POST, "/api/v1/namespaces/t/configmaps/x", "create"),
        (Method::DELETE, "/api/v1/configmaps", "deletecollection"),
        (Method::OPTIONS, "/api/v1/namespaces/t/configmaps", ""),
        (Method::GET, "/api/v1/configmaps/x", "get"),
        (Method::GET, "/api/v1/namespaces/t/nodes", "list"),
        (Method::GET, "/api/v1/namespaces/t/configmaps/x/nosuch", "get"),
        (Method::GET, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?watch=1", "watch"),
    ] {
        let refused = alice.request(method.clone(), path).await.failure();
        let text = refused["message"].as_str().expect("a message").to_owned();
        assert!(refused["code"] == 403 && text.contains(&format!("cannot {verb} resource")), "{text}");
        let masters = server.request(method, path).await.status;
        assert!(masters == 404 || masters == 405, "{path}: {masters}");
    }
    let malformed = alice.request(Method::POST, CONFIGMAPS).body("text/plain", "{").await;
    assert_eq!(malformed.failure()["code"], 403);
}

/// A proxy that has an administrator's credential and drops to its user by header acts as the user alone.
async fn auth_35_masters_act_as_somebody_else(setup: Setup) {
    let server = setup.start().await;
    let who = async |headers: &[(&'static str, &str)]| {
        let request = server.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &json!({}));
        // Jane may not even ask who she is, before there are roles; groups of masters may.
        let mut request = request.header("impersonate-group", "system:masters");
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.await.expect(201)["status"]["userInfo"].clone()
    };
    assert_eq!(
        who(&[("impersonate-user", "bob"), ("impersonate-group", "g"), ("impersonate-uid", "7")]).await,
        json!({"username": "bob", "uid": "7", "groups": ["system:masters", "g", "system:authenticated"]})
    );
    assert_eq!(
        who(&[("impersonate-user", "bob"), ("impersonate-extra-example.com%2fScopes", "a")]).await["extra"],
        json!({"example.com/scopes": ["a"]})
    );
    let bob = |request: Request| request.header("impersonate-user", "bob");
    refused(&bob(server.get(CONFIGMAPS)).await, "bob", "list");
    refused(&bob(server.post(CONFIGMAPS, &config_map("x", json!({})))).await, "bob", "create");
    let account = server.get(CONFIGMAPS).header("impersonate-user", "system:serviceaccount:t:default").await;
    refused(&account, "system:serviceaccount:t:default", "list");
    let answer = bob(server.get("/metrics")).await;
    let text = "forbidden: User \"bob\" cannot get path \"/metrics\"";
    answer.fails(403, "Forbidden", text, json!({}));
    assert_eq!(server.get(CONFIGMAPS).await.ok()["items"], json!([]));
}

async fn auth_36_groups_without_a_user(setup: Setup) {
    let server = setup.start().await;
    let answer = server.get(CONFIGMAPS).header("impersonate-group", "g").await;
    answer.bad_request(
        "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"g\"}, Extra:map[string][]string(nil)} without impersonating a user name",
    );
    let answer = server.get(CONFIGMAPS).header("impersonate-extra-a", "b").await;
    answer.bad_request(
        "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string(nil), Extra:map[string][]string{\"a\":[]string{\"b\"}}} without impersonating a user name",
    );
}

async fn auth_37_without_rights_nobody_acts_as_somebody_else(setup: Setup) {
    let server = setup.start().await;
    let alice = server.token("alice-token");
    let answer = alice.get("/api/v1/namespaces/t/pods").header("impersonate-user", "bob").await;
    let text = "pods is forbidden: User \"alice\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"t\"";
    answer.fails(403, "Forbidden", text, json!({"kind": "pods"}));
    let answer = server.anonymous().get(CONFIGMAPS).header("impersonate-user", "root").await;
    refused(&answer, "system:anonymous", "impersonate-on:user-info:list");
    server.get(CONFIGMAPS).header("impersonate-user", "bob").await;
    let metrics = server.get("/metrics").await.text();
    for labels in ["mode=\"\",decision=\"denied\"} 2", "mode=\"user-info\",decision=\"allowed\"} 1"] {
        let line = format!("apiserver_impersonation_attempts_total{{{labels}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    for (mode, decision) in [("user-info", "allowed"), ("user-info", "denied"), ("legacy", "denied")] {
        let labels = format!("mode=\"{mode}\",decision=\"{decision}\"");
        let line = format!("apiserver_impersonation_authorization_attempts_total{{{labels}}} 2\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
}
