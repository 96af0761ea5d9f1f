use std::io::Read;
use std::sync::Arc;

use flate2::read::GzDecoder;

use super::*;
use crate::http::documents::openapi::{Form, OpenApi};
use crate::kinds::built_in;
use crate::schema::builtin;
use crate::schema::kind::Kind;
use crate::schema::names::{GroupResource, Gvk};
use crate::schema::registry::Registry;
use crate::schema::resource::{Behavior, Declaration, Nature, Origin, Scope, Storage, Subresource, Verb};
use crate::schema::structural::Structural;

#[derive(Debug)]
struct Declared(Map);

impl Declaration for Declared {
    fn digest(&self) -> String {
        String::new()
    }

    fn spec(&self) -> Option<Map> {
        Some(self.0.clone())
    }
}

fn scale() -> Kind {
    builtin::kind(&Gvk::fixed("autoscaling/v1", "Scale")).expect("a kind")
}

/// The resource that a version of a definition declares.
fn definition(spec: &Map, version: &Value) -> ResourceDefinition {
    use Verb::{Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch};
    let gvk = Gvk::parse(&format!("ex.io/{}", version["name"].as_str().expect("a name")), "Widget")
        .expect("a kind");
    let schema = version["schema"]["openAPIV3Schema"].as_object().expect("a schema");
    let structural = Structural::read(schema, &builtin::types()).expect("a structural schema");
    let subresources =
        ["scale", "status"].into_iter().filter(|name| !version["subresources"][*name].is_null());
    let subresource = |name: &str| Subresource {
        name: name.into(),
        verbs: vec![Get, Patch, Update],
        kind: (name == "scale").then(scale),
        nature: Nature::Object,
    };
    ResourceDefinition {
        storage: Storage::Table {
            resource: GroupResource::new("ex.io", "widgets"),
            version: gvk.group_version.clone(),
        },
        kind: Kind { gvk, shape: Shape::Structural(Arc::new(structural)) },
        list_kind: "WidgetList".into(),
        plural: "widgets".into(),
        singular: "widget".into(),
        short_names: Vec::new(),
        categories: Vec::new(),
        scope: if spec["scope"] == "Namespaced" { Scope::Namespaced } else { Scope::Cluster },
        origin: Origin::Custom,
        group_priority: 1000,
        verbs: vec![Create, Delete, DeleteCollection, Get, List, Patch, Update, Watch],
        subresources: subresources.map(subresource).collect(),
        behavior: Behavior::default(),
        is_discoverable: true,
        declaration: Some(Arc::new(Declared(spec.clone()))),
    }
}

/// Descriptions are upstream's where the definition gives them, else our own.
fn without_own_words(value: &mut Value, are_declared: bool) {
    match value {
        Value::Object(members) => {
            if !are_declared || members.get("description").is_some_and(|text| !is_declared(text)) {
                members.shift_remove("description");
            }
            members.values_mut().for_each(|below| without_own_words(below, are_declared));
        }
        Value::Array(items) => items.iter_mut().for_each(|below| without_own_words(below, are_declared)),
        _ => {}
    }
}

fn is_declared(text: &Value) -> bool {
    !text.is_string() || text.as_str().is_some_and(|text| text.starts_with("says "))
}

/// References to parameters are replaced by what they refer to.
fn resolved(value: Value, parameters: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let name = members.get("$ref").and_then(Value::as_str);
            if let Some(name) = name.and_then(|name| name.strip_prefix("#/parameters/")) {
                return parameters[name].clone();
            }
            members.into_iter().map(|(name, value)| (name, resolved(value, parameters))).collect()
        }
        Value::Array(items) => items.into_iter().map(|item| resolved(item, parameters)).collect(),
        other => other,
    }
}

/// What upstream's builder publishes of generated definitions (`tests/upstream/validation/published`).
#[test]
fn documents_are_upstreams() {
    let packed = &include_bytes!("../../../../../../testdata/published/upstream.jsonl.gz")[..];
    let mut lines = String::new();
    GzDecoder::new(packed).read_to_string(&mut lines).expect("text in gzip");
    let mut wrong = Vec::new();
    for (number, line) in lines.lines().enumerate() {
        let case: Value = serde_json::from_str(line).expect("a case");
        let spec = case["spec"].as_object().expect("a spec");
        let version = &spec["versions"][0];
        let definitions = vec![definition(spec, version)];
        // The document of v2 is about everything, so it is made for a few only.
        let has_paths = !case["v3"]["paths"].is_null();
        let all = if has_paths { built_in::definitions() } else { Vec::new() };
        let registry = Arc::new(Registry::new(all.into_iter().chain(definitions).collect()));
        let openapi = OpenApi::new(registry, Default::default(), &Default::default(), None);
        for (dialect, want) in [(Dialect::V2, &case["v2"]), (Dialect::V3, &case["v3"])] {
            let kept = match dialect {
                Dialect::V2 => openapi.v2(Form::Json),
                Dialect::V3 => openapi.v3("apis/ex.io/v1", Form::Json).expect("a document"),
            };
            let mut document: Value = serde_json::from_slice(&kept.body()).expect("JSON");
            let schemas = match dialect {
                Dialect::V2 => document["definitions"].take(),
                Dialect::V3 => document["components"]["schemas"].take(),
            };
            let mut parts = vec![
                ("object", schemas["io.ex.v1.Widget"].clone()),
                ("list", schemas["io.ex.v1.WidgetList"].clone()),
            ];
            if has_paths {
                let paths = resolved(document["paths"].take(), &document["parameters"]);
                let paths = paths.as_object().expect("paths").iter();
                let own = paths.filter(|(path, _)| path.starts_with("/apis/ex.io/"));
                parts.push(("paths", own.map(|(path, item)| (path.clone(), item.clone())).collect()));
            }
            for (part, mut found) in parts {
                let mut want = want[part].clone();
                without_own_words(&mut found, part != "paths");
                without_own_words(&mut want, part != "paths");
                sort_lists_of_parameters(&mut found);
                sort_lists_of_parameters(&mut want);
                if found != want {
                    found.sort_all();
                    want.sort_all();
                    wrong.push(format!("{number} {dialect:?} {part}\n  found {found}\n  want  {want}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong: {}", wrong.len(), wrong[..wrong.len().min(4)].join("\n"));
}

/// Upstream's order of an operation's parameters is that of its options' fields.
fn sort_lists_of_parameters(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(Value::Array(parameters)) = members.get_mut("parameters") {
                parameters.sort_by_key(|parameter| parameter["name"].as_str().unwrap_or_default().to_owned());
            }
            members.values_mut().for_each(sort_lists_of_parameters);
        }
        Value::Array(items) => items.iter_mut().for_each(sort_lists_of_parameters),
        _ => {}
    }
}
