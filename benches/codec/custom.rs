//! A custom object of 10 KB and its structural schema: what the schema holds, and what validation costs.

use std::hint::black_box;
use std::time::Duration;

use rowplane::schema::builtin;
use rowplane::schema::structural::{Schemas, Structural};
use rowplane::tree::{Map, Value, json};

use super::counting;
use super::timing::{Measured, measure};

const DESCRIPTION: &str = "A field of the kind that controller-gen writes down: one sentence that says what it is for, and \
                           a second one that tells when it may be left out and what happens then.";

/// As long as most fields' are.
fn described(mut schema: Value) -> Value {
    schema["description"] = DESCRIPTION.into();
    schema
}

fn text(extra: Value) -> Value {
    let mut schema = json!({"type": "string"});
    for (name, value) in extra.as_object().into_iter().flatten() {
        schema[name] = value.clone();
    }
    described(schema)
}

fn condition() -> Value {
    let message = json!({"maxLength": 32768});
    let reason =
        json!({"minLength": 1, "maxLength": 1024, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"});
    json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
    "description": DESCRIPTION, "items": {"type": "object", "required": ["type", "status"], "properties": {
        "type": text(json!({"maxLength": 316})), "status": text(json!({"enum": ["True", "False", "Unknown"]})),
        "reason": text(reason), "message": text(message), "lastTransitionTime": text(json!({"format": "date-time"})),
        "observedGeneration": described(json!({"type": "integer", "format": "int64", "minimum": 0}))}}})
}

/// Parts that an operator's kind has: listeners, routes, resources, conditions.
fn part(number: usize) -> Value {
    let name = json!({"minLength": 1, "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"});
    let port = described(json!({"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535}));
    let either = json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$"});
    described(json!({"type": "object", "required": ["name"], "properties": {
        "name": text(name), "port": port, "protocol": text(json!({"default": "TCP", "enum": ["TCP", "UDP", "HTTP"]})),
        "hostnames": {"type": "array", "maxItems": 64, "items": text(json!({"format": "hostname"})), "description": DESCRIPTION},
        "resources": described(json!({"type": "object", "additionalProperties": either})),
        "labels": described(json!({"type": "object", "additionalProperties": {"type": "string"}})),
        (format!("own{number}")): text(json!({"maxLength": 64})),
        "enabled": described(json!({"type": "boolean", "default": true})),
        "conditions": condition()}}))
}

pub fn schema() -> Value {
    let mut properties = Map::new();
    for number in 0..6 {
        let items = part(number);
        let list = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "description": DESCRIPTION, "items": items});
        properties.insert(format!("parts{number}"), list);
    }
    json!({"type": "object", "description": DESCRIPTION, "properties": {
        "apiVersion": text(json!({})), "kind": text(json!({})), "metadata": {"type": "object"},
        "spec": described(json!({"type": "object", "properties": properties})),
        "status": described(json!({"type": "object", "properties": {"conditions": condition()}}))}})
}

pub fn object() -> Map {
    let mut spec = Map::new();
    for list in 0..6 {
        let parts = (0..4).map(|number| {
            json!({"name": format!("part-{number}"), "port": 8080 + number, "protocol": "HTTP", "enabled": true,
            "hostnames": ["www.example.com", "api.example.com"], "resources": {"cpu": "500m", "memory": "1Gi"},
            "labels": {"app.kubernetes.io/name": "gateway", "app.kubernetes.io/instance": "main"},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Accepted", "observedGeneration": 3,
                "message": "the part is programmed", "lastTransitionTime": "2026-11-22T10:00:00Z"}]})
        });
        spec.insert(format!("parts{list}"), Value::Array(parts.collect()));
    }
    let object = json!({"apiVersion": "example.com/v1", "kind": "Gateway",
        "metadata": {"name": "main", "namespace": "default"}, "spec": spec});
    object.as_object().cloned().expect("an object")
}

/// With another port somewhere.
fn changed(object: &Map) -> Map {
    let mut changed: Value = object.clone().into();
    changed["spec"]["parts3"][2]["port"] = 9090.into();
    changed.as_object().cloned().expect("an object")
}

pub fn run(duration: Duration) {
    let schema = schema();
    let (text, members) = (schema.to_string(), schema.as_object().expect("a schema"));
    let schemas = Schemas::new(builtin::types());
    let held = counting::held();
    let shape: Structural = schemas.read(members).expect("structural");
    let first = counting::held() - held;
    let again: Structural = schemas.read(members).expect("structural");
    let second = counting::held() - held - first;
    let (old, size) = (object(), Value::from(object()).to_string().len());
    let new = changed(&old);
    assert!(shape.validate(&old).is_empty() && shape.validate_update(&new, &old).is_empty());
    println!(
        "structural schema of {} bytes of JSON: {} bytes held, {second} by its second version",
        text.len(),
        first
    );
    println!("with its expressions compiled: {} bytes; {} parts\n", counting::held() - held, schemas.parts());
    drop(again);
    let validate = || shape.validate(black_box(&old)).len();
    let update = || shape.validate_update(black_box(&new), black_box(&old)).len();
    let unchanged = || shape.validate_update(black_box(&old), black_box(&old)).len();
    let conform = || {
        let mut object = black_box(&old).clone();
        shape.conform(&mut object).expect("fits");
        shape.default(&mut object).expect("room");
        object
    };
    println!("Custom object of {size} bytes of JSON\n");
    Measured::print(&[
        ("copied, pruned, defaulted", measure(duration, conform)),
        ("validated", measure(duration, validate)),
        ("validated, one value changed", measure(duration, update)),
        ("validated, nothing changed", measure(duration, unchanged)),
    ]);
}
