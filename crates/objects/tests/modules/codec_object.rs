//! Tests of `codec::object`.

use bytes::Bytes;
use rowplane_objects::codec::at_rest::StorageMediaType;
use rowplane_objects::codec::object::{Draft, Mark, Object};
use rowplane_objects::revision::Revision;
use rowplane_objects::schema::builtin;
use rowplane_objects::schema::names::Gvk;
use rowplane_values::tree::{Map, Value, json};

fn object(value: Value, revision: u64) -> Object {
    let map = value.as_object().expect("object").clone();
    Draft::encode("ns", "a", map, StorageMediaType::default()).into_object(Revision(revision))
}

fn complete(pod: &Map) -> Map {
    let kind = builtin::kind(&Gvk::fixed("v1", "Pod")).expect("a kind");
    kind.complete(pod.clone()).expect("a Pod")
}

const MEDIA: [StorageMediaType; 3] =
    [StorageMediaType::Json, StorageMediaType::Yaml, StorageMediaType::Protobuf];

#[test]
fn members_and_version_stand_where_upstream_prints_them() {
    let value = json!({"data": {"k": "<v>"}, "metadata": {"labels": {"l": "1"}, "uid": "u",
        "resourceVersion": "3", "name": "a", "namespace": "ns"}, "apiVersion": "v1", "kind": "ConfigMap"});

    let mut untyped = value.clone();

    untyped["kind"] = "Unknown".into();

    let typed = concat!(
        r#"{"kind":"ConfigMap","apiVersion":"v1","#,
        r#""metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"42","labels":{"l":"1"}},"#,
        r#""data":{"k":"\u003cv\u003e"}}"#
    );
    let sorted = concat!(
        r#"{"apiVersion":"v1","data":{"k":"\u003cv\u003e"},"kind":"Unknown","#,
        r#""metadata":{"labels":{"l":"1"},"name":"a","namespace":"ns","resourceVersion":"42","uid":"u"}}"#
    );
    for (value, expected, item) in
        [(value, typed, r#""metadata":{"#), (untyped, sorted, r#""apiVersion":"v1","data""#)]
    {
        let object = object(value, 42);
        assert_eq!(object.json().expect("decodable"), expected.as_bytes());
        assert_eq!(object.label("l"), Some("1"));
        assert_eq!(object.label("m"), None);
        assert!(object.json_item().expect("decodable").starts_with(item.as_bytes()));
        let moved = object.at_revision(Revision(7)).at_revision(Revision(42));
        assert_eq!(moved.json().expect("decodable"), expected.as_bytes());
    }
}

#[test]
fn what_a_schema_makes_of_an_object_is_looked_up_once() {
    let object = object(json!({"kind": "K", "metadata": {"name": "a"}}), 7);
    assert!(object.is_settled_by(3, || true) && object.is_settled_by(3, || unreachable!()));
    assert!(object.at_revision(Revision(8)).is_settled_by(3, || unreachable!()));
    assert!(!object.is_settled_by(4, || false) && !object.is_settled_by(4, || unreachable!()));
    let draft = Draft::parse("ns", "a", Bytes::from_static(b"{\"metadata\":{}}"));
    let object = draft.settled(Mark::settled(5)).into_object(Revision(9));
    assert!(object.is_settled_by(5, || unreachable!()));
}

#[test]
fn an_object_is_the_same_out_of_every_form_at_rest() {
    let pod = json!({"kind": "Pod", "apiVersion": "v1", "unknown": 1,
        "metadata": {"name": "a", "labels": {"on": "yes", "n": "1"}},
        "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "0.5"}}}]}});
    let pod = complete(pod.as_object().expect("object"));
    // An object that is long enough to be packed.
    let mut long = pod.clone();
    long["metadata"]["annotations"] = json!({"long": "again and ".repeat(200)});
    for pod in [pod, long] {
        is_the_same_out_of_every_form(&pod);
    }
}

fn is_the_same_out_of_every_form(pod: &Map) {
    let draft = |media| Draft::encode("ns", "a", pod.clone(), media);
    let packed = draft(StorageMediaType::Protobuf).value().len() < 1024;
    assert!(packed, "short, or packed");
    let want = draft(StorageMediaType::Protobuf).into_object(Revision(7));
    let json = want.json().expect("decodable");
    let amounts = br#""resources":{"limits":{"cpu":"500m"},"requests":{"cpu":"500m"}}"#;
    assert!(json.windows(amounts.len()).any(|part| part == amounts), "{json:?}");
    let message = want.protobuf().expect("typed");
    for media in MEDIA {
        let draft = draft(media);
        assert_eq!(StorageMediaType::of(draft.value()), media);
        let read = Draft::parse("ns", "a", draft.value().clone()).into_object(Revision(7));
        assert_eq!(read.json().expect("decodable"), json);
        assert_eq!(read.protobuf().expect("typed"), message);
        let written = draft.without_message().into_object(Revision(7));
        assert_eq!(written.json().expect("decodable"), json);
        assert_eq!(written.made_size(), 0);
        assert_eq!(written.protobuf().expect("typed"), message);
        assert_eq!(written.made_size(), message.len());
    }
}

#[test]
fn what_was_stored_before_there_were_defaults_gets_them() {
    let old = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c"}]}});
    let old = old.as_object().expect("object");
    let new = complete(old);
    let want = Draft::encode("ns", "a", new, StorageMediaType::Protobuf).into_object(Revision(7));
    for media in MEDIA {
        let value = Draft::encode("ns", "a", old.clone(), media).value().clone();
        // The value as earlier releases wrote it, without a level behind the object.
        let value = match media {
            StorageMediaType::Protobuf => value.slice(..value.len() - 2),
            _ => value.slice(..value.trim_ascii_end().len()),
        };
        assert_eq!(StorageMediaType::of(&value), media);
        let read = Draft::parse("ns", "a", value).into_object(Revision(7));
        assert_eq!(read.json().expect("decodable"), want.json().expect("decodable"));
        assert_eq!(read.protobuf().expect("typed"), want.protobuf().expect("typed"));
    }
    // Values of this release are used unchanged.
    for media in [StorageMediaType::Json, StorageMediaType::Protobuf] {
        let value = Draft::encode("ns", "a", old.clone(), media).value().clone();
        let read = Draft::parse("ns", "a", value).into_object(Revision(7));
        assert!(!read.mentions("schedulerName"), "{media:?}");
    }
}

#[test]
fn what_is_not_of_its_types_stays_as_it_is() {
    let misfit = json!({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "a"}, "spec": "none"});
    for media in MEDIA {
        let draft = Draft::encode("ns", "a", misfit.as_object().expect("object").clone(), media);
        assert_eq!(StorageMediaType::of(draft.value()), StorageMediaType::Json);
        let object = draft.into_object(Revision(7));
        assert_eq!(object.to_map().expect("decodable")["spec"], "none");
        assert!(object.protobuf().is_err());
    }
}

#[test]
fn every_metadata_shape_stays_valid_json() {
    for metadata in
        [json!({}), json!({"labels": {}}), json!({"name": "a"}), json!({"name": "a", "labels": {}})]
    {
        let object = object(json!({"kind": "K", "metadata": metadata}), 7);
        let parsed: Value = serde_json::from_slice(object.json().expect("decodable")).expect("valid");
        assert_eq!(parsed["metadata"]["resourceVersion"], "7");
    }
}

#[test]
fn a_value_that_is_not_an_object_is_kept_and_named() {
    for value in [
        "",
        "[]",
        "{\"kind\":\"K\"}",
        "{\"metadata\":{\"name\"",
        "\u{0}",
        "k8s\0",
        "k8s\0\u{12}",
        "k8s\0\u{12}\u{5}\u{1}\0\0\0\0\u{1a}\u{3}lz4",
        "- a",
        "a: b",
    ] {
        let draft = Draft::parse("ns", "a", Bytes::from_static(value.as_bytes()));
        let object = draft.into_object(Revision(9));
        let error = object.json().expect_err("not decodable");
        assert!(error.to_string().contains("\"a\"") && error.to_string().contains('9'), "{error}");
    }
}

#[test]
fn content_moves_to_another_revision() {
    let object = object(json!({"kind": "K", "metadata": {"name": "a", "labels": {"x": "y"}}}), 7);
    for at in [1, 8, 12345] {
        let moved = object.at_revision(Revision(at));
        let mut want = object.to_map().expect("decodable");
        want["metadata"]["resourceVersion"] = at.to_string().into();
        assert_eq!(moved.to_map().expect("decodable"), want);
        assert_eq!(moved.label("x"), Some("y"));
    }
}
