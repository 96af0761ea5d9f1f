//! Patches of mutating webhooks, their order, and second calls.

use serde_json::{Value, json};

use super::{MUTATING, configure, hook, in_memory, patch, requests, reviewed, told};
use crate::support::server::{CONFIGMAPS, config_map, deployment};
use crate::support::webhook::{Seen, WebhookServer};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";

/// A path, and the patch that is answered there.
type PathPatch = (&'static str, fn(&Seen) -> Value);

/// Answers with the patch that is the path's.
async fn patching(patches: &'static [PathPatch]) -> WebhookServer {
    WebhookServer::start(&[], move |seen| {
        let path = seen.path.split('?').next().expect("a path");
        let found = patches.iter().find(|(own, _)| *own == path);
        reviewed(seen, found.map_or(json!({}), |(_, operations)| patch(operations(seen))))
    })
    .await
}

/// 42, 43, 44, 45. What a patch may do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a42_a43_a44_a45_patches() {
    let server = in_memory().await;
    let web = patching(&[
        ("/container", |_| {
            json!([{"op": "add", "path": "/spec/template/spec/containers/-",
                "value": {"name": "side", "image": "s", "ports": [{"containerPort": 1}]}}])
        }),
        ("/unknown", |_| json!([{"op": "add", "path": "/nonsense", "value": {"a": 1}}])),
        ("/test", |_| json!([{"op": "test", "path": "/kind", "value": "Pod"}])),
        ("/name", |_| json!([{"op": "replace", "path": "/metadata/namespace", "value": "default"}])),
        ("/managers", |_| {
            json!([{"op": "add", "path": "/metadata/managedFields",
                "value": [{"manager": "x", "operation": "Bad"}]}])
        }),
        ("/owners", |_| {
            let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"});
            json!([{"op": "add", "path": "/metadata/ownerReferences", "value": [owner, owner]}])
        }),
    ])
    .await;
    let of = |path: &str, more: Value| {
        let rule = json!({"resources": ["deployments", "configmaps"]});
        json!([hook("h", web.client_config(path), rule, more)])
    };
    configure(&server, MUTATING, "m", of("/container", json!({}))).await;
    let made = server.post(DEPLOYMENTS, &deployment("d", json!({}))).await.expect(201);
    let side = &made["spec"]["template"]["spec"]["containers"][1];
    assert_eq!((&side["imagePullPolicy"], &side["ports"][0]["protocol"]), (&json!("Always"), &json!("TCP")));
    let only = async |path: &str, more: Value| {
        server.delete(format!("{MUTATING}/m")).await.ok();
        configure(&server, MUTATING, "m", of(path, more)).await;
    };
    only("/unknown", json!({})).await;
    assert_eq!(server.create("a", json!({})).await.get("nonsense"), None);
    for policy in ["Fail", "Ignore"] {
        only("/test", json!({"failurePolicy": policy})).await;
        let (code, text) = told(&server.post(CONFIGMAPS, &config_map("b", json!({}))).await.failure());
        assert!(code == 500 && text.starts_with("Internal error occurred: "), "{text}");
    }
    only("/name", json!({})).await;
    let refused = server.post(CONFIGMAPS, &config_map("b", json!({}))).await.failure();
    let text = "the namespace of the provided object does not match the namespace sent on the request";
    assert_eq!(told(&refused), (400, text.to_owned()));
    let deleted = server.delete(format!("{CONFIGMAPS}/a")).await.failure();
    let text = "Internal error occurred: admission webhook \"h.ex.io\" attempted to modify the object, which is not \
                supported for this operation";
    assert_eq!(told(&deleted), (500, text.to_owned()));
    only("/managers", json!({})).await;
    let made = server.post(CONFIGMAPS, &config_map("c", json!({"k": "v"}))).await;
    let warning = made.header("warning").expect("a warning").to_owned();
    assert!(
        warning.contains(".metadata.managedFields was in an invalid state after admission;"),
        "{warning}"
    );
    let made = made.expect(201);
    assert!(made["metadata"]["managedFields"].to_string().contains("f:data"), "{made}");
    only("/owners", json!({})).await;
    let made = server.post(CONFIGMAPS, &config_map("d", json!({}))).await;
    let warning = made.header("warning").expect("a warning").to_owned();
    assert!(warning.contains("contains duplicate entries after mutating admission happens"), "{warning}");
    assert_eq!(made.expect(201)["metadata"]["ownerReferences"].as_array().expect("owners").len(), 1);
}

/// Sets a member of `data`, which is there.
fn set(key: &str, value: &str) -> Value {
    json!([{"op": "add", "path": format!("/data/{key}"), "value": value}])
}

/// 46, 47, 48. The order of calls, and second calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a46_a47_a48_order_and_second_calls() {
    let server = in_memory().await;
    let web = patching(&[
        ("/a", |_| set("a", "1")),
        ("/b", |_| set("b", "1")),
        ("/true", |_| set("x", "true")),
        ("/false", |_| set("x", "false")),
        ("/late", |_| set("late", "1")),
    ])
    .await;
    let of = |name: &str, path: &str, again: bool| {
        let policy = if again { "IfNeeded" } else { "Never" };
        hook(name, web.client_config(path), json!({}), json!({"reinvocationPolicy": policy}))
    };
    let called = || -> Vec<String> {
        let seen = web.seen().into_iter();
        seen.map(|seen| seen.path.split('?').next().expect("a path").to_owned()).collect()
    };
    let mut number = 0;
    let mut written = async |configurations: &[(&str, Value)]| {
        for (name, hooks) in configurations {
            configure(&server, MUTATING, name, hooks.clone()).await;
        }
        number += 1;
        let made = server.create(&format!("o{number}"), json!({"k": "v"})).await;
        for (name, _) in configurations {
            server.delete(format!("{MUTATING}/{name}")).await.ok();
        }
        made["data"].clone()
    };
    // By configuration, then as listed, whatever was made first.
    written(&[
        ("z", json!([of("z", "/none", false)])),
        ("y", json!([of("b", "/none2", false), of("a", "/a", false)])),
    ])
    .await;
    assert_eq!(called(), ["/none2", "/a", "/none"]);
    written(&[("m", json!([of("a", "/a", true), of("b", "/b", true)]))]).await;
    assert_eq!(called(), ["/a", "/b", "/a"], "b's own change is no reason to call it again");
    written(&[("m", json!([of("a", "/a", false), of("b", "/b", true)]))]).await;
    assert_eq!(called(), ["/a", "/b"]);
    let data = written(&[("m", json!([of("a", "/true", true), of("b", "/false", true)]))]).await;
    assert_eq!(called(), ["/true", "/false", "/true", "/false"]);
    assert_eq!(data["x"], "false");
    written(&[("m", json!([of("a", "/none", true)]))]).await;
    assert_eq!(called(), ["/none"], "nothing has changed");
    // Nobody is called first in the second round.
    let mut late = of("late", "/late", true);
    late["matchConditions"] = json!([{"name": "c", "expression": "'b' in object.data"}]);
    written(&[("m", json!([late, of("b", "/b", true)]))]).await;
    assert_eq!(called(), ["/b"]);
    assert!(requests(&web).is_empty());
}
