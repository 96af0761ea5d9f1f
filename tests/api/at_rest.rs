//! What is in the database: written in one form, read beside all others.

use http::Method;
use rowplane::codec::at_rest::{StorageMediaType, packed};
use rowplane::codec::protobuf::{Envelope, decode, encode};
use rowplane::revision::Revision;
use rowplane::schema::builtin;
use rowplane::schema::names::{GroupResource, Gvk};
use rowplane::storage::{Format, Stale};
use rowplane::tree::Map;
use serde_json::{Value, json};

use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, names, rv};

const MEDIA: [StorageMediaType; 3] =
    [StorageMediaType::Protobuf, StorageMediaType::Json, StorageMediaType::Yaml];
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/t/deployments";
const AUTOSCALERS: &str = "/apis/autoscaling/v1/namespaces/t/horizontalpodautoscalers";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

const CONFIGMAP: Gvk = Gvk::fixed("v1", "ConfigMap");

on_both_databases! {
    every_server_reads_what_every_other_has_written,
    values_are_in_the_form_of_the_flag,
    what_is_deep_or_large_is_read_out_of_yaml,
    what_is_packed_is_read_beside_what_is_not,
    clients_cannot_send_what_is_packed,
    what_is_not_of_its_types_is_read_and_deleted,
    a_patch_of_nothing_writes_nothing,
}

fn name(media: StorageMediaType) -> String {
    format!("{media:?}").to_lowercase()
}

/// Objects of some kinds, named after the form they are written in; and what the server answered, by path.
async fn written(server: &TestServer, media: StorageMediaType) -> Vec<(String, Value)> {
    let name = name(media);
    let labels = json!({"app": "a"});
    let deployment = json!({"metadata": {"name": name, "annotations": {"a": "<&>\u{2028}"}}, "spec": {
        "replicas": 2, "selector": {"matchLabels": labels}, "strategy": {"rollingUpdate": {"maxSurge": "25%"}},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i",
            "resources": {"limits": {"cpu": "0.5"}}}]}}}});
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": name});
    let autoscaler = json!({"metadata": {"name": name}, "spec": {"scaleTargetRef": target, "maxReplicas": 3,
        "targetCPUUtilizationPercentage": 70}});
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer", "default": 3},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
        "notes": {"type": "object", "additionalProperties": {"type": "string"}}}});
    let definition = json!({"metadata": {"name": format!("{name}s.example.com")}, "spec": {"group": "example.com",
        "scope": "Namespaced", "names": {"plural": format!("{name}s"), "kind": name},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let mut all = Vec::new();
    for (path, object) in [
        (CONFIGMAPS, config_map(&name, json!({"k": "v"}))),
        (DEPLOYMENTS, deployment),
        (AUTOSCALERS, autoscaler),
        (DEFINITIONS, definition),
    ] {
        let created = server.post(path, &object).await.expect(201);
        all.push((format!("{path}/{}", created["metadata"]["name"].as_str().expect("a name")), created));
    }
    all[0].1 = server.set(&name, json!({"k": "w"})).await;
    all
}

/// As JSON prints it.
fn opened(message: &[u8]) -> Value {
    let envelope = Envelope::parse(message).expect("an envelope");
    let mut object = decode(&builtin::kind(&envelope.gvk().expect("a name")).expect("a kind"), envelope.raw)
        .expect("decodes");
    object.insert("kind", envelope.kind.into());
    object.insert("apiVersion", envelope.api_version.into());
    serde_json::to_value(object).expect("JSON")
}

/// From memory, which a start has filled from the database, and from the table, past and present.
async fn reads(server: &TestServer, written: &[(String, Value)], start: u64, end: u64) {
    for (path, object) in written {
        assert_eq!(&server.get(path).await.ok(), object, "{path}");
        assert_eq!(&opened(&server.get(path).accept(PROTOBUF).await.body), object, "{path}");
    }
    let wanted: Vec<_> = written.iter().filter(|(path, _)| path.starts_with(CONFIGMAPS)).collect();
    let past = format!("{CONFIGMAPS}?resourceVersion={end}&resourceVersionMatch=Exact");
    for path in [CONFIGMAPS, &past] {
        let list = server.get(path).await.ok();
        assert_eq!(names(&list).len(), wanted.len(), "{path}");
        for (path, object) in &wanted {
            let items = list["items"].as_array().expect("items").iter();
            let found: Vec<_> =
                items.filter(|item| item["metadata"]["uid"] == object["metadata"]["uid"]).collect();
            assert_eq!(
                (&found[0]["metadata"], &found[0]["data"]),
                (&object["metadata"], &object["data"]),
                "{path}"
            );
        }
        let message = opened(&server.get(path).accept(PROTOBUF).await.body);
        assert_eq!(message["items"], list["items"], "{path}");
    }
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={start}")).await;
    for (_, object) in &wanted {
        let name = object["metadata"]["name"].as_str().expect("a name");
        assert_eq!(watch.expect_named("ADDED", name).await["data"], json!({"k": "v"}));
        assert_eq!(&watch.expect_named("MODIFIED", name).await, object);
    }
}

async fn every_server_reads_what_every_other_has_written(mut setup: Setup) {
    let server = setup.start().await;
    let start = server.revision().await;
    server.stop().await;
    let mut all = Vec::new();
    for media in MEDIA {
        setup.storage_media_type = media;
        let server = setup.start().await;
        all.extend(written(&server, media).await);
        server.stop().await;
    }
    let server = setup.start().await;
    let end = server.revision().await;
    server.create("later", json!({})).await;
    server.remove("later").await;
    server.stop().await;
    for media in MEDIA {
        setup.storage_media_type = media;
        let server = setup.start().await;
        reads(&server, &all, start, end).await;
        server.stop().await;
    }
    // The last one changes them all, and takes them away.
    let server = setup.start().await;
    for (path, object) in &all {
        let patch = json!({"metadata": {"labels": {"l": "1"}}});
        let mut want = object.clone();
        want["metadata"]["labels"]["l"] = "1".into();
        let changed = server.patch(path, &patch).await.ok();
        assert_eq!(changed["spec"], want["spec"], "{path}");
        assert_eq!(changed["metadata"]["labels"], want["metadata"]["labels"], "{path}");
        server.delete(path).await.ok();
        // The definition goes once it is known that it has no objects.
        while server.get(path).await.status != 404 {}
    }
}

async fn values_are_in_the_form_of_the_flag(mut setup: Setup) {
    let start =
        if setup.is_sqlite() { "hex(substr(value, 1, 4))" } else { "encode(substr(value, 1, 4), 'hex')" };
    for media in MEDIA {
        setup.storage_media_type = media;
        let server = setup.start().await;
        written(&server, media).await;
        server.stop().await;
        let name = name(media);
        let prefix = match media {
            StorageMediaType::Protobuf => "6b387300",
            StorageMediaType::Json => "7b226b69",
            StorageMediaType::Yaml => "61706956",
        };
        // The definition's names have rows of their own.
        let of_it = format!(
            "SELECT count(*) FROM objects WHERE name IN ('{name}', '{name}s.example.com') AND resource NOT IN \
             (SELECT id FROM resources WHERE api_group = 'internal.rowplane.dev')"
        );
        let in_form = format!("{of_it} AND lower({start}) = '{prefix}'");
        assert_eq!(setup.database.number(&of_it).await, 5, "{media:?}");
        assert_eq!(setup.database.number(&in_form).await, 5, "{media:?}");
        let versions = "stored_version IN ('v1', 'apps/v1', 'autoscaling/v2', 'apiextensions.k8s.io/v1')";
        assert_eq!(setup.database.number(&format!("{of_it} AND {versions}")).await, 5);
    }
}

/// A CustomResourceDefinition of 70 levels and more, and a ConfigMap of 130,000 keys: more than the parser takes by itself.
async fn what_is_deep_or_large_is_read_out_of_yaml(mut setup: Setup) {
    setup.storage_media_type = StorageMediaType::Yaml;
    let server = setup.start().await;
    let mut schema = json!({"type": "object"});
    for _ in 0..35 {
        schema = json!({"type": "object", "properties": {"p": schema}});
    }
    let definition = json!({"metadata": {"name": "deeps.example.com"}, "spec": {"group": "example.com",
        "scope": "Namespaced", "names": {"plural": "deeps", "kind": "Deep"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}});
    let definition = server.post(DEFINITIONS, &definition).await.expect(201);
    let data = (0..130_000).map(|n| (format!("k{n}"), Value::from(""))).collect();
    let large = server.create("large", Value::Object(data)).await;
    server.stop().await;
    let in_yaml =
        if setup.is_sqlite() { "hex(substr(value, 1, 4))" } else { "encode(substr(value, 1, 4), 'hex')" };
    let in_yaml = format!(
        "SELECT count(*) FROM objects WHERE name IN ('large', 'deeps.example.com') AND lower({in_yaml}) = '61706956'"
    );
    assert_eq!(setup.database.number(&in_yaml).await, 2);

    let server = setup.start().await;
    for (path, object, shown) in [(DEFINITIONS, definition, "spec"), (CONFIGMAPS, large, "data")] {
        let list = server.get(path).await.ok();
        let items = list["items"].as_array().expect("items");
        let found = items.iter().find(|item| item["metadata"]["uid"] == object["metadata"]["uid"]);
        assert!(found.is_some_and(|found| found[shown] == object[shown]), "{path}");
    }
}

/// Long messages are packed at rest; those of earlier releases are not, and stay so until they are written again.
async fn what_is_packed_is_read_beside_what_is_not(mut setup: Setup) {
    // A server that does not register does not know who else reads a PostgreSQL database, and packs nothing there.
    setup.register("rowplane-0");
    let packed = if setup.is_sqlite() {
        "instr(value, x'1a036c7a34') > 0"
    } else {
        "position('\\x1a036c7a34'::bytea in value) > 0"
    };
    let packed = |name: &str| format!("SELECT count(*) FROM objects WHERE name = '{name}' AND {packed}");
    let server = setup.start().await;
    let start = server.revision().await;
    let text = "again and ".repeat(300);
    let mut made = Vec::new();
    for (name, text) in [("new", &*text), ("old", &*text), ("short", "once")] {
        made.push(server.create(name, json!({"k": text})).await);
    }
    let end = server.revision().await;
    server.remove("short").await;
    server.stop().await;
    let database = &setup.database;
    assert_eq!(database.number(&packed("new")).await, 1);
    assert_eq!(database.number(&packed("short")).await, 0);
    let long = "SELECT count(*) FROM objects WHERE name IN ('new', 'old') AND length(value) > 1500";
    assert_eq!(database.number(long).await, 0);

    let mut old: Map = serde_json::from_value(made[1].clone()).expect("an object");
    old["metadata"].as_object_mut().expect("metadata").shift_remove("resourceVersion");
    let plain = encode(&builtin::kind(&CONFIGMAP).expect("a kind"), &old).expect("of its types");
    let plain = Envelope::wrap_at_rest(&CONFIGMAP, "", &plain);
    let plain: String = plain.iter().map(|byte| format!("{byte:02x}")).collect();
    let plain = if setup.is_sqlite() { format!("x'{plain}'") } else { format!("'\\x{plain}'::bytea") };
    database.execute(&format!("UPDATE objects SET value = {plain} WHERE name = 'old'")).await;
    assert_eq!(database.number(&packed("old")).await, 0);
    assert_eq!(database.number(long).await, 1);

    let server = setup.start().await;
    for (name, object) in ["new", "old"].into_iter().zip(&made) {
        let path = format!("{CONFIGMAPS}/{name}");
        assert_eq!(&server.get(&path).await.ok(), object);
        assert_eq!(&opened(&server.get(&path).accept(PROTOBUF).await.body), object);
    }
    let past = format!("{CONFIGMAPS}?resourceVersion={end}&resourceVersionMatch=Exact");
    let list = server.get(&past).await.ok();
    assert_eq!(names(&list), ["new", "old", "short"]);
    assert_eq!(opened(&server.get(&past).accept(PROTOBUF).await.body)["items"], list["items"]);
    let mut watch = server.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={start}")).await;
    for object in &made {
        assert_eq!(&watch.expect("ADDED").await, object);
    }
    // A migration has nothing to do, a write packs.
    let resource =
        server.backend.resource_ids(&[GroupResource::new("", "configmaps")]).await.expect("an id")[0];
    let through = Revision(server.revision().await);
    let stale = Stale { resource, api_version: "v1".into(), format: Format::Protobuf, through };
    assert_eq!(server.backend.stale_count(&stale).await.expect("a count"), 0);
    server.patch(format!("{CONFIGMAPS}/old"), &json!({"metadata": {"labels": {"l": "1"}}})).await.ok();
    assert_eq!(database.number(&packed("old")).await, 1);
}

/// As kube-apiserver has no such encoding.
async fn clients_cannot_send_what_is_packed(setup: Setup) {
    let server = setup.start().await;
    let sent = json!({"metadata": {"name": "a"}, "data": {"k": "again and ".repeat(300)}});
    let message = encode(
        &builtin::kind(&CONFIGMAP).expect("a kind"),
        &serde_json::from_value(sent).expect("an object"),
    )
    .expect("typed");
    let value = packed(&CONFIGMAP, &message).expect("it repeats itself");
    let refused = server.request(Method::POST, CONFIGMAPS).body(PROTOBUF, value).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.text().contains("unknown content encoding"), "{refused:?}");
    let sent = Envelope::wrap(&CONFIGMAP, &message);
    server.request(Method::POST, CONFIGMAPS).body(PROTOBUF, sent).await.expect(201);
}

/// As a release that did not know the types may have left it.
async fn what_is_not_of_its_types_is_read_and_deleted(setup: Setup) {
    let server = setup.start().await;
    let labels = json!({"app": "a"});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let spec = |replicas: Value| json!({"replicas": replicas, "selector": {"matchLabels": labels}, "template": template});
    for name in ["a", "b"] {
        let deployment =
            json!({"metadata": {"name": name, "finalizers": ["example.com/f"]}, "spec": spec(json!(2))});
        server.post(DEPLOYMENTS, &deployment).await.expect(201);
    }
    server.stop().await;
    for name in ["a", "b"] {
        let value = json!({"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": name, "namespace": "t",
            "uid": format!("u-{name}"), "finalizers": ["example.com/f"]}, "spec": spec(json!("two"))});
        let value = if setup.is_sqlite() {
            format!("CAST('{value}' AS BLOB)")
        } else {
            format!("convert_to('{value}', 'UTF8')")
        };
        setup.database.execute(&format!("UPDATE objects SET value = {value} WHERE name = '{name}'")).await;
    }
    let server = setup.start().await;
    let path = format!("{DEPLOYMENTS}/a");
    assert_eq!(server.get(&path).await.ok()["spec"]["replicas"], "two");
    for path in [&path, DEPLOYMENTS] {
        let refused = server.get(path).accept(&format!("{PROTOBUF},application/json")).await;
        assert_eq!(refused.status, 500, "{refused:?}");
    }
    // It waits for its finalizer, which is a write of the server's own, and is mended by the next client.
    assert!(server.delete(&path).await.ok()["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(server.get(&path).await.ok()["spec"]["replicas"], "two");
    let mended = json!({"metadata": {"finalizers": null}, "spec": {"replicas": 3}});
    server.patch(&path, &mended).await.ok();
    assert_eq!(server.get(&path).await.status, 404);
    let other = format!("{DEPLOYMENTS}/b");
    server.patch(&other, &mended).await.ok();
    assert_eq!(opened(&server.get(&other).accept(PROTOBUF).await.body)["spec"]["replicas"], 3);
}

/// What is written comes back as upstream's types print it, so that what says nothing new changes nothing.
async fn a_patch_of_nothing_writes_nothing(setup: Setup) {
    let server = setup.start().await;
    for (path, object) in written(&server, StorageMediaType::Protobuf).await {
        let again = server.patch(&path, &json!({})).await.ok();
        assert_eq!(rv(&again), rv(&object), "{path}");
        let again = server.put(&path, &object).await.ok();
        assert_eq!(again, object, "{path}");
    }
}
