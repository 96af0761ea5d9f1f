//! The cases in `testdata/strategic`.

use rowplane_objects::patch::strategic::apply;
use rowplane_objects::schema::builtin;
use rowplane_objects::schema::names::Gvk;
use rowplane_values::tree::Map;
use rowplane_values::tree::Value;
use rowplane_values::tree::json;
use rowplane_values::tree::work;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    live: Map,
    patch: Value,
    result: Option<Map>,
    /// The variant of `PatchError`, with its text if it has one.
    error: Option<String>,
}

#[test]
fn cases() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/strategic");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let file: File =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let kind = builtin::kind(&Gvk::parse(&file.api_version, &file.kind).unwrap()).unwrap();
        for case in file.cases {
            let found = apply(case.live, &case.patch, kind.go().unwrap());
            let found = found.map_err(|error| format!("{error:?}"));
            match (case.result, case.error) {
                (Some(result), None) => assert_eq!(found, Ok(result), "{}", case.name),
                (None, Some(error)) => assert_eq!(found, Err(error), "{}", case.name),
                _ => panic!("{}: a case has a result or an error", case.name),
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count} cases");
}

/// Twice as many elements take twice as much work.
#[test]
fn long_lists_are_merged_in_linear_time() {
    let pod = builtin::kind(&Gvk::fixed("v1", "Pod")).expect("pods");
    let pod = pod.go().expect("a message");
    let named = |names: Vec<usize>, more: Value| -> Value {
        let item = |n: usize| {
            let mut item = more.clone();
            item.as_object_mut().expect("an object").insert("name", format!("c{n}").into());
            item
        };
        names.into_iter().map(item).collect()
    };
    let live = |count: usize| {
        let containers = named((0..count).collect(), json!({"image": "a"}));
        let finalizers: Value = (0..count).map(|n| format!("f/{n}")).collect();
        json!({"metadata": {"finalizers": finalizers}, "spec": {"containers": containers}})
    };
    let turned = |count: usize| named((count / 2..3 * count / 2).rev().collect(), json!({"image": "b"}));
    let patches: [fn(usize, Value) -> Value; 5] = [
        |_, turned| json!({"spec": {"containers": turned}}),
        |_, turned| json!({"spec": {"containers": turned, "$setElementOrder/containers": turned}}),
        |count, _| {
            let delete = |n| json!({"$patch": "delete", "name": format!("c{n}")});
            json!({"spec": {"containers": (0..count / 2).map(delete).collect::<Value>()}})
        },
        |count, _| {
            let gone: Value = (0..count / 2).map(|n| format!("f/{n}")).collect();
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": gone}})
        },
        |count, _| {
            let more: Value = (count / 2..3 * count / 2).map(|n| format!("f/{n}")).collect();
            json!({"metadata": {"finalizers": more}})
        },
    ];
    for patch in patches {
        let taken = |count: usize| {
            let Value::Object(document) = live(count) else { unreachable!("an object") };
            let patch = patch(count, turned(count));
            work::of(|| drop(apply(document, &patch, pod).expect("a patch")))
        };
        let (one, double) = (taken(2000), taken(4000));
        assert!(double <= 2 * one + 1000, "{one} and {double} steps");
    }
}

/// Removes members of a map, in each way in which a patch can say that.
#[test]
fn many_members_are_removed_in_linear_time() {
    let kind = builtin::kind(&Gvk::fixed("v1", "ConfigMap")).expect("config maps");
    let kind = kind.go().expect("a message");
    let patches: [fn(usize) -> (String, Value); 2] =
        [|n| (format!("k{n}"), Value::Null), |n| (format!("$deleteFromPrimitiveList/k{n}"), Value::Null)];
    for patch in patches {
        let taken = |count: usize| {
            let data: Map = (0..count).map(|n| (format!("k{n}"), "v".into())).collect();
            let Value::Object(document) = json!({"data": data}) else { unreachable!("an object") };
            let patch: Map = (1..count).map(patch).collect();
            let mut merged = Map::new();
            let steps =
                work::of(|| merged = apply(document, &json!({"data": patch}), kind).expect("a patch"));
            assert_eq!(merged["data"], json!({"k0": "v"}));
            steps
        };
        let (one, double) = (taken(2000), taken(4000));
        assert!(double <= 2 * one + 1000, "{one} and {double} steps");
    }
}
