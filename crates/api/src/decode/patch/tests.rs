use super::*;
use crate::options::write::FieldValidation;
use crate::schema::builtin;
use crate::schema::names::Gvk;
use crate::tree::json;

const VERSION: &str = "v1";
const KIND: &str = "ConfigMap";

/// An object, closed.
fn current() -> ObjectMap {
    let mut object = json!({
        "kind": KIND,
        "apiVersion": VERSION,
        "metadata": {
            "name": "c",
            "labels": {"a": "1"},
            "finalizers": ["ex.io/a", "ex.io/b"],
            "managedFields": [{
                "manager": "m", "operation": "Update", "apiVersion": "v1", "time": "2030-01-01T00:00:00Z",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {".": {}, "f:a": {}}},
            }],
        },
        "data": {"a": "1"},
    });
    managed::close(object.as_object_mut().expect("an object"));
    object.as_object().expect("an object").clone()
}

fn decoded(kind: PatchKind, body: &Value, force_open: bool) -> (bool, Result<ObjectMap, String>) {
    let warnings = Default::default();
    let strictness = Strictness { validation: FieldValidation::Strict, warnings: &warnings };
    let mut patch = Patch::parse(kind, body.to_string().as_bytes(), strictness).expect("a patch");
    let opens = patch.about_managers;
    let config_maps = builtin::kind(&Gvk::fixed(VERSION, KIND)).expect("a kind");
    patch.about_managers |= force_open;
    let result = patch.decode(&current(), &config_maps, strictness);
    (opens, result.map_err(|error| format!("{error:?}")))
}

/// Checks that a patch of the closed object has the same result as one of the open object, and that entries keep their
/// order.
fn compare(kind: PatchKind, opens: bool, body: Value) {
    let (opened, lazy) = decoded(kind, &body, false);
    assert_eq!(opened, opens, "{body}");
    assert_eq!(lazy, decoded(kind, &body, true).1, "{body}");
    let entries = lazy.ok().and_then(|object| object.get("metadata")?.get("managedFields").cloned());
    for entry in entries.as_ref().and_then(Value::as_array).into_iter().flatten() {
        assert!(entry["fieldsV1"].is_string() || entry["fieldsV1"].is_null(), "{body}: {entry}");
    }
}

#[test]
fn json_patches_open_managers_when_they_are_about_them() {
    let fields = "/metadata/managedFields/0/fieldsV1";
    let open = json!({"f:data": {".": {}, "f:a": {}}});
    for operation in [
        json!({"op": "test", "path": format!("{fields}/f:data/f:a"), "value": {}}),
        json!({"op": "test", "path": fields, "value": open}),
        json!({"op": "test", "path": "/metadata", "value": {"name": "c"}}),
        json!({"op": "copy", "from": "/metadata", "path": "/x"}),
        json!({"op": "copy", "from": "", "path": "/x"}),
        json!({"op": "move", "from": "/metadata/managedFields/0", "path": "/metadata/managedFields/-"}),
        json!({"op": "remove", "path": "/metadata/managedFields"}),
        json!({"op": "replace", "path": "/metadata/managedFields", "value": [{"manager": "x"}]}),
        json!({"op": "add", "path": "ignored/metadata/managedFields/0/fieldsV1/f:data", "value": {}}),
        json!({"op": "replace", "path": "/metadata", "value": {"name": "c", "managedFields": [{"fieldsV1": open}]}}),
        json!({"op": "replace", "path": "", "value": current()}),
        json!({"op": "remove", "path": "metadata"}),
    ] {
        compare(PatchKind::Json, true, json!([operation]));
    }
    for operation in [
        json!({"op": "add", "path": "/metadata/labels/managedFields", "value": "1"}),
        json!({"op": "test", "path": "/metadata/labels", "value": {"a": "1"}}),
        json!({"op": "remove", "path": "/metadata/finalizers/-1"}),
        json!({"op": "copy", "from": "/data/a", "path": "/data/managedFields"}),
        json!({"op": "move", "from": "/metadata/labels/a", "path": "/data/metadata"}),
        json!({"op": "add", "path": "/metadata~1managedFields", "value": 1}),
        json!({"op": "add", "path": "/data/none/deeper", "value": 1}),
        json!({"op": "replace", "path": "/data", "value": "no map"}),
    ] {
        compare(PatchKind::Json, false, json!([operation]));
    }
    compare(PatchKind::Json, false, json!([]));
}

#[test]
fn merge_patches_open_managers_when_they_are_about_them() {
    for kind in [PatchKind::Merge, PatchKind::StrategicMerge] {
        compare(kind, true, json!({"metadata": null}));
        compare(kind, true, json!({"metadata": {"managedFields": null}}));
        compare(kind, true, json!({"metadata": {"managedFields": []}}));
        compare(
            kind,
            true,
            json!({"metadata": {"managedFields": [{"manager": "x", "fieldsV1": {"f:data": {}}}]}}),
        );
        compare(kind, true, json!({"metadata": "none"}));
        compare(kind, false, json!({}));
        compare(
            kind,
            false,
            json!({"metadata": {"labels": {"managedFields": "1", "a": null}}, "data": {"b": "2"}}),
        );
        compare(kind, false, json!({"data": {"metadata": "1"}, "foo": 1}));
        compare(kind, false, json!({"metadata": {"managedfields": []}}));
        compare(kind, false, json!({"data": ["no map"]}));
    }
    let order = json!({"metadata": {"$setElementOrder/finalizers": ["ex.io/b", "ex.io/a"]}});
    compare(PatchKind::StrategicMerge, false, order);
    for directive in [
        json!({"$patch": "replace", "kind": KIND, "apiVersion": VERSION, "metadata": {"name": "c"}}),
        json!({"metadata": {"$patch": "replace", "name": "c"}}),
        json!({"metadata": {"$retainKeys": ["name"], "name": "c"}}),
        json!({"metadata": {"$deleteFromPrimitiveList/managedFields": [1]}}),
        json!({"metadata": {"$setElementOrder/managedFields": [{"manager": "m"}]}}),
    ] {
        compare(PatchKind::StrategicMerge, true, directive);
    }
}
