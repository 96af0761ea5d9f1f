//! Tests of `codec::protobuf::version`.

use rowplane_objects::codec::protobuf::{decode, encode, with_version};
use rowplane_objects::kinds::built_in;
use rowplane_objects::revision::Revision;
use rowplane_objects::schema::builtin;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::schema::resource::Storage;
use rowplane_values::tree::{Map, Value, json};

fn members(value: Value) -> Map {
    value.as_object().expect("an object").clone()
}

/// Every stored kind has its metadata in the expected field.
#[test]
fn every_stored_kind_takes_a_version() {
    let mut seen = 0;
    for definition in built_in::definitions() {
        let Storage::Table { version, .. } = &definition.storage else { continue };
        let stored = version.with_kind(definition.kind_name().clone());
        let kind = definition.kind.sibling(&stored).expect("a kind");
        let object = members(json!({"metadata": {"name": "a", "uid": "u", "generation": 1}}));
        let plain = encode(&kind, &object).expect("encodes");
        for revision in [1, 12345, u64::MAX] {
            let spliced = with_version(&plain, Revision(revision)).expect("a message");
            let mut want = object.clone();
            want["metadata"]["resourceVersion"] = revision.to_string().into();
            assert_eq!(spliced, encode(&kind, &want).expect("encodes"));
            // Replaces the version that was just inserted.
            let moved = with_version(&spliced, Revision(7)).expect("a message");
            let moved = decode(&kind, &moved).expect("decodes");
            assert_eq!(moved["metadata"]["resourceVersion"], "7");
        }
        seen += 1;
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn what_is_missing_is_made() {
    let pod = builtin::kind(&Gvk::fixed("v1", "Pod")).expect("a kind");
    for raw in [&b""[..], b"\x0a\x00", b"\x0a\x03\x0a\x01a", b"\x0a\x02\x38\x01", b"\x12\x00"] {
        let spliced = with_version(raw, Revision(5)).expect("a message");
        let object = decode(&pod, &spliced).expect("decodes");
        assert_eq!(object["metadata"]["resourceVersion"], "5", "{raw:?}");
    }
    assert_eq!(with_version(b"\x08\x01", Revision(5)), None);
    assert_eq!(with_version(b"\x0a\x05", Revision(5)), None);
}
