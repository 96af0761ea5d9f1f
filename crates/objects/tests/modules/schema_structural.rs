//! Tests of `structural`.

use std::sync::Arc;

use rowplane_objects::causes::Causes;
use rowplane_objects::json::Node;
use rowplane_objects::schema::builtin;
use rowplane_objects::schema::kind::{Kind, Shape};
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::schema::structural::{DefaultRules, NotStructural, Schemas, Structural, blocks_rules};
use rowplane_objects::tree::{Map, Text, Value, json};

/// What upstream makes of objects: `tests/upstream/structural` asks its own code.
const UPSTREAM: &str = include_str!("../../../../testdata/structural/upstream.jsonl");

fn widget(schema: &Value) -> Kind {
    let schema = schema.as_object().expect("a schema");
    let shape = Structural::read(schema, &builtin::types()).expect("structural");
    Kind { gvk: Gvk::fixed("example.com/v1", "Widget"), shape: Shape::Structural(Arc::new(shape)) }
}

/// Members in any order: a custom resource is a map to upstream.
fn sorted(object: &Map) -> Value {
    let mut object = Value::Object(object.clone());
    object.sort_all();
    object
}

#[test]
fn objects_become_what_upstream_makes_of_them() {
    let mut refused = 0;
    for line in UPSTREAM.lines() {
        let line: Map = serde_json::from_str(line).expect("JSON");
        let kind = widget(&line["schema"]);
        let mut object = line["sent"].as_object().expect("an object").clone();
        let conformed = kind.conform(&mut object);
        if let Some(why) = line.get("refused").and_then(Value::as_str) {
            let error = conformed.expect_err(why);
            assert!(why.ends_with(&error), "{error}\n{why}");
            refused += 1;
            continue;
        }
        conformed.expect("fits");
        let want = |name: &str| sorted(line[name].as_object().expect(name));
        assert_eq!(sorted(&object), want("conformed"), "{} {:?}", line["name"], line["sent"]);
        kind.default(&mut object).expect("room");
        assert_eq!(sorted(&object), want("defaulted"), "{} {:?}", line["name"], line["sent"]);
    }
    assert_eq!(refused, 2);
}

#[test]
fn unknown_members_are_those_that_pruning_drops() {
    let mut told = 0;
    for line in UPSTREAM.lines() {
        let line: Map = serde_json::from_str(line).expect("JSON");
        let Some(unknown) = line.get("unknown").and_then(Value::as_array) else { continue };
        let text = Node::parse(line["sent"].to_string().as_bytes()).expect("JSON");
        let found = widget(&line["schema"]).problems(&text);
        let of_objects = found.iter().filter(|problem| !problem.contains("metadata."));
        let want: Vec<String> = unknown.iter().map(|path| format!("unknown field {}", path)).collect();
        assert_eq!(of_objects.cloned().collect::<Vec<_>>(), want, "{}", line["name"]);
        told += want.len();
    }
    assert!(told > 10, "{told}");
}

#[test]
fn unknown_members_of_metadata_and_repeated_ones_are_told() {
    let kind = widget(&json!({"type": "object", "properties": {"spec": {"type": "object"}}}));
    let text = br#"{"spec":{},"metadata":{"name":"a","odd":1},"more":1,"more":2}"#;
    let found = kind.problems(&Node::parse(text).expect("JSON"));
    let want = [r#"duplicate field "more""#, r#"unknown field "metadata.odd""#, r#"unknown field "more""#];
    assert_eq!(found[..2], want[..2]);
    assert!(found[2..].iter().all(|problem| problem == want[2]), "{found:?}");
}

#[test]
fn what_is_no_schema_is_refused() {
    for (schema, want) in [
        (json!({"type": 1}), ": type must be a string"),
        (json!({"properties": {"a": {"type": []}}}), "a: type must be a string"),
        (json!({"properties": {"a": {"items": []}}}), "a: items must be a schema"),
        (json!({"properties": []}), ": properties must be an object"),
        (json!({"nullable": "x"}), ": nullable must be a boolean"),
    ] {
        let error = Structural::read(schema.as_object().expect("an object"), &builtin::types());
        assert_eq!(error.expect_err(want).to_string(), want);
    }
}

/// What upstream makes of objects that `tests/upstream/structural random` made.
const RANDOM: &[u8] = include_bytes!("../../../../testdata/structural/random.jsonl.gz");

/// What Go finds in texts, by expressions that `tests/upstream/structural patterns` made.
const PATTERNS: &[u8] = include_bytes!("../../../../testdata/structural/patterns.jsonl.gz");

fn unpacked(packed: &[u8]) -> String {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed), &mut text).expect("gzip");
    text
}

fn texts<'v>(from: &'v Value, name: &str) -> Vec<&'v str> {
    from.get(name)
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice)
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

/// As apimachinery's field errors, sorted: upstream's order is random.
fn told(causes: Causes) -> Vec<String> {
    let causes = causes.into_vec().into_iter();
    let mut told: Vec<String> =
        causes.map(|cause| format!("{}|{}: {}", cause.reason.as_str(), cause.field, cause.message)).collect();
    told.sort();
    told
}

/// Members in any order, integral numbers without fractions.
fn plain(object: &Map) -> Value {
    let mut object = sorted(object);
    rowplane_objects::json::whole_numbers(&mut object);
    object
}

/// What comes of one object after another.
#[test]
fn random_objects_are_judged_as_upstream_judges_them() {
    let (mut judged, mut wrong, mut excused, mut refused, mut settled) = (0, 0, 0, 0, 0);
    for (number, line) in unpacked(RANDOM).lines().enumerate() {
        let line: Map = serde_json::from_str(line).expect("JSON");
        let shape = Structural::read(line["schema"].as_object().expect("a schema"), &builtin::types());
        let shape = shape.expect("structural");
        let mut before: Option<Map> = None;
        for (index, case) in line["cases"].as_array().expect("cases").iter().enumerate() {
            let what = || {
                format!("schema {number}, object {index}\n{}\n{}\n{before:?}", line["schema"], case["sent"])
            };
            let mut object = case["sent"].as_object().expect("an object").clone();
            let text = Node::parse(case["sent"].to_string().as_bytes()).expect("JSON");
            let conformed = shape.conform(&mut object);
            if let Some(why) = case.get("refused").and_then(Value::as_str) {
                assert_eq!(conformed.map(drop), Err(why.to_owned()), "{}", what());
                refused += 1;
                continue;
            }
            let fit = conformed.unwrap_or_else(|why| panic!("{why}\n{}", what()));
            let unknown: Vec<String> =
                texts(case, "unknown").iter().map(|path| format!("unknown field \"{path}\"")).collect();
            let mut problems = shape.problems(&text);
            problems.retain(|problem| !problem.starts_with("unknown field \"metadata."));
            assert_eq!(problems, unknown, "{}", what());
            assert!(fit.unknown || unknown.is_empty(), "{}", what());
            let want = case["conformed"].as_object().expect("conformed");
            assert_eq!(plain(&object), plain(want), "{}", what());
            shape.default(&mut object).expect("room");
            let want = case.get("defaulted").and_then(Value::as_object).unwrap_or(want);
            assert_eq!(plain(&object), plain(want), "{}", what());
            for stored in [case["sent"].as_object().expect("an object"), &object] {
                settled += usize::from(settles(&shape, stored));
            }
            assert_eq!(told(shape.validate(&object)), texts(case, "errors"), "{}", what());
            let mut lists = told(shape.list_type_causes(&object));
            let mut kindless = Vec::new();
            shape.embedded(&object, &mut |at, object| {
                if !object.contains_key("kind") {
                    kindless.push(at.property("kind").to_string());
                }
            });
            kindless.sort();
            lists.extend(kindless);
            assert_eq!(lists, texts(case, "lists"), "{}", what());
            if let Some(before) = &before {
                assert_eq!(
                    told(shape.validate_update(&object, before)),
                    texts(case, "update"),
                    "update {}",
                    what()
                );
                let status =
                    object.get("status").map(|new| told(shape.validate_status(new, before.get("status"))));
                assert_eq!(status.unwrap_or_default(), texts(case, "status"), "status {}", what());
                excused += usize::from(texts(case, "update").len() < texts(case, "errors").len());
            }
            wrong += usize::from(!texts(case, "errors").is_empty());
            judged += 1;
            before = Some(object);
        }
    }
    assert!(
        judged > 2500 && wrong > 800 && excused > 300 && refused > 20,
        "{judged} {wrong} {excused} {refused}"
    );
    assert!(settled > judged / 2 && settled < 2 * judged, "{settled} of twice {judged}");
}

/// Looks whether an object of the first generation is settled, which has to be true if reading it changes nothing.
fn settles(shape: &Structural, object: &Map) -> bool {
    let mut object = object.clone();
    let metadata = object.entry("metadata").or_insert_with(|| Map::new().into());
    if let Value::Object(metadata) = metadata {
        metadata.insert("generation", 1.into());
    }
    let mut read = object.clone();
    let conforms = shape.conform_stored(&mut read).is_ok();
    shape.default(&mut read).expect("room");
    assert_eq!(shape.is_settled(&object), conforms && read == object, "{object:?}");
    read == object
}

#[test]
fn expressions_find_what_they_find_in_go() {
    let texts = [
        "", "a", "b", "ab", "aab", "AB", "K", "k", "\u{212a}", "ſ", "é", "É", "1", "a1_", " a\n", "a\nb",
        "a.b", "a-b", "[a]", "{,3}", "aaa", "ß", "α", "\u{b}", "a&b", "*", "~",
    ];
    let (mut found, mut wrong) = (0, 0);
    for line in unpacked(PATTERNS).lines() {
        let line: Vec<Value> = serde_json::from_str(line).expect("JSON");
        let expression = line[0].as_str().expect("an expression");
        let compiled = rowplane_objects::regexp::Regexp::compile(expression);
        if let Some(why) = line[1].as_str() {
            assert_eq!(
                compiled.map(drop).map_err(|error| error.to_string()),
                Err(why.to_owned()),
                "{expression:?}"
            );
            wrong += 1;
            continue;
        }
        let compiled = compiled.unwrap_or_else(|why| panic!("{why}: {expression:?}"));
        let want = line[1].as_array().expect("a list");
        assert_eq!(want.len(), texts.len());
        for (text, want) in texts.iter().zip(want) {
            let range = compiled.find(text).map(|range| json!([range.start, range.end]));
            assert_eq!(range.unwrap_or(Value::Null), *want, "{expression:?} in {text:?}");
        }
        found += 1;
    }
    assert!(found > 1000 && wrong > 800, "{found} {wrong}");
}

fn shape_of(schema: &Value) -> Structural {
    Structural::read(schema.as_object().expect("a schema"), &builtin::types()).expect("structural")
}

fn members(object: Value) -> Map {
    object.as_object().cloned().expect("an object")
}

#[test]
fn what_is_wrong_is_told_in_the_order_in_which_upstream_looks() {
    let shape = shape_of(&json!({"type": "object", "required": ["z"], "properties": {"spec": {
        "type": "object", "maxProperties": 1, "required": ["color"],
        "anyOf": [{"required": ["b"]}, {"required": ["c"]}],
        "properties": {
            "b": {"type": "string", "maxLength": 1, "enum": ["x"], "format": "ipv4"},
            "a": {"type": "array", "maxItems": 1, "items": {"type": "integer", "maximum": 3, "multipleOf": 2}}}}}}));
    let causes = shape.validate(&members(json!({"spec": {"b": "yy", "a": [5, "x"]}}))).into_vec();
    let told: Vec<String> =
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    let want = [
        "spec: Too many: 2: must have at most 1 item",
        "spec.a[0]: Invalid value: 5: spec.a[0] in body should be a multiple of 2",
        "spec.a[0]: Invalid value: 5: spec.a[0] in body should be less than or equal to 3",
        "spec.a[1]: Invalid value: \"string\": spec.a[1] in body must be of type integer: \"string\"",
        "spec.a: Too many: 2: must have at most 1 item",
        "spec.b: Too long: may not be more than 1 byte",
        "spec.b: Invalid value: \"yy\": spec.b in body must be of type ipv4: \"yy\"",
        "spec.b: Unsupported value: \"yy\": supported values: \"x\"",
        "spec.color: Required value",
        "z: Required value",
    ];
    assert_eq!(told, want);
    assert!(causes.iter().any(|cause| blocks_rules(cause.reason)));
}

#[test]
fn equal_parts_are_one_part_in_memory_and_go_with_their_schemas() {
    let schemas = Schemas::new(builtin::types());
    let port = json!({"type": "integer", "description": "a", "maximum": 9});
    let same_port = json!({"type": "integer", "description": "b", "maximum": 9});
    let schema = members(
        json!({"type": "object", "properties": {"a": port, "b": {"type": "object", "properties": {"c": same_port}}}}),
    );
    let one = schemas.read(&schema).expect("structural");
    let before = schemas.parts();
    assert_eq!(before, 3);
    let other = schemas.read(&schema).expect("structural");
    assert_eq!(schemas.parts(), before);
    drop((one, other));
    assert_eq!(schemas.parts(), 0);
}

/// The work of reading a schema, and of validating an object by it.
fn work_of(schema: &Value, object: Value) -> (usize, usize) {
    let mut shape = None;
    let reading = rowplane_objects::tree::work::of(|| shape = Some(shape_of(schema)));
    let (shape, object) = (shape.expect("a shape"), members(object));
    (reading, rowplane_objects::tree::work::of(|| _ = shape.validate(&object).len()))
}

#[test]
fn large_schemas_cost_what_they_say() {
    let wide = |properties: usize| {
        let names = (0..properties).map(|number| format!("property{number}"));
        let properties: Map =
            names.clone().map(|name| (Text::from(name), json!({"type": "integer", "maximum": 1}))).collect();
        let object: Map = names.map(|name| (Text::from(name), 2.into())).collect();
        work_of(&json!({"type": "object", "properties": properties}), object.into())
    };
    let (few, many) = (wide(1000), wide(10_000));
    assert!(many.0 < 11 * few.0 && many.1 < 11 * few.1, "{few:?} {many:?}");
}

#[test]
fn pyramids_of_junctors_cost_what_they_say() {
    // Each level holds the one below twice, but they are one part, and each is looked at for one value.
    let pyramid = |levels: usize| {
        let schema = (0..levels).fold(json!({"maximum": 1}), |below, _| json!({"allOf": [below]}));
        let spec = json!({"type": "integer", "allOf": [schema]});
        work_of(&json!({"type": "object", "properties": {"spec": spec}}), json!({"spec": 2}))
    };
    let (low, high) = (pyramid(10), pyramid(100));
    assert!(high.0 < 11 * low.0 && high.1 < 11 * low.1, "{low:?} {high:?}");
    let too_deep = (0..200).fold(json!({"maximum": 1}), |below, _| json!({"not": below}));
    let read = Structural::read(too_deep.as_object().expect("a schema"), &builtin::types());
    assert_eq!(read.expect_err("too deep"), NotStructural::TooDeep);
}

#[test]
fn no_object_asks_for_endless_work() {
    // Each takes seconds.
    let patterns: Vec<Value> = (0..100).map(|n| json!({"pattern": format!("a(a|b){{900}}{n}")})).collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "string", "allOf": patterns}}});
    let object = members(json!({"spec": "a".repeat(3 << 20)}));
    let causes = shape_of(&schema).validate(&object).into_vec();
    assert!(causes[0].message.ends_with("not all were made"), "{causes:?}");
    let work = rowplane_objects::tree::work::of(|| _ = shape_of(&schema).validate(&object));
    assert!(work < 20_000_000, "{work}");
}

#[test]
fn defaults_of_an_object_are_bounded() {
    let text = "x".repeat(1000);
    let item = json!({"type": "object", "properties": {"a": {"type": "string", "default": text}}});
    let shape =
        shape_of(&json!({"type": "object", "properties": {"spec": {"type": "array", "items": item}}}));
    let with = |items: usize| members(json!({"spec": vec![json!({}); items]}));
    let mut object = with(1000);
    shape.default(&mut object).expect("a megabyte");
    assert_eq!(object["spec"][999]["a"].as_str().map(str::len), Some(1000));
    let mut object = with(100_000);
    let why = shape.default(&mut object).expect_err("a hundred megabytes");
    assert_eq!(why.to_string(), "the defaults of the object take more than 67108864 bytes");
}

#[test]
fn defaults_have_to_fit_their_schemas() {
    let of_resource = |path: &str, object: &Map, causes: &mut Causes| {
        if !object.contains_key("kind") {
            causes.push(rowplane_objects::causes::Cause::required(format!("{path}.kind"), ""));
        }
    };
    let types = builtin::types();
    let rules =
        DefaultRules { types: &types, may_be_unpruned: false, asks_rules: true, resource: of_resource };
    let told = |schema: Value| told(rules.find(&schema, "at").causes);
    let spec = |schema: Value| json!({"type": "object", "properties": {"spec": schema}});
    let at = "at.properties[spec].default";
    for (schema, want) in [
        (json!({"type": "integer", "maximum": 3, "default": 3}), None),
        (json!({"x-kubernetes-int-or-string": true, "default": true}), None),
        (
            json!({"type": "integer", "default": "x"}),
            Some(format!("FieldValueTypeInvalid|{at}: Invalid value: \"string\":  in body must be of type integer: \"string\"")),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}),
            Some(format!("FieldValueInvalid|{at}: Invalid value: {{\"b\":1}}: must not have unknown fields")),
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}, "default": {}}),
            Some(format!("FieldValueRequired|{at}.a: Required value")),
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true, "default": {"apiVersion": "v1"}}),
            Some(format!("FieldValueRequired|{at}.kind: Required value")),
        ),
        (
            json!({"type": "array", "items": {"type": "string", "pattern": "^a", "default": "b"}}),
            Some("FieldValueInvalid|at.properties[spec].items.default: Invalid value: \"b\":  in body should match '^a'".to_owned()),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 3"}]}}, "default": {"a": 1}}),
            Some(format!("FieldValueInvalid|{at}.a: Invalid value: 1: failed rule: self > 3")),
        ),
        (
            json!({"type": "integer", "default": 2, "x-kubernetes-validations": [{"rule": "self == oldSelf"}]}),
            None,
        ),
        (
            json!({"type": "integer", "default": 2, "x-kubernetes-validations": [{"rule": "oldSelf.hasValue()", "optionalOldSelf": true}]}),
            Some(format!("FieldValueInvalid|{at}: Invalid value: 2: failed rule: oldSelf.hasValue()")),
        ),
    ] {
        assert_eq!(told(spec(schema.clone())), Vec::from_iter(want), "{schema}");
    }
}
