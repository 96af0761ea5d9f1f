//! Shapes of the answers. `crates/objects` tests the cells of kinds.

use super::*;
use crate::kinds::behavior::columns::Printer;
use crate::kinds::built_in;

fn built_in_printer(group: &str, kind: &str) -> &'static Printer {
    built_in::any_version(group, kind).columns
}

fn printer_for(group: &str, kind: &str) -> TablePrinter {
    TablePrinter::BuiltIn(built_in_printer(group, kind))
}

/// The moment at which all tests look at their objects.
fn now() -> Timestamp {
    "2026-07-01T12:00:00Z".parse().expect("a timestamp")
}

/// A row of something that is no object has metadata all the same.
#[test]
fn rows_are_made_of_any_json() {
    for object in [json!({}), json!(null), json!([1]), json!({"metadata": "x"})] {
        let row = row(&printer_for("", "Pod"), &object, &options(IncludeObject::Metadata));
        assert_eq!(row["object"], partial_object_metadata(MetaVersion::V1, &json!({})), "{object}");
    }
}

fn options(include: IncludeObject) -> RowOptions {
    RowOptions { version: MetaVersion::V1, include, now: now() }
}

#[test]
fn a_table_has_its_fields_in_upstreams_order() {
    let role = json!({"kind": "Role", "metadata": {"name": "r", "resourceVersion": "7", "uid": "u",
        "creationTimestamp": "2026-01-02T03:04:05Z"}, "rules": []});
    let printer = printer_for("rbac.authorization.k8s.io", "Role");
    let rows = vec![row(&printer, &role, &options(IncludeObject::Metadata))];
    let table = table(MetaVersion::V1, &printer, Columns::Shown, object_metadata(&role), rows);
    let expected = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"#
        .to_owned()
        + r#""columnDefinitions":[{"name":"Name","type":"string","format":"name","description":"D","priority":0},"#
        + r#"{"name":"Created At","type":"date","format":"","description":"D","priority":0}],"#
        + r#""rows":[{"cells":["r","2026-01-02T03:04:05Z"],"object":{"kind":"PartialObjectMetadata","#
        + r#""apiVersion":"meta.k8s.io/v1","metadata":{"name":"r","resourceVersion":"7","uid":"u","#
        + r#""creationTimestamp":"2026-01-02T03:04:05Z"}}}]}"#;
    let mut text = table.to_string();
    for column in built_in_printer("rbac.authorization.k8s.io", "Role").columns {
        text = text.replace(column.description, "D");
    }
    assert_eq!(text, expected);
}

#[test]
fn lists_without_items() {
    let empty = |group, kind| {
        let metadata = list_metadata("9", None, None);
        table(MetaVersion::V1Beta1, &printer_for(group, kind), Columns::Omitted, metadata, Vec::new())
    };
    assert_eq!(empty("", "Pod")["rows"], json!([]));
    assert_eq!(empty("", "LimitRange")["rows"], Value::Null);
    assert_eq!(empty("", "Pod")["columnDefinitions"], Value::Null);
    assert_eq!(empty("", "Pod")["apiVersion"], "meta.k8s.io/v1beta1");
    assert_eq!(
        list_metadata("9", Some("next"), Some(3)).to_string(),
        r#"{"resourceVersion":"9","continue":"next","remainingItemCount":3}"#
    );
}

#[test]
fn partial_metadata_is_nothing_but_metadata() {
    let secret = json!({"metadata": {"name": "s"}, "data": {"a": "Yg=="}});
    let item = |metadata| json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata});
    assert_eq!(partial_object_metadata(MetaVersion::V1, &secret), item(json!({"name": "s"})));
    assert_eq!(partial_object_metadata(MetaVersion::V1, &json!(5)), item(json!({})));
}

#[test]
fn include_object_decides_what_a_row_carries() {
    let node = json!({"metadata": {"name": "n"}, "spec": {}});
    let bookmark = json!({"metadata": {"annotations": {INITIAL_EVENTS_END: "true"}}});
    let object = |object: &Value, parameter| {
        let include = IncludeObject::parse(parameter).expect("a known value");
        row(&printer_for("", "Node"), object, &options(include))["object"].clone()
    };
    let partial = partial_object_metadata(MetaVersion::V1, &node);
    for parameter in [None, Some(""), Some("Metadata")] {
        assert_eq!(object(&node, parameter), partial, "{parameter:?}");
    }
    assert_eq!(object(&node, Some("Object")), node);
    assert_eq!(object(&node, Some("None")), Value::Null);
    assert_eq!(object(&bookmark, Some("None"))["metadata"], bookmark["metadata"]);
    assert_eq!(
        IncludeObject::parse(Some("x")).expect_err("an unknown value").to_string(),
        "Unable to convert to Table as requested: includeObject: Invalid value: \"x\": \
         must be 'Metadata', 'Object', 'None', or empty"
    );
}
