//! Who is asking, and may they: certificates, tokens, refusals, reviews.

use http::Method;
use serde_json::{Value, json};

use crate::support::server::{CONFIGMAPS, Setup, config_map};

on_every_store! {
    without_credentials_only_the_public_paths,
    forged_tokens,
    a_user_without_rights,
    masters_may_do_everything,
    a_certificate_names_its_user,
    reviews_of_access,
    reviews_of_tokens,
    refusals_come_before_anything_is_told,
    nobody_acts_as_somebody_else,
}

async fn without_credentials_only_the_public_paths(setup: Setup) {
    let server = setup.start().await;
    let nobody = server.anonymous();
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(nobody.get(path).await.status, 200, "{path}");
    }
    for path in [CONFIGMAPS, "/api", "/apis", "/metrics", "/openapi/v2", "/", "/nosuch", "/readyz/ping"] {
        nobody.get(path).await.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    }
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let answer = nobody.request(method, format!("{CONFIGMAPS}/x")).await;
        answer.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    }
    let watch = nobody.get(format!("{CONFIGMAPS}?watch=1")).await;
    watch.fails(401, "Unauthorized", "Unauthorized", Value::Null);
}

async fn forged_tokens(setup: Setup) {
    let server = setup.start().await;
    for token in
        ["forged", "root-token2", "root-toke", "ROOT-TOKEN", "alice", "root-token,root", &"x".repeat(8000)]
    {
        // Refused even where no credentials are needed, as upstream does.
        for path in [CONFIGMAPS, "/version"] {
            server.token(token).get(path).await.fails(401, "Unauthorized", "Unauthorized", Value::Null);
        }
    }
    for header in ["Basic cm9vdDpyb290", "Bearer", "Bearer ", "root-token", "Token root-token"] {
        let answer = server.anonymous().get(CONFIGMAPS).header("authorization", header).await;
        answer.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    }
    // Who the headers of a proxy name is nobody here.
    let answer = server.anonymous().get(CONFIGMAPS).header("x-remote-user", "root");
    answer.header("x-remote-group", "system:masters").await.fails(
        401,
        "Unauthorized",
        "Unauthorized",
        Value::Null,
    );
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

/// A proxy that has an administrator's credential and drops to its user by header must not act as the administrator.
async fn nobody_acts_as_somebody_else(setup: Setup) {
    let server = setup.start().await;
    let message = "impersonation is not supported by this server: a request with Impersonate headers (kubectl's --as, --as-group and --as-uid) is refused, as it would be made with all the rights of its own credential";
    let created = config_map("made-as-jane", json!({}));
    for header in ["impersonate-user", "Impersonate-Group", "IMPERSONATE-UID", "impersonate-extra-scopes"] {
        for (method, path) in [
            (Method::GET, CONFIGMAPS),
            (Method::POST, CONFIGMAPS),
            (Method::DELETE, "/api/v1/namespaces/t"),
            (Method::GET, "/api/v1/nosuch"),
            (Method::GET, "/apis"),
            (Method::GET, "/version"),
            (Method::GET, "/metrics"),
            (Method::GET, "/nosuch"),
        ] {
            let request = server.request(method, path).header(header, "jane").json(&created);
            request.await.fails(403, "Forbidden", message, json!({}));
        }
        for path in ["/livez", "/readyz", "/healthz", "/readyz/ping"] {
            assert_eq!(server.get(path).header(header, "jane").await.status, 200, "{path}");
        }
        let stranger = server.anonymous().get(CONFIGMAPS).header(header, "jane").await;
        stranger.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    }
    assert_eq!(server.get(CONFIGMAPS).await.ok()["items"], json!([]));
    assert_eq!(server.get("/api/v1/namespaces/t").await.ok()["status"]["phase"], "Active");
}
