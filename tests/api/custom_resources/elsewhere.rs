//! Items of other specifications that custom resources have to keep.

use http::Method;
use serde_json::{Value, json};

use super::{WIDGETS, widget, widgets, with};
use crate::support::client::Answer;
use crate::support::server::{Setup, TestServer, rv};

on_every_store! {
    wire_4_5_6_7_12_forms_of_custom_resources,
    wire_19_20_21_23_what_custom_objects_look_like,
    wire_52_53_61_documents_with_definitions,
    list_watch_40_75_77_79_84_writes_of_custom_objects,
    patch_apply_1_8_patches_of_custom_objects,
    patch_apply_29_50_51_58_applies_of_custom_objects,
    patch_apply_70_72_what_is_told_of_unknown_fields,
}

const JSON: &str = "application/json";
const APPLY: &str = "application/apply-patch+yaml";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

fn message(answer: &Answer) -> String {
    answer.failure()["message"].as_str().expect("a message").to_owned()
}

fn told(answer: &Answer) -> (u16, String) {
    (answer.status, message(answer))
}

async fn send(server: &TestServer, method: Method, path: &str, kind: &str, body: &str) -> Answer {
    server.request(method, path).body(kind, body.to_owned()).await
}

async fn wire_4_5_6_7_12_forms_of_custom_resources(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    server.post(WIDGETS, &widget("w", json!({"color": "red"}))).await.expect(201);
    let path = format!("{WIDGETS}/w");
    let get = |accept: &'static str| server.get(&path).accept(accept);
    assert_eq!(get("application/*").await.ok()["kind"], "Widget");
    let types = "only the following media types are accepted: application/json, application/yaml, \
                 application/vnd.kubernetes.protobuf";
    let html = get("text/html").await;
    assert_eq!(told(&html), (406, types.to_owned()));
    assert!(html.text().starts_with("{\n  \"kind\": \"Status\""), "{html:?}");
    // The Status itself is in protobuf.
    let refused = get(PROTOBUF).await;
    assert!(refused.status == 406 && refused.body.starts_with(b"k8s\0") && refused.text().contains(types));
    let either = get("application/vnd.kubernetes.protobuf,application/json").await;
    assert_eq!(either.header("content-type"), Some(JSON));
    let metadata =
        get("application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1").await;
    assert!(metadata.body.starts_with(b"k8s\0") && metadata.text().contains("PartialObjectMetadata"));
    let patched = send(&server, Method::PATCH, &path, JSON, "{}").await;
    let types = "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
    assert_eq!(told(&patched), (415, types.to_owned()));
}

async fn wire_19_20_21_23_what_custom_objects_look_like(setup: Setup) {
    let server = setup.start().await;
    let mut definition = widgets();
    let spec = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"]["number"] = json!({"type": "number"});
    spec["properties"]["whole"] = json!({"type": "integer"});
    with(&server, &definition).await;
    let empty = server.get(WIDGETS).await;
    let text = empty.text();
    assert!(
        text.starts_with(
            r#"{"apiVersion":"ex.io/v1","items":[],"kind":"WidgetList","metadata":{"continue":"""#
        ),
        "{text}"
    );
    server.post(WIDGETS, &widget("w", json!({"tags": []}))).await.expect(201);
    let list = server.get(WIDGETS).await.ok();
    let item = &list["items"][0];
    assert_eq!((&item["kind"], &item["apiVersion"]), (&json!("Widget"), &json!("ex.io/v1")));
    assert_eq!(item["spec"]["tags"], json!([]));
    for (sent, kept) in [("1.0", "1"), ("1e21", "1e+21"), ("0.0000001", "1e-7"), ("9.5", "9.5")] {
        let body = format!(r#"{{"spec":{{"number":{sent},"whole":9223372036854775807}}}}"#);
        let path = format!("{WIDGETS}/w");
        let patched = send(&server, Method::PATCH, &path, "application/merge-patch+json", &body).await;
        assert_eq!(patched.status, 200, "{patched:?}");
        for text in [patched.text(), server.get(&path).await.text()] {
            assert!(text.contains(&format!(r#""number":{kept},"#)), "{sent}: {text}");
            assert!(text.contains(r#""whole":9223372036854775807"#), "{text}");
        }
    }
}

async fn wire_52_53_61_documents_with_definitions(setup: Setup) {
    let server = setup.start().await;
    let groups = server.get("/apis").accept(AGGREGATED).await;
    assert_eq!(groups.header("content-type"), Some(AGGREGATED));
    let tag = groups.header("etag").expect("a tag").to_owned();
    let tag_is_sound = |tag: &str| {
        let digits = tag.trim_matches('"');
        digits.len() == 128 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    };
    assert!(tag_is_sound(&tag), "{tag}");
    let unchanged = server.get("/apis").accept(AGGREGATED).header("if-none-match", &tag).await;
    assert_eq!(unchanged.status, 304);

    let mut definition = widgets();
    let mut whole = json!({"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema":
        {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"spec": {"type": "string"}}}}});
    whole["subresources"] = definition["spec"]["versions"][0]["subresources"].clone();
    definition["spec"]["versions"].as_array_mut().expect("versions").push(whole);
    with(&server, &definition).await;
    let changed = server.get("/apis").accept(AGGREGATED).header("if-none-match", &tag).await;
    assert_eq!(changed.status, 200);
    assert!(changed.header("etag") != Some(&*tag) && tag_is_sound(changed.header("etag").expect("a tag")));
    let names = |list: &Value| -> Vec<String> {
        let groups = list["groups"].as_array().expect("groups").iter();
        groups.map(|group| group["name"].as_str().expect("a name").to_owned()).collect()
    };
    let listed = server.get("/apis").await.ok();
    assert_eq!(names(&listed).last().map(String::as_str), Some("ex.io"));

    let model = "io.ex.v2.Widget";
    let newer = &server.get("/openapi/v3/apis/ex.io/v2").await.ok()["components"]["schemas"][model];
    assert_eq!(newer["x-kubernetes-preserve-unknown-fields"], true);
    assert_eq!(newer["properties"]["spec"], json!({"type": "string"}));
    let older = &server.get("/openapi/v2").await.ok()["definitions"][model];
    let gvk = json!([{"group": "ex.io", "version": "v2", "kind": "Widget"}]);
    assert_eq!(*older, json!({"type": "object", "x-kubernetes-group-version-kind": gvk}));
}

async fn list_watch_40_75_77_79_84_writes_of_custom_objects(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let path = format!("{WIDGETS}/x");
    let missing = server.get(&path).await;
    let details = json!({"name": "x", "group": "ex.io", "kind": "widgets"});
    missing.fails(404, "NotFound", "widgets.ex.io \"x\" not found", details);
    let replaced = server.put(&path, &widget("x", json!({}))).await;
    assert_eq!(replaced.status, 404, "{replaced:?}");

    let created = server.post(WIDGETS, &widget("x", json!({"color": "red"}))).await.expect(201);
    let blind = server.put(&path, &widget("x", json!({}))).await;
    let why = "widgets.ex.io \"x\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update";
    assert_eq!(told(&blind), (422, why.to_owned()));
    assert_eq!(blind.failure()["details"]["kind"], "widgets");
    let mut other = created.clone();
    other["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000".into();
    let refused = server.put(&path, &other).await;
    assert!(
        refused.status == 409 && message(&refused).contains("Precondition failed: UID in precondition: ")
    );

    let mut meant = created.clone();
    meant["metadata"]["generation"] = 9.into();
    meant["metadata"]["creationTimestamp"] = "2001-01-01T00:00:00Z".into();
    let kept = server.put(&path, &meant).await.ok();
    for field in ["generation", "creationTimestamp"] {
        assert_eq!(kept["metadata"][field], created["metadata"][field]);
    }
    let finalizers = json!({"metadata": {"finalizers": ["ex.io/a"]}, "spec": {"color": "blue"}});
    assert_eq!(server.patch(&path, &finalizers).await.ok()["metadata"]["generation"], 2);
    let deleted = server.delete(&path).await.ok();
    let metadata = &deleted["metadata"];
    assert_eq!((&metadata["generation"], &metadata["deletionGracePeriodSeconds"]), (&json!(3), &json!(0)));
    assert!(metadata["deletionTimestamp"].is_string());
    assert_eq!(rv(&server.delete(&path).await.ok()), rv(&deleted));
}

async fn patch_apply_1_8_patches_of_custom_objects(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let path = format!("{WIDGETS}/w");
    let created = server.post(WIDGETS, &widget("w", json!({"color": "red"}))).await.expect(201);
    let with_charset = "application/merge-patch+json; charset=utf-8";
    let patched =
        send(&server, Method::PATCH, &path, with_charset, r#"{"spec":{"color":"blue"}}"#).await.ok();
    let of = |version: Value| json!({"metadata": {"resourceVersion": version}, "spec": {"color": "green"}});
    let stale = server.patch(&path, &of(created["metadata"]["resourceVersion"].clone())).await;
    assert!(stale.status == 409 && message(&stale).contains("the object has been modified"), "{stale:?}");
    server.patch(&path, &of(patched["metadata"]["resourceVersion"].clone())).await.ok();
    let none = server.patch(&path, &of(Value::Null)).await;
    assert!(none.status == 422 && message(&none).ends_with("must be specified for an update"), "{none:?}");
    let json_patch =
        r#"[{"op":"test","path":"/spec/color","value":"green"},{"op":"remove","path":"/spec/color"}]"#;
    let removed = send(&server, Method::PATCH, &path, "application/json-patch+json", json_patch).await.ok();
    assert_eq!(removed["spec"], json!({}));
}

async fn patch_apply_29_50_51_58_applies_of_custom_objects(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let created = server.post(WIDGETS, &widget("p", json!({"color": "red"}))).await;
    assert!(created.text().contains(r#""fieldsV1":{"f:spec":{".":{},"#), "{created:?}");
    let apply = async |path: String, manager: &str, body: Value| {
        let path = format!("{path}?fieldManager={manager}");
        send(&server, Method::PATCH, &path, APPLY, &body.to_string()).await
    };
    let path = format!("{WIDGETS}/w");
    let first = apply(path.clone(), "a", widget("w", json!({"ports": [{"port": 80}]}))).await.expect(201);
    let key = "k:{\"port\":80,\"protocol\":\"TCP\"}";
    let owned = |object: &Value, manager: &str, subresource: &str| {
        let entries = object["metadata"]["managedFields"].as_array().expect("managers").clone();
        let is = |entry: &&Value| {
            entry["manager"] == manager && entry["subresource"].as_str().unwrap_or_default() == subresource
        };
        entries.iter().find(is).map(|entry| entry["fieldsV1"].clone()).unwrap_or_default()
    };
    assert!(owned(&first, "a", "")["f:spec"]["f:ports"][key].is_object(), "{first}");
    let port = json!({"ports": [{"port": 80, "protocol": "TCP"}]});
    let second = apply(path.clone(), "b", widget("w", port)).await.ok();
    assert!(owned(&second, "b", "")["f:spec"]["f:ports"][key].is_object(), "{second}");
    assert!(owned(&second, "a", "")["f:spec"]["f:ports"][key].is_object(), "{second}");
    assert_eq!(second["spec"]["ports"], json!([{"port": 80, "protocol": "TCP"}]));

    let twice = json!({"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]});
    let twice = apply(path.clone(), "a", widget("w", twice)).await;
    let why = ".spec.ports: duplicate entries for key [port=80,protocol=\"TCP\"]";
    assert!(twice.status == 500 && message(&twice).contains(why), "{twice:?}");
    let mut finalizers = widget("w", json!({}));
    finalizers["metadata"]["finalizers"] = json!(["ex.io/x", "ex.io/x"]);
    let finalizers = apply(path.clone(), "a", finalizers).await;
    let why = ".metadata.finalizers: duplicate entries for key [=\"ex.io/x\"]";
    assert!(finalizers.status == 500 && message(&finalizers).contains(why), "{finalizers:?}");

    let status = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "status": {"ready": true},
        "metadata": {"name": "w", "labels": {"a": "b"}}});
    let applied = apply(format!("{path}/status"), "s", status).await.ok();
    assert_eq!((&applied["status"], &applied["metadata"]["labels"]), (&json!({"ready": true}), &Value::Null));
    assert_eq!(owned(&applied, "s", "status"), json!({"f:status": {"f:ready": {}}}));
}

async fn patch_apply_70_72_what_is_told_of_unknown_fields(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let path = format!("{WIDGETS}?fieldValidation=Strict");
    let body =
        r#"{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"bar":1,"bar":2}}"#;
    let repeated = message(&send(&server, Method::POST, &path, JSON, body).await);
    assert!(repeated.ends_with(r#"duplicate field "spec.bar", unknown field "spec.bar""#), "{repeated}");
    let body =
        r#"{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"foo":1,"name":"w"},"spec":{"bar":2}}"#;
    let both = message(&send(&server, Method::POST, &path, JSON, body).await);
    assert!(both.ends_with(r#"unknown field "metadata.foo", unknown field "spec.bar""#), "{both}");
    let body = "apiVersion: ex.io/v1\nkind: Widget\nmetadata:\n  name: w\nspec:\n  color: a\n  color: b\n";
    let yaml = message(&send(&server, Method::POST, &path, "application/yaml", body).await);
    assert!(yaml.contains(r#"line 7: key "color" already set in map"#), "{yaml}");
    // Nothing is unknown where everything is kept, but what is twice is twice.
    let body = r#"{"apiVersion":"ex.io/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"free":{"a":1,"a":2,"b":3}}}"#;
    let free = message(&send(&server, Method::POST, &path, JSON, body).await);
    assert!(free.ends_with(r#"duplicate field "spec.free.a""#), "{free}");
    assert_eq!(server.get(WIDGETS).await.ok()["items"], json!([]));
}
