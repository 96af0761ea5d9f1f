//! How custom resources look from outside: tables, selectable fields, status and scale, warnings, discovery, OpenAPI,
//! encodings.

use serde_json::{Value, json};

use super::{WIDGETS, WIDGETS_DEFINITION, change, widget, widgets, with};
use crate::support::client::Answer;
use crate::support::server::{Setup, TestServer, names};

on_every_store! {
    custom_resources_40_41_discovery_tells_of_custom_resources,
    custom_resources_42_deprecated_versions_warn,
    custom_resources_79_80_81_status_and_generation,
    custom_resources_82_scales_of_custom_resources,
    scales_have_tables_and_protobuf,
    custom_resources_83_84_tables_have_the_declared_columns,
    custom_resources_85_selectable_fields,
    custom_resources_94_95_documents_follow_the_definition,
    custom_resources_97_other_encodings_are_refused,
}

const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

fn in_version(definition: &mut Value, index: usize) -> &mut Value {
    &mut definition["spec"]["versions"][index]
}

fn warnings(answer: &Answer) -> String {
    answer.header("warning").unwrap_or_default().to_owned()
}

async fn custom_resources_40_41_discovery_tells_of_custom_resources(setup: Setup) {
    let server = setup.start().await;
    let mut definition = widgets();
    let first = definition["spec"]["versions"][0].clone();
    let more = ["v2beta1", "v2", "foo"].map(|name| {
        let mut version = first.clone();
        (version["name"], version["storage"]) = (name.into(), false.into());
        version
    });
    definition["spec"]["versions"].as_array_mut().expect("versions").extend(more);
    with(&server, &definition).await;

    let listed = server.get("/apis/ex.io/v1").await.ok();
    let verbs = json!(["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]);
    assert_eq!(names_of(&listed["resources"], "name"), ["widgets", "widgets/status", "widgets/scale"]);
    assert_eq!(listed["resources"][0]["verbs"], verbs);
    assert!(listed["resources"][0]["storageVersionHash"].is_string());
    let scale = &listed["resources"][2];
    assert_eq!(
        (&scale["group"], &scale["version"], &scale["kind"]),
        (&json!("autoscaling"), &json!("v1"), &json!("Scale"))
    );

    let group = server.get("/apis/ex.io").await.ok();
    assert_eq!(names_of(&group["versions"], "version"), ["v2", "v1", "v2beta1", "foo"]);
    assert_eq!(group["preferredVersion"]["version"], "v2");

    let all = server.get("/apis").accept(AGGREGATED).await.ok();
    let groups = all["items"].as_array().expect("groups");
    let own = groups.iter().find(|group| group["metadata"]["name"] == "ex.io").expect("the group");
    assert_eq!(names_of(&own["versions"], "version"), ["v2", "v1", "v2beta1", "foo"]);
    let resource = &own["versions"][1]["resources"][0];
    assert_eq!(resource["responseKind"], json!({"group": "ex.io", "version": "v1", "kind": "Widget"}));
    assert_eq!(names_of(&resource["subresources"], "subresource"), ["status", "scale"]);
}

fn names_of(list: &Value, member: &str) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.map(|item| item[member].as_str().unwrap_or_default().to_owned()).collect()
}

async fn custom_resources_42_deprecated_versions_warn(setup: Setup) {
    let server = setup.start().await;
    let mut definition = widgets();
    let first = definition["spec"]["versions"][0].clone();
    let more = [("v1beta3", true), ("v1beta2", true), ("v2", false)].map(|(name, served)| {
        let mut version = first.clone();
        (version["name"], version["storage"], version["served"]) = (name.into(), false.into(), served.into());
        version
    });
    *in_version(&mut definition, 0) = first;
    in_version(&mut definition, 0)["name"] = "v1alpha1".into();
    in_version(&mut definition, 0)["deprecated"] = true.into();
    definition["spec"]["versions"].as_array_mut().expect("versions").extend(more);
    with(&server, &definition).await;
    let path = "/apis/ex.io/v1alpha1/widgets";
    let want = "299 - \"ex.io/v1alpha1 Widget is deprecated; use ex.io/v1beta3 Widget\"";
    assert_eq!(warnings(&server.get(path).await), want);
    let one = "/apis/ex.io/v1alpha1/namespaces/d/widgets/none";
    assert_eq!(warnings(&server.get(one).await), want, "a failure says so too");
    assert_eq!(warnings(&server.get("/apis/ex.io/v1beta3/widgets").await), "");
    let changed = change(&server, WIDGETS_DEFINITION, |definition| {
        in_version(definition, 0)["deprecationWarning"] = "gone soon".into();
    });
    changed.await.ok();
    assert_eq!(warnings(&server.get(path).await), "299 - \"gone soon\"");
}

async fn custom_resources_79_80_81_status_and_generation(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let mut sent = widget("w", json!({"replicas": 1}));
    sent["status"] = json!({"ready": true});
    let created = server.post(WIDGETS, &sent).await.expect(201);
    assert!(created["status"].is_null(), "{created}");
    let path = format!("{WIDGETS}/w");
    let changed = change(&server, &path, |object| object["status"] = json!({"ready": true})).await.ok();
    assert!(changed["status"].is_null(), "{changed}");
    let status = format!("{path}/status");
    let changed = change(&server, &status, |object| {
        object["status"] = json!({"ready": true});
        object["spec"]["replicas"] = 7.into();
        object["metadata"]["labels"] = json!({"a": "b"});
    });
    let changed = changed.await.ok();
    assert_eq!((&changed["status"], &changed["spec"]), (&json!({"ready": true}), &json!({"replicas": 1})));
    assert!(changed["metadata"]["labels"].is_null(), "{changed}");
    assert_eq!(changed["metadata"]["generation"], 1);
    let removed = change(&server, &status, |object| {
        object.as_object_mut().expect("an object").remove("status");
    });
    assert!(removed.await.ok()["status"].is_null());
    let generation = |answer: Answer| answer.ok()["metadata"]["generation"].clone();
    let labelled = change(&server, &path, |object| object["metadata"]["labels"] = json!({"a": "b"})).await;
    assert_eq!(generation(labelled), 1);
    let scaled = change(&server, &path, |object| object["spec"]["replicas"] = 2.into()).await;
    assert_eq!(generation(scaled), 2);
    server.patch(format!("{path}/scale"), &json!({"spec": {"replicas": 3}})).await.ok();
    assert_eq!(generation(server.get(&path).await), 3);
}

async fn custom_resources_82_scales_of_custom_resources(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    server.post(WIDGETS, &widget("w", json!({"color": "red"}))).await.expect(201);
    let path = format!("{WIDGETS}/w/scale");
    let missing = server.get(&path).await;
    assert_eq!(
        (missing.status, missing.failure()["message"].as_str().unwrap_or_default()),
        (500, "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist")
    );
    let empty = server.patch(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(
        (empty.status, empty.failure()["message"].as_str().unwrap_or_default()),
        (400, "the spec replicas field \".spec.replicas\" cannot be empty")
    );
    let scale = |replicas: i64| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "w", "namespace": "d"},
            "spec": {"replicas": replicas}})
    };
    let scaled = server.put(&path, &scale(5)).await.ok();
    assert_eq!((&scaled["kind"], &scaled["spec"]["replicas"]), (&json!("Scale"), &json!(5)));
    assert_eq!(server.get(format!("{WIDGETS}/w")).await.ok()["spec"]["replicas"], 5);
    let refused = server.put(&path, &scale(-1)).await;
    let message = refused.failure()["message"].as_str().unwrap_or_default().to_owned();
    assert!(
        refused.status == 422
            && message.contains(".spec.replicas: Invalid value: -1: should be a non-negative integer"),
        "{message}"
    );
    let too_many = change(&server, format!("{WIDGETS}/w"), |object| {
        object["spec"]["replicas"] = 3_000_000_000i64.into();
    });
    let message = too_many.await.failure()["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains("should be less than or equal to 2147483647"), "{message}");
    assert_eq!(server.patch(&path, &json!({"spec": {"replicas": 6}})).await.ok()["spec"]["replicas"], 6);
}

async fn scales_have_tables_and_protobuf(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    server.post(WIDGETS, &widget("w", json!({"replicas": 3}))).await.expect(201);
    let path = format!("{WIDGETS}/w/scale");
    let table = server.get(&path).accept(TABLE).await.ok();
    assert_eq!(names_of(&table["columnDefinitions"], "name"), ["Name", "Desired", "Available", "Age"]);
    assert_eq!(names_of(&table["columnDefinitions"], "type"), ["string", "integer", "integer", "date"]);
    let row = &table["rows"][0];
    assert_eq!(row["cells"].as_array().expect("cells")[..3], [json!("w"), json!(3), json!(0)]);
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    // What a Scale leaves out has no cell, unlike the zero of a built-in kind.
    server.patch(&path, &json!({"spec": {"replicas": 0}})).await.ok();
    let table = server.get(format!("{path}?includeObject=Object")).accept(TABLE).await.ok();
    assert_eq!(table["rows"][0]["cells"][1], Value::Null);
    assert_eq!(table["rows"][0]["object"]["kind"], "Scale");
    let partial = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let partial = server.get(&path).accept(partial).await.ok();
    assert_eq!(
        (&partial["kind"], &partial["metadata"]["name"]),
        (&"PartialObjectMetadata".into(), &"w".into())
    );

    // The autoscaler's controller speaks protobuf to all scales.
    let scale = server.get(&path).accept(PROTOBUF).await;
    assert!(
        scale.status == 200 && scale.body.starts_with(b"k8s\0\x0a\x17\x0a\x0eautoscaling/v1\x12\x05Scale"),
        "{scale:?}"
    );
    let put = server.request(http::Method::PUT, &path).accept(PROTOBUF).body(PROTOBUF, scale.body.clone());
    assert_eq!(put.await.status, 200);
}

async fn table(server: &TestServer) -> Value {
    server.get(WIDGETS).accept(TABLE).await.ok()
}

async fn custom_resources_83_84_tables_have_the_declared_columns(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    assert_eq!(table(&server).await["rows"], json!([]));
    server.post(WIDGETS, &widget("w", json!({"color": "red", "free": {"x": "y"}}))).await.expect(201);
    let plain = table(&server).await;
    assert_eq!(names_of(&plain["columnDefinitions"], "name"), ["Name", "Age"]);
    assert_eq!(plain["rows"][0]["cells"][0], "w");

    let column = |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
    let columns = json!([
        column("Color", "string", ".spec.color"),
        column("Wrong", "integer", ".spec.color"),
        column("Missing", "string", ".spec.replicas"),
        column("Free", "string", ".spec.free"),
        column("When", "date", ".spec.color"),
    ]);
    let declare = |columns: Value| {
        change(&server, WIDGETS_DEFINITION, move |definition| {
            in_version(definition, 0)["additionalPrinterColumns"] = columns.clone();
        })
    };
    declare(columns).await.ok();
    let declared = table(&server).await;
    let headers = ["Name", "Color", "Wrong", "Missing", "Free", "When"];
    assert_eq!(names_of(&declared["columnDefinitions"], "name"), headers);
    assert_eq!(declared["rows"][0]["cells"], json!(["w", "red", null, null, r#"{"x":"y"}"#, "<invalid>"]));
    let broken = json!([
        column("Color", "string", ".spec.color"),
        column("Broken", "string", ".spec["),
        column("Last", "string", ".spec.color"),
    ]);
    declare(broken).await.ok();
    assert_eq!(names_of(&table(&server).await["columnDefinitions"], "name"), ["Name", "Color"]);
}

async fn custom_resources_85_selectable_fields(setup: Setup) {
    let server = setup.start().await;
    let mut definition = widgets();
    in_version(&mut definition, 0)["selectableFields"] =
        json!([{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.replicas"}]);
    with(&server, &definition).await;
    server.post(WIDGETS, &widget("a", json!({"color": "blue", "replicas": 3}))).await.expect(201);
    server.post(WIDGETS, &widget("b", json!({"color": "red"}))).await.expect(201);
    server.post(WIDGETS, &widget("c", json!({}))).await.expect(201);
    let selected = |selector: &'static str| {
        let path = format!("{WIDGETS}?fieldSelector={selector}");
        let server = &server;
        async move { names(&server.get(path).await.ok()) }
    };
    assert_eq!(selected("spec.color%3Dblue").await, ["a"]);
    assert_eq!(selected("spec.color%3D").await, ["c"]);
    assert_eq!(selected("spec.color!%3Dblue").await, ["b", "c"]);
    assert_eq!(selected("spec.replicas%3D3").await, ["a"]);
    let unknown = server.get(format!("{WIDGETS}?fieldSelector=spec.x%3D1")).await;
    let message = unknown.failure()["message"].as_str().unwrap_or_default().to_owned();
    assert!(unknown.status == 400 && message.contains("field label not supported: spec.x"), "{message}");

    let start = server.revision().await;
    let mut watch = server
        .watch(format!("{WIDGETS}?watch=1&resourceVersion={start}&fieldSelector=spec.color%3Dblue"))
        .await;
    server.patch(format!("{WIDGETS}/a"), &json!({"spec": {"color": "red"}})).await.ok();
    watch.expect_named("DELETED", "a").await;
    server.patch(format!("{WIDGETS}/b"), &json!({"spec": {"color": "blue"}})).await.ok();
    watch.expect_named("ADDED", "b").await;
    server.delete(format!("{WIDGETS}?fieldSelector=spec.color%3Dred")).await.ok();
    assert_eq!(names(&server.get(WIDGETS).await.ok()), ["b", "c"]);
}

async fn custom_resources_94_95_documents_follow_the_definition(setup: Setup) {
    let server = setup.start().await;
    assert_eq!(server.get("/openapi/v3/apis/ex.io/v1").await.status, 404);
    let mut definition = widgets();
    let color = json!({"type": "string", "description": "The color of it.", "nullable": true});
    in_version(&mut definition, 0)["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["color"] =
        color;
    with(&server, &definition).await;
    let document = server.get("/openapi/v3/apis/ex.io/v1").await.ok();
    let schema = &document["components"]["schemas"]["io.ex.v1.Widget"];
    assert_eq!(
        schema["x-kubernetes-group-version-kind"],
        json!([{"group": "ex.io", "kind": "Widget", "version": "v1"}])
    );
    let color = &schema["properties"]["spec"]["properties"]["color"];
    assert_eq!(*color, json!({"type": "string", "description": "The color of it.", "nullable": true}));
    for path in ["{name}", "{name}/status", "{name}/scale"] {
        let path = format!("/apis/ex.io/v1/namespaces/{{namespace}}/widgets/{path}");
        assert!(document["paths"][&path]["get"].is_object(), "{path}");
    }
    let url = async || {
        let index = server.get("/openapi/v3").await.json();
        index["paths"]["apis/ex.io/v1"]["serverRelativeURL"].as_str().map(str::to_owned)
    };
    let before = url().await.expect("an entry");
    let hashed = server.get(before.as_str()).await;
    assert_eq!(hashed.status, 200);
    let v2 = server.get("/openapi/v2").await.ok();
    let spec = &v2["definitions"]["io.ex.v1.Widget"]["properties"]["spec"]["properties"];
    assert_eq!(spec["color"], json!({"description": "The color of it."}), "Swagger has no word for null");
    assert_eq!(spec["free"], json!({"x-kubernetes-preserve-unknown-fields": true}));

    let changed = change(&server, WIDGETS_DEFINITION, |definition| {
        let schema = &mut in_version(definition, 0)["schema"]["openAPIV3Schema"];
        schema["properties"]["spec"]["properties"]["size"] = json!({"type": "integer"});
    });
    changed.await.ok();
    assert_ne!(url().await.expect("an entry"), before, "a changed schema has another hash");
    let document = server.get("/openapi/v3/apis/ex.io/v1").await.ok();
    let schema = &document["components"]["schemas"]["io.ex.v1.Widget"];
    assert_eq!(schema["properties"]["spec"]["properties"]["size"], json!({"type": "integer"}));
    server.delete(WIDGETS_DEFINITION).await.ok();
    while server.get(WIDGETS_DEFINITION).await.status != 404 {
        tokio::task::yield_now().await;
    }
    // What is served follows in a moment: no client waits for this write's answer.
    while url().await.is_some() {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.get("/openapi/v3/apis/ex.io/v1").await.status, 404);
}

async fn custom_resources_97_other_encodings_are_refused(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    server.post(WIDGETS, &widget("w", json!({}))).await.expect(201);
    let path = format!("{WIDGETS}/w");
    let strategic = "application/strategic-merge-patch+json";
    let refused = server.request(http::Method::PATCH, &path).body(strategic, "{}").await;
    assert_eq!(
        (refused.status, refused.failure()["message"].as_str().unwrap_or_default()),
        (
            415,
            "the body of the request was in an unknown format - accepted media types include: \
             application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
        )
    );
    assert_eq!(server.get(&path).accept(PROTOBUF).await.status, 406);
    assert_eq!(server.get(&path).accept("application/cbor").await.status, 406);
    let either = server.get(&path).accept("application/vnd.kubernetes.protobuf,application/json").await;
    assert_eq!(either.ok()["metadata"]["name"], "w");
    let metadata = format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
    let metadata = server.get(&path).accept(&metadata).await;
    assert!(metadata.status == 200 && metadata.text().starts_with("k8s\0"));
    let sent = server.request(http::Method::POST, WIDGETS).body(PROTOBUF, protobuf_widget()).await;
    let message = sent.failure()["message"].as_str().unwrap_or_default().to_owned();
    assert!(
        sent.status == 400
            && message.contains("Widget in version \"v1\" cannot be handled as a Widget: object *unstructured.Unstructured does not implement the protobuf marshalling interface"),
        "{message}"
    );
}

/// An envelope that says it holds a Widget.
fn protobuf_widget() -> Vec<u8> {
    let type_meta = [&b"\x0a\x08ex.io/v1"[..], b"\x12\x06Widget"].concat();
    [&b"k8s\0\x0a"[..], &[type_meta.len() as u8], &type_meta].concat()
}
