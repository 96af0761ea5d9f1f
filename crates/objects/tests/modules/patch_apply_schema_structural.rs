//! Tests of `patch::apply::schema::structural`.

use std::sync::Arc;

use rowplane_objects::patch::apply::fields_v1;
use rowplane_objects::patch::apply::owned::owned;
use rowplane_objects::patch::apply::schema::Schema;
use rowplane_objects::schema::builtin;
use rowplane_objects::schema::kind::Kind;
use rowplane_objects::schema::kind::Shape;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::schema::structural::Structural;
use rowplane_values::tree::Map;
use rowplane_values::tree::Value;

/// Expected results, made with upstream's own code by `tests/upstream/structural`.
const UPSTREAM: &str = include_str!("../../../../testdata/structural/upstream.jsonl");

/// `tests/upstream/structural random` makes schemas and objects.
const RANDOM: &[u8] = include_bytes!("../../../../testdata/structural/random.jsonl.gz");

fn schema_of(line: &Map) -> Schema {
    let shape = Structural::read(line["schema"].as_object().expect("a schema"), &builtin::types());
    let shape = Shape::Structural(Arc::new(shape.expect("structural")));
    let kind = Kind { gvk: Gvk::fixed("example.com/v1", "Widget"), shape };
    Schema::of(&kind).expect("a schema")
}

fn fields_of(schema: &Schema, object: &Map) -> Value {
    let mut object = object.clone();
    object.shift_remove("metadata");
    let found = owned(schema, &object);
    let mut found: Value = serde_json::from_str(&fields_v1::encode(&found)).expect("JSON");
    found.sort_all();
    found
}

fn sorted(value: &Value) -> Value {
    let mut value = value.clone();
    value.sort_all();
    value
}

#[test]
fn objects_own_what_upstream_says_they_own() {
    let mut compared = 0;
    for line in UPSTREAM.lines() {
        let line: Map = serde_json::from_str(line).expect("JSON");
        let Some(want) = line.get("fields") else { continue };
        let object = line["defaulted"].as_object().expect("an object");
        assert_eq!(fields_of(&schema_of(&line), object), sorted(want), "{} {object:?}", line["name"]);
        compared += 1;
    }
    assert!(compared >= 25, "{compared}");
}

#[test]
fn random_objects_own_what_upstream_says_they_own() {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(RANDOM), &mut text).expect("gzip");
    let mut compared = 0;
    for line in text.lines() {
        let line: Map = serde_json::from_str(line).expect("JSON");
        let schema = schema_of(&line);
        for case in line["cases"].as_array().expect("cases") {
            let Some(want) = case.get("fields") else { continue };
            let object = case.get("defaulted").unwrap_or(&case["conformed"]);
            let found = fields_of(&schema, object.as_object().expect("an object"));
            assert_eq!(found, sorted(want), "{}\n{object}", line["schema"]);
            compared += 1;
        }
    }
    assert!(compared > 1000, "{compared}");
}
