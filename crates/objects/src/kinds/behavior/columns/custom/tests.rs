use std::io::Read;

use flate2::read::GzDecoder;

use super::*;

/// Cells of generated columns and objects, as upstream's convertor makes them (`tests/upstream/columns`).
#[test]
fn cells_are_upstreams() {
    let packed = &include_bytes!("../../../../../../../testdata/columns/upstream.jsonl.gz")[..];
    let mut lines = String::new();
    GzDecoder::new(packed).read_to_string(&mut lines).expect("text in gzip");
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for line in lines.lines() {
        // Reading a body makes floats of such numbers.
        if line.contains("9223372036854776000") {
            continue;
        }
        let case: Value = serde_json::from_str(line).expect("a case");
        let column = json!({"name": "C", "type": case["type"].clone(), "jsonPath": case["path"].clone()});
        let declared = DeclaredColumns::read(&[column]);
        let shown = declared.definitions().as_array().is_some_and(|columns| columns.len() == 2);
        let now = case["now"].as_str().and_then(|now| now.parse().ok()).expect("a time");
        let mut object = case["object"].clone();
        crate::json::whole_numbers(&mut object);
        let cell = declared.cells(&object, now).get(1).cloned().unwrap_or_default();
        cells += usize::from(!cell.is_null());
        if case["shown"] != shown || cell != case["cell"] {
            wrong.push(format!("{} {}: {shown} {cell}, not {}", case["type"], case["path"], case["cell"]));
        }
    }
    assert!(wrong.is_empty(), "{} wrong: {:#?}", wrong.len(), &wrong[..wrong.len().min(20)]);
    assert!(cells > 500, "{cells}");
}

#[test]
fn a_path_that_cannot_be_parsed_ends_the_columns() {
    let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    let declared =
        DeclaredColumns::read(&[column("A", ".spec.a"), column("B", ".spec["), column("C", ".spec.c")]);
    let names: Vec<Value> = declared
        .definitions()
        .as_array()
        .expect("columns")
        .iter()
        .map(|column| column["name"].clone())
        .collect();
    assert_eq!(names, ["Name", "A"]);
}

#[test]
fn without_columns_there_is_the_age() {
    let declared = DeclaredColumns::default();
    let object =
        json!({"metadata": {"name": "w", "creationTimestamp": "2026-07-01T11:55:00Z"}, "spec": {"a": 1}});
    let now = "2026-07-01T12:00:00Z".parse().expect("a time");
    assert_eq!(declared.cells(&object, now), ["w", "5m"]);
    let definitions = declared.definitions();
    assert_eq!((&definitions[1]["name"], &definitions[1]["type"]), (&"Age".into(), &"date".into()));
}

/// Columns and objects that multiply: what a row takes is counted, and the rest of its cells is nothing.
#[test]
fn a_row_is_bounded() {
    let now = "2026-07-01T12:00:00Z".parse().expect("a time");
    let declared = |path: &str, count: usize| {
        let columns: Vec<Value> =
            (0..count).map(|_| json!({"name": "C", "type": "string", "jsonPath": path})).collect();
        DeclaredColumns::read(&columns)
    };
    let items: Vec<Value> = (0..10_000).map(|number| json!({"a": number, "b": {"a": [number]}})).collect();
    let wide = json!({"metadata": {"name": "w"}, "spec": {"items": items}});
    for path in ["..none", ".spec.items[?(@..a==1)].a", "..a..a..a", ".spec.items[*]..a[*]"] {
        let declared = declared(path, 2000);
        let mut cells = Vec::new();
        let steps = crate::tree::work::of(|| cells = declared.cells(&wide, now));
        assert!(steps < 2 * STEPS_OF_ROW && cells.len() == 2001, "{path}: {steps}");
        assert!(cells[1..].iter().any(Value::is_null), "{path}");
    }
    // Three megabytes, a thousand times.
    let long = json!({"metadata": {"name": "w"}, "spec": {"text": "x".repeat(3 << 20)}});
    for path in [".spec", ".spec.text"] {
        let cells = declared(path, 1000).cells(&long, now);
        let shown: Vec<usize> = cells[1..].iter().filter_map(Value::as_str).map(str::len).collect();
        assert!(shown.len() == 2 && shown.iter().sum::<usize>() < TEXT_OF_ROW + (4 << 20), "{shown:?}");
    }
}
