//! Users and roles.

use rowplane_etcd::wire::Server;
use serde_json::{Value, json};

use crate::support::{post, post_as, refusal, server};

async fn token(server: &Server, name: &str) -> String {
    let answer = post(server, "auth/authenticate", json!({"name": name, "password": "pw"})).await;
    answer["token"].as_str().expect("a token").to_owned()
}

/// A server with users root and al, who may do everything with keys from a to before c.
async fn guarded() -> Server {
    let server = server();
    let refused = refusal(&server, "auth/enable", json!({}), "").await;
    assert_eq!(refused, (9, "etcdserver: root user does not exist".to_owned()));
    post(&server, "auth/user/add", json!({"name": "root", "password": "pw"})).await;
    let refused = refusal(&server, "auth/enable", json!({}), "").await;
    assert_eq!(refused, (9, "etcdserver: root user does not have root role".to_owned()));
    post(&server, "auth/user/grant", json!({"user": "root", "role": "root"})).await;
    post(&server, "auth/user/add", json!({"name": "al", "password": "pw"})).await;
    post(&server, "auth/role/add", json!({"name": "some"})).await;
    let perm = json!({"permType": "READWRITE", "key": "YQ==", "range_end": "Yw=="});
    post(&server, "auth/role/grant", json!({"name": "some", "perm": perm})).await;
    post(&server, "auth/user/grant", json!({"user": "al", "role": "some"})).await;
    post(&server, "kv/put", json!({"key": "eA=="})).await;
    post(&server, "auth/enable", json!({})).await;
    server
}

#[tokio::test]
async fn etcd_45_users_do_what_their_roles_permit() {
    let server = guarded().await;
    let al = token(&server, "al").await;
    let empty = (3, "etcdserver: user name is empty".to_owned());
    let denied = (7, "etcdserver: permission denied".to_owned());
    let (a, x) = (json!({"key": "YQ=="}), json!({"key": "eA=="}));
    assert_eq!(refusal(&server, "kv/range", a.clone(), "").await, empty);
    assert_eq!(post_as(&server, "kv/put", a.clone(), &al).await.0, 200);
    assert_eq!(post_as(&server, "kv/range", a.clone(), &format!("Bearer {al}")).await.0, 200);
    for path in ["kv/range", "kv/put", "kv/deleterange"] {
        assert_eq!(refusal(&server, path, x.clone(), &al).await, denied, "{path}");
    }
    let whole = json!({"key": "YQ==", "range_end": "ZA=="});
    assert_eq!(refusal(&server, "kv/range", whole, &al).await, denied);
    // The branch that is not taken counts, too.
    let txn = json!({"success": [{"request_range": a}], "failure": [{"request_put": x}]});
    assert_eq!(refusal(&server, "kv/txn", txn, &al).await, denied);
    for (path, body) in [
        ("kv/compaction", json!({"revision": 1})),
        ("auth/user/list", json!({})),
        ("auth/disable", json!({})),
        ("maintenance/hashkv", json!({})),
        ("cluster/member/add", json!({})),
    ] {
        assert_eq!(refusal(&server, path, body, &al).await, denied, "{path}");
    }
    let watch = json!({"create_request": {"key": "eA=="}});
    let (_, refused) = post_as_stream(&server, watch, &al).await;
    let reason = "rpc error: code = PermissionDenied desc = etcdserver: permission denied";
    assert_eq!((&refused["canceled"], &refused["cancel_reason"]), (&json!(true), &json!(reason)));
    let root = token(&server, "root").await;
    assert_eq!(post_as(&server, "kv/range", x, &root).await.0, 200);
}

/// The first answer of a watch.
async fn post_as_stream(server: &Server, body: Value, token: &str) -> (u16, Value) {
    use http_body_util::BodyExt as _;
    let response = crate::support::begin(server, "watch", &body.to_string(), token).await;
    let status = response.status().as_u16();
    let frame = response.into_body().frame().await.expect("a frame").expect("a frame");
    let line: Value = serde_json::from_slice(&frame.into_data().expect("data")).expect("JSON");
    (status, line["result"].clone())
}

#[tokio::test]
async fn etcd_45_tokens_end_with_a_change_of_users() {
    let server = guarded().await;
    let (al, root) = (token(&server, "al").await, token(&server, "root").await);
    let bad = refusal(&server, "auth/authenticate", json!({"name": "al", "password": "x"}), "").await;
    assert_eq!(bad, (3, "etcdserver: authentication failed, invalid user ID or password".to_owned()));
    let a = json!({"key": "YQ=="});
    let forged = refusal(&server, "kv/range", a.clone(), "x.y").await;
    assert_eq!(forged, (16, "etcdserver: invalid auth token".to_owned()));
    let (status, _) = post_as(&server, "auth/role/add", json!({"name": "other"}), &root).await;
    assert_eq!(status, 200);
    let old = refusal(&server, "kv/range", a.clone(), &al).await;
    assert_eq!(old, (3, "etcdserver: revision of auth store is old".to_owned()));
    let (al, root) = (token(&server, "al").await, token(&server, "root").await);
    assert_eq!(post_as(&server, "kv/range", a.clone(), &al).await.0, 200);
    assert_eq!(post_as(&server, "auth/disable", json!({}), &root).await.0, 200);
    assert_eq!(post_as(&server, "kv/range", a, "").await.0, 200);
}
