//! Clients that speak protobuf see what clients that speak JSON see.

use http::Method;
use rowplane::api::protobuf_messages::look;
use rowplane::cache::Range;
use rowplane::codec::protobuf::{Envelope, decode, encode};
use rowplane::protowire::Reader;
use rowplane::schema::builtin;
use rowplane::schema::names::{Gvk, Gvr};
use rowplane::tree::Map;
use serde_json::{Value, json};

use crate::support::client::{Answer, Request};
use crate::support::server::{CONFIGMAPS, Setup, config_map, deployment, rv};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
const METADATA_LIST: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

on_every_store! {
    a_write_and_what_it_answers,
    an_object_in_another_version,
    lists_and_pages,
    messages_are_dropped_when_no_list_reads_them,
    list_watch_63_watches,
    wire_42_frames_of_a_watch,
    a_watch_that_is_too_late,
    metadata_alone,
    reviews_and_scales,
    discovery,
    sets_of_managers_that_are_no_json_are_dropped,
    what_is_refused,
    limits_of_depth_and_size,
    what_has_no_such_form,
}

fn envelope(object: &Value) -> Vec<u8> {
    let object: Map = serde_json::from_value(object.clone()).expect("an object");
    let kind = builtin::kind(&Gvk::of(&object).expect("a kind and an apiVersion")).expect("a kind");
    Envelope::wrap(&kind.gvk, &encode(&kind, &object).expect("encodes"))
}

fn open(bytes: &[u8]) -> Value {
    let envelope = Envelope::parse(bytes).expect("an envelope");
    let mut object = decode(&builtin::kind(&envelope.gvk().expect("a name")).expect("a kind"), envelope.raw)
        .expect("decodes");
    object.insert("kind", envelope.kind.into());
    object.insert("apiVersion", envelope.api_version.into());
    serde_json::to_value(object).expect("JSON")
}

/// The type and the object of a watch event.
fn event(message: &[u8]) -> (String, Value) {
    let (mut kind, mut object) = (String::new(), Value::Null);
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag().expect("a tag") {
        let field = reader.bytes().expect("bytes");
        match tag.number() {
            1 => kind = String::from_utf8(field.to_vec()).expect("UTF-8"),
            _ => {
                let mut extension = Reader::new(field);
                extension.tag().expect("a tag");
                object = open(extension.bytes().expect("bytes"));
            }
        }
    }
    (kind, object)
}

trait InProtobuf: Sized {
    fn protobuf(self) -> Self;
    fn sending(self, object: &Value) -> Self;
}

impl InProtobuf for Request {
    fn protobuf(self) -> Self {
        self.accept(PROTOBUF)
    }

    fn sending(self, object: &Value) -> Self {
        self.body(PROTOBUF, envelope(object)).protobuf()
    }
}

#[track_caller]
fn expect(answer: &Answer, status: u16) -> Value {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some(PROTOBUF), "{answer:?}");
    open(&answer.body)
}

fn typed(mut object: Value, kind: &str, version: &str) -> Value {
    object["kind"] = kind.into();
    object["apiVersion"] = version.into();
    object
}

fn in_t(name: &str) -> Value {
    typed(config_map(name, json!({"k": "<v>"})), "ConfigMap", "v1")
}

async fn a_write_and_what_it_answers(setup: Setup) {
    let server = setup.start().await;
    let path = format!("{CONFIGMAPS}/a");
    let created = expect(&server.request(http::Method::POST, CONFIGMAPS).sending(&in_t("a")).await, 201);
    assert_eq!(server.get(&path).await.ok(), created);
    assert_eq!(expect(&server.get(&path).protobuf().await, 200), created);
    let mut changed = created.clone();
    changed["data"]["k"] = "w".into();
    let changed = expect(&server.request(http::Method::PUT, &path).sending(&changed).await, 200);
    assert_eq!(server.get(&path).await.ok(), changed);
    let stale = expect(&server.request(http::Method::PUT, &path).sending(&created).await, 409);
    assert_eq!((&stale["kind"], &stale["reason"]), (&json!("Status"), &json!("Conflict")));
    let dry =
        server.request(http::Method::POST, format!("{CONFIGMAPS}?dryRun=All")).sending(&in_t("b")).await;
    assert_eq!(expect(&dry, 201)["data"], json!({"k": "<v>"}));
    let other = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}});
    let kept = expect(&server.delete(&path).sending(&other).await, 409);
    assert_eq!(kept["code"], 409);
    let options = json!({"kind": "DeleteOptions", "apiVersion": "v1",
        "preconditions": {"uid": changed["metadata"]["uid"]}});
    let gone = expect(&server.delete(&path).sending(&options).await, 200);
    assert_eq!((&gone["status"], &gone["details"]["name"]), (&json!("Success"), &json!("a")));
    assert_eq!(expect(&server.get(&path).protobuf().await, 404)["reason"], "NotFound");
}

async fn an_object_in_another_version(setup: Setup) {
    let server = setup.start().await;
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "t", "name": "p"},
        "reason": "Ready", "action": "Started", "reportingComponent": "example.com/c", "reportingInstance": "c-1",
        "firstTimestamp": "2026-01-02T03:04:05Z", "eventTime": "2026-01-02T03:04:05.000006Z"});
    server.post("/api/v1/namespaces/t/events", &event).await.expect(201);
    for path in ["/api/v1/namespaces/t/events", "/apis/events.k8s.io/v1/namespaces/t/events"] {
        let printed = server.get(format!("{path}/e")).await.ok();
        let decoded = expect(&server.get(format!("{path}/e")).protobuf().await, 200);
        for (name, value) in printed.as_object().expect("an object") {
            assert_eq!(&decoded[name], value, "{path} {name}");
        }
        let list = expect(&server.get(path).protobuf().await, 200);
        assert_eq!(list["items"][0]["metadata"], printed["metadata"]);
    }
}

async fn lists_and_pages(setup: Setup) {
    let server = setup.start().await;
    let empty = expect(&server.get(CONFIGMAPS).protobuf().await, 200);
    let revision = server.revision().await.to_string();
    let metadata = json!({"resourceVersion": revision});
    assert_eq!(
        empty,
        json!({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": null})
    );
    // More than one chunk of a streamed body.
    for index in 0..40 {
        server.create(&format!("c{index:02}"), json!({"k": "x".repeat(8 << 10)})).await;
    }
    let printed = server.get(CONFIGMAPS).await.ok();
    for _ in 0..2 {
        assert_eq!(expect(&server.get(CONFIGMAPS).protobuf().await, 200), printed);
    }
    let page = expect(&server.get(format!("{CONFIGMAPS}?limit=30")).protobuf().await, 200);
    assert_eq!(page["metadata"]["remainingItemCount"], 10);
    let token = page["metadata"]["continue"].as_str().expect("a token");
    let rest = server.get(format!("{CONFIGMAPS}?limit=30&continue={token}")).protobuf().await;
    assert_eq!(expect(&rest, 200)["items"].as_array().map(Vec::len), Some(10));
    let exactly =
        format!("{CONFIGMAPS}?resourceVersion={}&resourceVersionMatch=Exact&limit=50", rv(&printed) - 1);
    assert_eq!(
        expect(&server.get(exactly).protobuf().await, 200)["items"].as_array().map(Vec::len),
        Some(39)
    );
}

/// A list and the writes after it leave messages in memory, until a whole period passes without a list.
async fn messages_are_dropped_when_no_list_reads_them(setup: Setup) {
    let server = setup.start().await;
    let config_maps = server.api.resources.get(&Gvr::fixed("v1", "configmaps")).expect("served").clone();
    let held = || {
        let objects = server.api.cache.any().objects(config_maps.id);
        objects.range(&Range::of(Some("t"))).map(|object| object.made_size()).collect::<Vec<_>>()
    };
    server.post(CONFIGMAPS, &config_map("a", json!({"k": "v"}))).await.expect(201);
    assert_eq!(held(), [0], "nobody reads protobuf yet");
    let listed = expect(&server.get(CONFIGMAPS).protobuf().await, 200);
    server.post(CONFIGMAPS, &config_map("b", json!({"k": "v"}))).await.expect(201);
    assert!(held().iter().all(|size| *size > 0), "{:?}", held());
    look(&server.api).await;
    assert!(held().iter().all(|size| *size > 0), "there was a list since the last look: {:?}", held());
    look(&server.api).await;
    assert_eq!(held(), [0, 0]);
    server.delete(format!("{CONFIGMAPS}/b")).await.expect(200);
    let again = expect(&server.get(CONFIGMAPS).protobuf().await, 200);
    assert_eq!(again["items"], listed["items"], "made again");
}

async fn list_watch_63_watches(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("a", json!({"k": "v"})).await;
    let query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let start = || server.get(format!("{CONFIGMAPS}?{query}")).protobuf().watch();
    let (mut one, mut other) = (start().await, start().await);
    let content_type = one.headers.get("content-type").map(|value| value.as_bytes());
    assert_eq!(content_type, Some(&b"application/vnd.kubernetes.protobuf;stream=watch"[..]));
    assert_eq!(event(&one.message().await), ("ADDED".to_owned(), created.clone()));
    let (kind, bookmark) = event(&one.message().await);
    assert_eq!(kind, "BOOKMARK");
    assert_eq!(bookmark["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    let changed = server.set("a", json!({"k": "w"})).await;
    server.remove("a").await;
    assert_eq!(event(&one.message().await), ("MODIFIED".to_owned(), changed));
    let (kind, deleted) = event(&one.message().await);
    assert_eq!((kind.as_str(), &deleted["metadata"]["name"]), ("DELETED", &json!("a")));
    assert!(rv(&deleted) > rv(&created));
    for _ in 0..3 {
        other.message().await;
    }
    assert_eq!(event(&other.message().await), ("DELETED".to_owned(), deleted));
}

async fn wire_42_frames_of_a_watch(setup: Setup) {
    let server = setup.start().await;
    server.create("a", json!({})).await;
    // Without the parameter that names a stream, and with it.
    for accept in [PROTOBUF, "application/vnd.kubernetes.protobuf;stream=watch"] {
        // One that ends: what is left in the end is whole frames.
        let path = format!("{CONFIGMAPS}?watch=1&resourceVersion=0&timeoutSeconds=1");
        let answer = server.get(path).accept(accept).await;
        assert_eq!(answer.header("content-type"), Some("application/vnd.kubernetes.protobuf;stream=watch"));
        let (length, message) = answer.body.split_at(4);
        assert_eq!(length, (message.len() as u32).to_be_bytes(), "one event");
        assert!(message.starts_with(b"\x0a\x05ADDED\x12"), "a WatchEvent without a prefix: {message:02x?}");
        let mut reader = Reader::new(message);
        reader.tag().expect("a tag");
        reader.bytes().expect("the type");
        reader.tag().expect("a tag");
        let extension = reader.bytes().expect("the object");
        assert!(reader.is_empty());
        let mut reader = Reader::new(extension);
        assert_eq!(reader.tag().expect("a tag").expect("a field").number(), 1);
        assert!(reader.bytes().expect("raw").starts_with(b"k8s\0"));
        assert!(reader.is_empty());
    }
}

async fn a_watch_that_is_too_late(setup: Setup) {
    let server = setup.start().await;
    let revision = server.revision().await;
    server.create("a", json!({})).await;
    server.compact(revision + 1).await;
    let mut watch =
        server.get(format!("{CONFIGMAPS}?watch=1&resourceVersion={revision}")).protobuf().watch().await;
    let (kind, status) = event(&watch.message().await);
    assert_eq!((kind.as_str(), &status["kind"], &status["code"]), ("ERROR", &json!("Status"), &json!(410)));
}

async fn metadata_alone(setup: Setup) {
    let server = setup.start().await;
    let created = server.create("a", json!({"k": "v"})).await;
    let partial = expect(&server.get(format!("{CONFIGMAPS}/a")).accept(METADATA).await, 200);
    let metadata = created["metadata"].clone();
    let want = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
    assert_eq!(partial, want);
    let list = expect(&server.get(CONFIGMAPS).accept(METADATA_LIST).await, 200);
    assert_eq!(
        (&list["kind"], &list["items"]),
        (&json!("PartialObjectMetadataList"), &json!([{"metadata": metadata}]))
    );
    let older =
        expect(&server.get(CONFIGMAPS).accept(&METADATA_LIST.replace("v=v1", "v=v1beta1")).await, 200);
    assert_eq!((&older["apiVersion"], &older["items"]), (&json!("meta.k8s.io/v1beta1"), &list["items"]));
    let mut watch =
        server.get(format!("{CONFIGMAPS}?watch=1&resourceVersion=0")).accept(METADATA).watch().await;
    assert_eq!(event(&watch.message().await), ("ADDED".to_owned(), want));
}

async fn reviews_and_scales(setup: Setup) {
    let server = setup.start().await;
    let review = json!({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = expect(&server.request(http::Method::POST, path).sending(&review).await, 201);
    assert_eq!(answer["status"]["allowed"], true);
    let path = "/apis/apps/v1/namespaces/t/deployments";
    let labels = json!({"app": "a"});
    let deployment = json!({"metadata": {"name": "d"}, "spec": {"replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    server.post(path, &deployment).await.expect(201);
    let mut scale = expect(&server.get(format!("{path}/d/scale")).protobuf().await, 200);
    assert_eq!((&scale["kind"], &scale["spec"]["replicas"]), (&json!("Scale"), &json!(2)));
    scale["spec"]["replicas"] = 5.into();
    let scaled = server.request(http::Method::PUT, format!("{path}/d/scale")).sending(&scale).await;
    assert_eq!(expect(&scaled, 200)["spec"]["replicas"], 5);
    assert_eq!(expect(&server.get(format!("{path}/d")).protobuf().await, 200)["spec"]["replicas"], 5);
}

async fn discovery(setup: Setup) {
    let server = setup.start().await;
    for path in ["/api", "/apis", "/apis/apps", "/api/v1", "/apis/apps/v1"] {
        let printed = server.get(path).await.ok();
        let decoded = expect(&server.get(path).protobuf().await, 200);
        assert_eq!(decoded["kind"], printed["kind"], "{path}");
        for list in ["groups", "resources", "versions"] {
            let length = |document: &Value| document[list].as_array().map(Vec::len);
            assert_eq!(length(&decoded), length(&printed), "{path} {list}");
        }
    }
}

async fn sets_of_managers_that_are_no_json_are_dropped(setup: Setup) {
    let server = setup.start().await;
    let with = |name: &str, data: Value, set: &str| {
        let mut object = in_t(name);
        object["data"] = data;
        object["metadata"]["managedFields"] = json!([{"manager": "mine", "operation": "Update", "apiVersion": "v1",
            "time": "2020-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": set}]);
        object
    };
    let owned = |object: &Value| {
        let managers = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        managers.into_iter().map(|mut manager| manager["fieldsV1"].take()).collect::<Vec<Value>>()
    };
    let write = async |method: Method, path: &str, object: &Value, status: u16| {
        expect(&server.request(method, path).sending(object).await, status)
    };
    for (at, set) in [r#"{"f:data":{"f:k":{}}}{"more":"data"}"#, "{", "x", " "].into_iter().enumerate() {
        let made = write(Method::POST, CONFIGMAPS, &with(&format!("empty-{at}"), json!({}), set), 201).await;
        assert_eq!(owned(&made), [] as [Value; 0], "{set}");
        let name = format!("full-{at}");
        let made = write(Method::POST, CONFIGMAPS, &with(&name, json!({"k": "v"}), set), 201).await;
        assert_eq!(owned(&made), [json!({"f:data": {".": {}, "f:k": {}}})], "{set}");
        let path = format!("{CONFIGMAPS}/{name}");
        let put = write(Method::PUT, &path, &with(&name, json!({"k": "w", "l": "v"}), set), 200).await;
        assert_eq!(owned(&put), [json!({"f:data": {".": {}, "f:k": {}, "f:l": {}}})], "{set}");
    }
}

async fn what_is_refused(setup: Setup) {
    let server = setup.start().await;
    let post = |body: &[u8]| server.request(http::Method::POST, CONFIGMAPS).body(PROTOBUF, body.to_vec());
    let why = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({})";
    post(b"{}")
        .await
        .bad_request(&format!("the object provided is unrecognized (must be of type ConfigMap): {why}"));
    post(b"k8s\0\x12\x02\x0a\x09")
        .await
        .bad_request("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF");
    let table = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
    let refused = server.get(CONFIGMAPS).accept(table).await;
    assert_eq!((refused.status, refused.header("content-type")), (406, Some("application/json")));
    let fallback = server.get(CONFIGMAPS).accept(&format!("{table},application/json")).await;
    assert_eq!(fallback.ok()["kind"], "ConfigMapList");
    let preferred = format!("application/json;q=0.5,{PROTOBUF}");
    expect(&server.get(CONFIGMAPS).accept(&preferred).await, 200);
    assert_eq!(server.get(CONFIGMAPS).accept("*/*").await.ok()["kind"], "ConfigMapList");
}

/// A body says little about what it would become, so what it becomes is limited too.
async fn limits_of_depth_and_size(setup: Setup) {
    let server = setup.start().await;
    let post = |path: &str, gvk: Gvk, raw: &[u8]| {
        let body = Envelope::wrap(&gvk, raw);
        server.request(http::Method::POST, path).body(PROTOBUF, body)
    };
    let wrap = |number: u8, inner: &[u8]| {
        let mut message = vec![number << 3 | 2];
        let mut length = inner.len();
        while length >= 0x80 {
            message.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        message.push(length as u8);
        message.extend_from_slice(inner);
        message
    };
    // A schema (field 28 of another is "not") of a definition's version.
    let mut schema = Vec::new();
    for _ in 0..10_000 {
        schema = [&[0xe2, 0x01], &wrap(0, &schema)[1..]].concat();
    }
    let version = wrap(4, &wrap(1, &schema));
    let definition = [wrap(1, &wrap(1, b"things.example.com")), wrap(2, &wrap(7, &version))].concat();
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let deep =
        post(definitions, Gvk::fixed("apiextensions.k8s.io/v1", "CustomResourceDefinition"), &definition)
            .await;
    assert_eq!(
        (deep.failure()["code"].clone(), deep.failure()["reason"].clone()),
        (400.into(), "BadRequest".into())
    );
    // A million containers in two bytes each would be a gigabyte of JSON.
    let containers = wrap(2, &wrap(2, b"").repeat(1_000_000));
    let large = post("/api/v1/namespaces/t/pods", Gvk::fixed("v1", "Pod"), &containers).await;
    assert_eq!(
        (large.failure()["code"].clone(), large.failure()["reason"].clone()),
        (400.into(), "BadRequest".into())
    );
    let data = wrap(1, &wrap(1, &vec![b'x'; 3 << 20]));
    let whole = post(CONFIGMAPS, Gvk::fixed("v1", "ConfigMap"), &data).await;
    let text = "Request entity too large: limit is 3145728";
    whole.fails(413, "RequestEntityTooLarge", text, Value::Null);
    assert_eq!(server.get("/readyz").await.text(), "ok");
}

/// An object that is not of its kind's types could not be listed in protobuf.
async fn what_has_no_such_form(setup: Setup) {
    let server = setup.start().await;
    let path = "/apis/apps/v1/namespaces/t/deployments";
    let misfit =
        "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32";
    let deployment = |replicas: Value| deployment("d", json!({"replicas": replicas}));
    let refused = server.post(path, &deployment("x".into())).await;
    refused.bad_request(&format!("Deployment in version \"v1\" cannot be handled as a Deployment: {misfit}"));
    server.post(path, &deployment(1.into())).await.expect(201);
    assert_eq!(server.put(format!("{path}/d"), &deployment("x".into())).await.status, 400);
    let patched = server.patch(format!("{path}/d"), &json!({"spec": {"replicas": "x"}})).await;
    let message = patched.failure()["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.contains(misfit), "{message}");
    assert_eq!(expect(&server.get(path).protobuf().await, 200)["items"][0]["spec"]["replicas"], 1);
}
