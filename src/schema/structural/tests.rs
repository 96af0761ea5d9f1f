use super::*;
use crate::causes::Causes;
use crate::json::Node;
use crate::schema::builtin;
use crate::schema::kind::{Kind, Shape};
use crate::schema::names::Gvk;
use crate::tree::json;

/// What upstream makes of objects: `tests/upstream/structural` asks its own code.
const UPSTREAM: &str = include_str!("../../../testdata/structural/upstream.jsonl");

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
        kind.default(&mut object);
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
        (json!({"properties": {"a": {"type": "text"}}}), "a: type must be a type of JSON"),
        (json!({"properties": {"a": {"items": []}}}), "a: items must be a schema"),
        (json!({"properties": []}), ": properties must be an object"),
        (json!({"nullable": "x"}), ": nullable must be a boolean"),
    ] {
        let error = Structural::read(schema.as_object().expect("an object"), &builtin::types());
        assert_eq!(error.expect_err(want).to_string(), want);
    }
}

/// What upstream makes of objects that `tests/upstream/structural random` made.
const RANDOM: &[u8] = include_bytes!("../../../testdata/structural/random.jsonl.gz");

/// What Go finds in texts, by expressions that `tests/upstream/structural patterns` made.
const PATTERNS: &[u8] = include_bytes!("../../../testdata/structural/patterns.jsonl.gz");

fn unpacked(packed: &[u8]) -> String {
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(packed), &mut text).expect("gzip");
    text
}

fn texts<'v>(from: &'v Value, name: &str) -> Vec<&'v str> {
    from.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice).iter().filter_map(Value::as_str).collect()
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
    crate::json::whole_numbers(&mut object);
    object
}

/// What comes of one object after another.
#[test]
fn random_objects_are_judged_as_upstream_judges_them() {
    let (mut judged, mut wrong, mut excused, mut refused) = (0, 0, 0, 0);
    for (number, line) in unpacked(RANDOM).lines().enumerate() {
        let line: Map = serde_json::from_str(line).expect("JSON");
        let shape = Structural::read(line["schema"].as_object().expect("a schema"), &builtin::types());
        let shape = shape.expect("structural");
        let mut before: Option<Map> = None;
        for (index, case) in line["cases"].as_array().expect("cases").iter().enumerate() {
            let what = || format!("schema {number}, object {index}\n{}\n{}\n{before:?}", line["schema"], case["sent"]);
            let mut object = case["sent"].as_object().expect("an object").clone();
            let text = Node::parse(case["sent"].to_string().as_bytes()).expect("JSON");
            let conformed = shape.conform(&mut object);
            if let Some(why) = case.get("refused").and_then(Value::as_str) {
                assert_eq!(conformed.map(drop), Err(why.to_owned()), "{}", what());
                refused += 1;
                continue;
            }
            let fit = conformed.unwrap_or_else(|why| panic!("{why}\n{}", what()));
            let unknown: Vec<String> = texts(case, "unknown").iter().map(|path| format!("unknown field \"{path}\"")).collect();
            let mut problems = shape.problems(&text);
            problems.retain(|problem| !problem.starts_with("unknown field \"metadata."));
            assert_eq!(problems, unknown, "{}", what());
            assert!(fit.unknown || unknown.is_empty(), "{}", what());
            let want = case["conformed"].as_object().expect("conformed");
            assert_eq!(plain(&object), plain(want), "{}", what());
            shape.default(&mut object);
            let want = case.get("defaulted").and_then(Value::as_object).unwrap_or(want);
            assert_eq!(plain(&object), plain(want), "{}", what());
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
                assert_eq!(told(shape.validate_update(&object, before)), texts(case, "update"), "update {}", what());
                let status = object.get("status").map(|new| told(shape.validate_status(new, before.get("status"))));
                assert_eq!(status.unwrap_or_default(), texts(case, "status"), "status {}", what());
                excused += usize::from(texts(case, "update").len() < texts(case, "errors").len());
            }
            wrong += usize::from(!texts(case, "errors").is_empty());
            judged += 1;
            before = Some(object);
        }
    }
    assert!(judged > 2500 && wrong > 800 && excused > 300 && refused > 20, "{judged} {wrong} {excused} {refused}");
}

#[test]
fn expressions_find_what_they_find_in_go() {
    let texts = [
        "", "a", "b", "ab", "aab", "AB", "K", "k", "\u{212a}", "ſ", "é", "É", "1", "a1_", " a\n", "a\nb", "a.b", "a-b",
        "[a]", "{,3}", "aaa", "ß", "α", "\u{b}", "a&b", "*", "~",
    ];
    let (mut found, mut wrong) = (0, 0);
    for line in unpacked(PATTERNS).lines() {
        let line: Vec<Value> = serde_json::from_str(line).expect("JSON");
        let expression = line[0].as_str().expect("an expression");
        let compiled = crate::regexp::Regexp::compile(expression);
        if let Some(why) = line[1].as_str() {
            assert_eq!(compiled.map(drop).map_err(|error| error.to_string()), Err(why.to_owned()), "{expression:?}");
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
