//! The set of a create, once written directly and once built as a tree.

use super::Kind;
use crate::codec::{protobuf, yaml};
use crate::patch::apply::first::{Unusual, first};
use crate::patch::apply::managers::Operation;
use crate::patch::apply::ownership;
use crate::schema::builtin;
use crate::schema::names::Gvk;
use crate::tree::{Map, Value, json};

/// Asserts that both ways have the same result.
fn agree(kind: &Kind, object: &Map) -> Result<Option<String>, Unusual> {
    let zero = kind.claimed(&protobuf::decode(&kind.kind, &[]).unwrap());
    let written = first(&kind.schema, &zero, object, &kind.filter);
    let acting = kind.acting("m", Operation::Update);
    let managers = ownership::update(kind, &zero, object, &Default::default(), &acting);
    let encoded = ownership::encoded_first(kind, &zero, object, &acting);
    assert_eq!(encoded, managers.and_then(|managers| managers.encode()), "{object:?}");
    written
}

#[test]
fn of_objects_of_many_kinds() {
    let (mut all, mut short) = (0, 0);
    for file in
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/validation/bases")).unwrap()
    {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for document in text.split("\n---\n") {
            let Ok(Value::Object(object)) = yaml::parse(document.as_bytes()) else { panic!("{document}") };
            let gvk = Gvk::of(&object).unwrap();
            if builtin::kind(&gvk).is_none() {
                continue;
            }
            let kind = Kind::new(&gvk);
            let completed = kind.kind.complete(object.clone());
            for object in [Some(object), completed].into_iter().flatten() {
                all += 1;
                short += usize::from(agree(&kind, &object).is_ok());
            }
        }
    }
    assert!(all > 100 && short * 10 > all * 9, "{short} of {all} are written at once");
}

#[test]
fn of_what_is_odd() {
    let kind = Kind::new(&Gvk::fixed("v1", "Pod"));
    let container = json!({"name": "c", "env": [{"name": "A"}, {"name": "<\""}, {"name": "A", "value": "b"}],
        "ports": [{"containerPort": 80, "protocol": "UDP"}, {"containerPort": 80}], "resources": {}});
    for (metadata, spec) in [
        (json!({}), json!({})),
        (
            json!({"name": "a", "namespace": "b"}),
            json!({"containers": [container.clone(), container.clone()]}),
        ),
        (
            json!({"labels": {"b": "1", "a\"b": "2", "a": "3"}, "annotations": {}}),
            json!({"containers": [container]}),
        ),
        (
            json!({"finalizers": ["b", "a", "b"], "labels": null}),
            json!({"containers": [], "hostNetwork": true}),
        ),
        (json!({"ownerReferences": [{"uid": "u"}, {}, {"uid": ""}]}), json!(null)),
        (json!(null), json!({"containers": null, "nodeSelector": {"b": "1"}, "tolerations": [{}]})),
    ] {
        let object = kind.claimed(json!({"metadata": metadata, "spec": spec}).as_object().unwrap());
        let _ = agree(&kind, &object);
        let mut with_status = object.clone();
        with_status.insert("status", json!({"phase": "Running"}));
        let _ = agree(&kind, &with_status);
    }
    assert_eq!(agree(&kind, &kind.claimed(&Map::new())), Ok(None));
}
