//! Patches of mutating webhooks, their order, and second calls.

use serde_json::{Value, json};

use super::{MUTATING, VALIDATING, configure, hook, patch, requests, reviewed, told};
use crate::support::server::{CONFIGMAPS, Setup, config_map, deployment};
use crate::support::webhook::{Seen, WebhookServer};

on_every_store! {
    admission_42_43_44_45_patches,
    admission_42_webhooks_after_one_that_takes_the_kind_away,
    admission_42_patches_of_kind_and_version,
    a_new_name_is_for_new_objects_without_a_path,
    admission_46_47_48_order_and_second_calls,
}

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
async fn admission_42_43_44_45_patches(setup: Setup) {
    let server = setup.start().await;
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

/// A POST creates what the webhook has named; where the path has a name, another one is refused.
async fn a_new_name_is_for_new_objects_without_a_path(setup: Setup) {
    let server = setup.start().await;
    let rename = |_: &Seen| json!([{"op": "replace", "path": "/metadata/name", "value": "renamed"}]);
    let web = WebhookServer::start(&[], move |seen| reviewed(seen, patch(rename(seen)))).await;
    server.create("old", json!({})).await;
    let rule = json!({"resources": ["configmaps"]});
    configure(&server, MUTATING, "m", json!([hook("h", web.client_config("/"), rule, json!({}))])).await;
    let made = server.post(CONFIGMAPS, &config_map("new", json!({}))).await.expect(201);
    assert_eq!(made["metadata"]["name"], "renamed");
    for name in ["new", "old"] {
        web.seen();
        let path = format!("{CONFIGMAPS}/{name}?fieldManager=m");
        let applied =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": "v"}});
        let refused = server
            .request(http::Method::PATCH, path)
            .body("application/apply-patch+yaml", applied.to_string());
        let refused = refused.await.failure();
        let text = format!(
            "ConfigMap \"{name}\" is invalid: metadata.name: Invalid value: \"renamed\": field is immutable"
        );
        assert_eq!(told(&refused), (422, text));
        // Where other servers write, a refusal is judged again on the newest state.
        assert!(requests(&web).len() <= 2);
    }
    let kept = server.get(format!("{CONFIGMAPS}/renamed")).await.expect(200);
    assert_eq!(kept["metadata"]["uid"], made["metadata"]["uid"]);
}

/// What a patch has taken away is not there for the webhooks that follow, until one of them wants another version.
async fn admission_42_webhooks_after_one_that_takes_the_kind_away(setup: Setup) {
    let server = setup.start().await;
    let web = patching(&[
        ("/kind", |_| json!([{"op": "remove", "path": "/kind"}])),
        ("/both", |_| {
            json!([{"op": "replace", "path": "/kind", "value": null}, {"op": "remove", "path": "/apiVersion"}])
        }),
        ("/test", |_| json!([{"op": "test", "path": "/apiVersion", "value": "v1"}])),
        ("/label", |_| json!([{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}])),
    ])
    .await;
    let rule = json!({"resources": ["configmaps", "horizontalpodautoscalers"]});
    let only = |name: &str| json!({"matchConditions": [{"name": "n", "expression": format!("object.metadata.name == '{name}'")}]});
    let kindless = json!({"matchConditions": [{"name": "n", "expression": "!has(object.kind)"}]});
    let first = json!({"apiVersions": ["v1"], "resources": ["configmaps", "horizontalpodautoscalers"]});
    let second = json!({"apiVersions": ["v2"], "resources": ["horizontalpodautoscalers"]});
    let hooks = json!([
        hook("a", web.client_config("/kind"), first.clone(), only("kind")),
        hook("b", web.client_config("/both"), first.clone(), only("both")),
        hook("c", web.client_config("/both"), first.clone(), only("test")),
        hook("d", web.client_config("/kindless"), first.clone(), kindless),
        hook("e", web.client_config("/label"), first.clone(), json!({})),
        hook("f", web.client_config("/test"), first.clone(), only("test")),
        hook("g", web.client_config("/second"), second, json!({})),
        hook("h", web.client_config("/last"), first, json!({})),
    ]);
    configure(&server, MUTATING, "m", hooks).await;
    configure(
        &server,
        VALIDATING,
        "v",
        json!([hook("h", web.client_config("/validating"), rule, json!({}))]),
    )
    .await;
    // Path, kind and apiVersion of the object, and its label.
    let seen = |name: &str| -> Vec<(String, Value, Value, Value)> {
        let seen = web.seen().into_iter().filter(|seen| seen.body["request"]["name"] == name);
        let shown = seen.map(|seen| {
            let object = &seen.body["request"]["object"];
            let path = seen.path.split('?').next().expect("a path").to_owned();
            let member = |member: &str| object[member].clone();
            (path, member("kind"), member("apiVersion"), object["metadata"]["labels"]["a"].clone())
        });
        shown.collect()
    };
    let row = |path: &str, kind: Value, version: Value, label: Value| (path.to_owned(), kind, version, label);
    let (none, b) = (Value::Null, json!("b"));
    let (config_map_kind, v1) = (json!("ConfigMap"), json!("v1"));
    let made = server.create("kind", json!({})).await;
    assert_eq!((&made["kind"], &made["apiVersion"]), (&config_map_kind, &v1));
    assert_eq!(
        seen("kind"),
        [
            row("/kind", config_map_kind.clone(), v1.clone(), none.clone()),
            row("/kindless", none.clone(), v1.clone(), none.clone()),
            row("/label", none.clone(), v1.clone(), none.clone()),
            row("/last", none.clone(), v1.clone(), b.clone()),
            row("/validating", config_map_kind.clone(), v1.clone(), b.clone()),
        ]
    );
    server.create("both", json!({})).await;
    let both = seen("both");
    assert_eq!(both[1], row("/kindless", none.clone(), none.clone(), none.clone()));
    assert_eq!(both[4], row("/validating", config_map_kind, v1.clone(), b.clone()));
    // A patch is of what its webhook has seen.
    let refused = server.post(CONFIGMAPS, &config_map("test", json!({}))).await;
    assert_eq!(told(&refused.failure()).0, 500);
    web.seen();
    let scaler = json!({"metadata": {"name": "kind"}, "spec": {"maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}});
    server.post("/apis/autoscaling/v1/namespaces/t/horizontalpodautoscalers", &scaler).await.expect(201);
    let kinds = seen("kind").into_iter().map(|(path, kind, version, _)| (path, kind, version));
    let (scaler, group) = (json!("HorizontalPodAutoscaler"), json!("autoscaling/v1"));
    let expected = [
        ("/kind", scaler.clone(), group.clone()),
        ("/kindless", none.clone(), group.clone()),
        ("/label", none, group.clone()),
        ("/second", scaler.clone(), json!("autoscaling/v2")),
        ("/last", scaler.clone(), group.clone()),
        ("/validating", scaler, group),
    ];
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        expected.map(|(path, kind, version)| (path.to_owned(), kind, version))
    );
}

/// A patch that takes away what a built-in object says it is changes nothing; one that says something else is refused, unless it
/// names another version of the same kind.
async fn admission_42_patches_of_kind_and_version(setup: Setup) {
    let server = setup.start().await;
    let replace = |path: &str, value: Value| json!([{"op": "replace", "path": path, "value": value}]);
    let cases: &[(&str, Value, u16, &str)] = &[
        (
            "none",
            json!([{"op": "remove", "path": "/kind"}, {"op": "remove", "path": "/apiVersion"}]),
            201,
            "",
        ),
        ("null", replace("/kind", Value::Null), 201, ""),
        ("empty", replace("/apiVersion", json!("")), 201, ""),
        (
            "kind",
            replace("/kind", json!("Secret")),
            500,
            "converting (v1.Secret) to (core.ConfigMap): unknown conversion",
        ),
        (
            "unknown",
            replace("/kind", json!("Nonsense")),
            500,
            "Internal error occurred: no kind \"Nonsense\" is registered for version \"v1\" in scheme \
             \"pkg/runtime/scheme.go:111\"",
        ),
        (
            "version",
            replace("/apiVersion", json!("v9")),
            500,
            "Internal error occurred: no kind \"ConfigMap\" is registered for version \"v9\" in scheme \
             \"pkg/runtime/scheme.go:111\"",
        ),
        (
            "slashes",
            replace("/apiVersion", json!("a/b/c")),
            500,
            "Internal error occurred: unexpected GroupVersion string: a/b/c",
        ),
        (
            "number",
            replace("/kind", json!(1)),
            500,
            "Internal error occurred: couldn't get version/kind; json parse error: json: cannot unmarshal number into Go \
             struct field .kind of type string",
        ),
    ];
    let answers = cases.to_vec();
    let web = WebhookServer::start(&[], move |seen| {
        let name = seen.body["request"]["name"].as_str().unwrap_or_default();
        let found = answers.iter().find(|(own, ..)| *own == name);
        let of_others = || match name {
            "scaler" => json!([{"op": "replace", "path": "/apiVersion", "value": "autoscaling/v1"},
                {"op": "add", "path": "/spec/targetCPUUtilizationPercentage", "value": 31}]),
            "no-kind" => json!([{"op": "remove", "path": "/kind"}]),
            "other-kind" => json!([{"op": "replace", "path": "/kind", "value": "Other"}]),
            "no-version" => json!([{"op": "remove", "path": "/apiVersion"}]),
            "old-version" => json!([{"op": "replace", "path": "/apiVersion", "value": "ex.io/v0"}]),
            "next-version" => json!([{"op": "replace", "path": "/apiVersion", "value": "ex.io/v2"}]),
            _ => json!([]),
        };
        reviewed(seen, patch(found.map_or_else(of_others, |(_, operations, ..)| operations.clone())))
    })
    .await;
    let rule = json!({"resources": ["configmaps", "paints", "horizontalpodautoscalers"]});
    // Nobody may ignore this.
    let more = json!({"failurePolicy": "Ignore"});
    configure(&server, MUTATING, "m", json!([hook("h", web.client_config("/"), rule, more)])).await;
    for (name, _, code, text) in cases {
        let answer = server.post(CONFIGMAPS, &config_map(name, json!({"k": "v"}))).await;
        assert_eq!(answer.status, *code, "{name}: {answer:?}");
        match code {
            201 => {
                let made = answer.json();
                assert_eq!(
                    (&made["kind"], &made["apiVersion"]),
                    (&json!("ConfigMap"), &json!("v1")),
                    "{name}"
                );
            }
            _ => assert_eq!(told(&answer.failure()), (u64::from(*code), (*text).to_owned()), "{name}"),
        }
    }
    let scaler = json!({"metadata": {"name": "scaler"}, "spec": {"maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}});
    let scalers = "/apis/autoscaling/v2/namespaces/t/horizontalpodautoscalers";
    let made = server.post(scalers, &scaler).await.expect(201);
    assert_eq!(made["apiVersion"], "autoscaling/v2");
    let target = json!({"type": "Utilization", "averageUtilization": 31});
    assert_eq!(made["spec"]["metrics"][0]["resource"]["target"], target, "{made}");

    let version = |name: &str, stored: bool| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({"name": name, "served": true, "storage": stored, "schema": {"openAPIV3Schema": schema}})
    };
    let definition = json!({"metadata": {"name": "paints.ex.io"}, "spec": {"group": "ex.io", "scope": "Namespaced",
        "names": {"plural": "paints", "kind": "Paint"}, "versions": [version("v1", true), version("v2", false)]}});
    server.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let paints = "/apis/ex.io/v1/namespaces/t/paints";
    let paint = |name: &str| {
        server.post(paints, &json!({"apiVersion": "ex.io/v1", "kind": "Paint", "metadata": {"name": name}}))
    };
    assert_eq!(paint("next-version").await.expect(201)["apiVersion"], "ex.io/v1");
    let (code, text) = told(&paint("no-kind").await.failure());
    let start =
        "Internal error occurred: Object 'Kind' is missing in '{\"apiVersion\":\"ex.io/v1\",\"metadata\":{";
    assert!(code == 500 && text.starts_with(start), "{text}");
    let text = "Paint.ex.io \"other-kind\" is invalid: kind: Invalid value: \"Other\": must be Paint";
    assert_eq!(told(&paint("other-kind").await.failure()), (422, text.replace("Paint.ex", "Other.ex")));
    let text = "/, Kind=Paint is unstructured and is not suitable for converting to \"ex.io/v1\"";
    assert_eq!(told(&paint("no-version").await.failure()), (500, text.to_owned()));
    let text = "request to convert CR from an invalid group/version: ex.io/v0";
    assert_eq!(told(&paint("old-version").await.failure()), (500, text.to_owned()));
}

/// Sets a member of `data`, which is there.
fn set(key: &str, value: &str) -> Value {
    json!([{"op": "add", "path": format!("/data/{key}"), "value": value}])
}

/// 46, 47, 48. The order of calls, and second calls.
async fn admission_46_47_48_order_and_second_calls(setup: Setup) {
    let server = setup.start().await;
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
