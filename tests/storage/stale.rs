//! Rows that are not in the wanted encoding.

use bytes::Bytes;
use rowplane::codec::at_rest::StorageMediaType;
use rowplane::codec::object::Draft;
use rowplane::revision::Revision;
use rowplane::storage::{Backend, Change, Expect, Format, Key, Mutation, ResourceId, Stale};
use rowplane::tree::{Value, json};

use crate::support::database::Database;
use crate::support::object::{delete, pass, resource};

fn encoded(key: &Key, expect: Expect, stored_version: &str, media: StorageMediaType) -> Mutation {
    let object =
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": &*key.name, "uid": "u"}});
    let Value::Object(object) = object else { unreachable!("made an object above") };
    let draft = Draft::encode(&key.namespace, &key.name, object, media);
    let change = Change::Put { uid: "u".into(), stored_version: stored_version.into(), value: draft.into() };
    Mutation::new(key.clone(), expect, change)
}

async fn found(backend: &dyn Backend, stale: &Stale) -> Vec<String> {
    let (mut after, mut names) = ((String::new(), String::new()), Vec::new());
    loop {
        let page = backend.stale_rows(stale, (&after.0, &after.1), 2).await.expect("rows");
        let Some(last) = page.last() else { break };
        after = (last.key.namespace.to_string(), last.key.name.to_string());
        names.extend(
            page.iter().map(|row| format!("{}/{}@{}", row.key.namespace, row.key.name, row.revision)),
        );
    }
    assert_eq!(backend.stale_count(stale).await.expect("count"), names.len() as u64);
    names
}

pub async fn rows_in_another_encoding_are_found(database: &Database) {
    let backend = database.open().await;
    let (things, others) = (resource(&*backend, "things").await, resource(&*backend, "others").await);
    let key = |name| Key::new(things, "ns", name);
    use StorageMediaType::{Json, Protobuf, Yaml};
    let write = async |name, version, media| {
        pass(&*backend, encoded(&key(name), Expect::Absent, version, media)).await
    };
    let json_v1 = write("json-v1", "v1", Json).await;
    let json_v2 = write("json-v2", "v2", Json).await;
    let yaml_v1 = write("yaml-v1", "v1", Yaml).await;
    let protobuf_v1 = write("protobuf-v1", "v1", Protobuf).await;
    let gone = write("gone", "v2", Json).await;
    pass(&*backend, delete(&key("gone"), gone)).await;
    let renewed = write("renewed", "v2", Json).await;
    pass(&*backend, encoded(&key("renewed"), Expect::At(renewed), "v1", Json)).await;
    pass(&*backend, encoded(&Key::new(others, "ns", "a"), Expect::Absent, "v2", Json)).await;
    let through = backend.clock().await.expect("clock").revision;
    let late = write("late", "v2", Json).await;

    let stale = |resource: ResourceId, version: &str, format, through: Revision| Stale {
        resource,
        api_version: version.into(),
        format,
        through,
    };
    let told = |name: &str, at: Revision| format!("ns/{name}@{at}");
    let to_json = stale(things, "v1", Format::Json, through);
    assert_eq!(
        found(&*backend, &to_json).await,
        [told("json-v2", json_v2), told("protobuf-v1", protobuf_v1)]
    );
    let later = Stale { through: late, ..to_json };
    assert_eq!(
        found(&*backend, &later).await,
        [told("json-v2", json_v2), told("late", late), told("protobuf-v1", protobuf_v1)]
    );
    let early = stale(things, "v1", Format::Protobuf, yaml_v1);
    assert_eq!(
        found(&*backend, &early).await,
        [told("json-v1", json_v1), told("json-v2", json_v2), told("yaml-v1", yaml_v1)]
    );
    assert_eq!(found(&*backend, &stale(others, "v2", Format::Json, late)).await, [""; 0]);

    // Encrypted rows, in a resource of their own.
    let secrets = resource(&*backend, "secrets").await;
    let sealed = async |name: &str, value: &'static str| {
        let mut write = encoded(&Key::new(secrets, "ns", name), Expect::Absent, "v1", Json);
        if let Change::Put { value: put, .. } = &mut write.change {
            *put = Bytes::from_static(value.as_bytes()).into();
        }
        pass(&*backend, write).await
    };
    let by_one = sealed("by-one", "k8s:enc:aescbc:v1:one:abc").await;
    let by_two = sealed("by-two", "k8s:enc:aescbc:v1:two:abc").await;
    let key = Key::new(secrets, "ns", "plain");
    let plain = pass(&*backend, encoded(&key, Expect::Absent, "v1", Json)).await;
    let key = Key::new(secrets, "ns", "protobuf");
    let protobuf = pass(&*backend, encoded(&key, Expect::Absent, "v1", Protobuf)).await;
    let all =
        [told("by-one", by_one), told("by-two", by_two), told("plain", plain), told("protobuf", protobuf)];
    for (format, current) in [
        (Format::Sealed("k8s:enc:aescbc:v1:one:".into()), vec![0]),
        (Format::Sealed("k8s:enc:aescbc:v1:".into()), vec![0, 1]),
        (Format::Sealed("k8s:enc:aesgcm:v1:one:".into()), vec![]),
        (Format::Json, vec![2]),
        (Format::Protobuf, vec![3]),
    ] {
        let expected: Vec<_> =
            (0..all.len()).filter(|n| !current.contains(n)).map(|n| all[n].clone()).collect();
        let stale = stale(secrets, "v1", format.clone(), protobuf);
        assert_eq!(found(&*backend, &stale).await, expected, "{format:?}");
    }
}
