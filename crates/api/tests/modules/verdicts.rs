//! Compares validation with upstream's (`tests/upstream/validation`) on thousands of objects with one wrong field each.

use std::collections::BTreeSet;
use std::io::Read;

use flate2::read::GzDecoder;
use jiff::Timestamp;
use serde::Deserialize;

use rowplane_api::options::strictness::conform;
use rowplane_api::{ObjectMap, meta, metadata, metadata_mut};
use rowplane_objects::causes::Cause;
use rowplane_objects::kinds::behavior::Behavior;
use rowplane_objects::kinds::behavior::strategy::Writer;
use rowplane_objects::kinds::built_in;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::schema::resource::ResourceDefinition;
use rowplane_objects::user::User;
use rowplane_objects::warnings::Warnings;
use rowplane_values::tree::Value;

/// A valid object, and upstream's verdict after each change of it.
#[derive(Deserialize)]
struct Set {
    object: ObjectMap,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    path: String,
    #[serde(default, deserialize_with = "some")]
    to: Option<Value>,
    verdicts: std::collections::BTreeMap<String, Vec<[String; 3]>>,
}

/// Reads null as a value.
fn some<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

type Verdict = BTreeSet<(String, String, String)>;

fn compare(name: &str) {
    let path = format!("{}/../../testdata/validation/cases/{name}.json.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    GzDecoder::new(&std::fs::read(path).unwrap()[..]).read_to_string(&mut text).unwrap();
    let (mut compared, mut differences) = (0, Vec::new());
    for line in text.lines() {
        let mut set: Set = serde_json::from_str(line).unwrap();
        let definition = definition(&set.object);
        complete(&definition, &mut set.object);
        for case in &set.cases {
            if LOST.iter().any(|lost| case.path.starts_with(lost)) && case.to.as_ref().is_none_or(is_empty) {
                continue;
            }
            for (verb, wanted) in &case.verdicts {
                let wanted = wanted.iter().cloned().map(|[kind, field, text]| (kind, field, text));
                let wanted: Verdict = wanted.filter(|cause| !is_unchecked(cause)).collect();
                let found = judge(&definition, verb, &set.object, case);
                compared += 1;
                if shown(&found) != shown(&wanted) {
                    let to = case.to.as_ref().map_or("-".to_owned(), ToString::to_string);
                    let kind = definition.kind_name();
                    differences.push(format!(
                        "{kind} {verb} {} = {to}\n  upstream {:?}\n  rowplane {:?}",
                        case.path,
                        shown(&wanted).difference(&shown(&found)).collect::<Vec<_>>(),
                        shown(&found).difference(&shown(&wanted)).collect::<Vec<_>>()
                    ));
                }
            }
        }
    }
    assert!(compared > 0);
    let few = differences.iter().take(400).cloned().collect::<Vec<_>>().join("\n");
    assert!(differences.is_empty(), "{} of {compared} differ:\n{few}", differences.len());
}

/// Fields whose bad values upstream prints as large internal structs, with Go's names; only the text behind the value
/// is compared.
const INTERNAL: [&str; 12] = [
    "spec",
    "status.allocation",
    "spec.nodeSelector.nodeSelectorTerms",
    "spec.versions",
    "spec.volumeClaimTemplates",
    "spec.template",
    "spec.template.spec",
    "spec.podFailurePolicy",
    "spec.affinity.nodeAffinity",
    "nodeAffinity",
    "spec.parentRef",
    "spec.containers[0].securityContext",
];

/// Upstream's checks that we do not make: of JSONPath.
fn is_unchecked((_, _, text): &(String, String, String)) -> bool {
    text.contains(": invalid JSONPath: ")
}

/// Fields in which upstream distinguishes empty from absent, and we cannot.
const LOST: [&str; 2] = ["/spec/resources/requests", "/spec/request"];

fn is_empty(value: &Value) -> bool {
    [rowplane_values::tree::json!([]), rowplane_values::tree::json!({}), "".into()].contains(value)
}

fn shown(verdict: &Verdict) -> Verdict {
    let shorten = |(kind, field, text): &(String, String, String)| {
        // Empty fields are absent as soon as a request has been read.
        let text = text
            .replace(": []:", ": null:")
            .replace(": {}:", ": null:")
            .replace(":[]}", ":null}")
            .replace(":[],", ":null,");
        // The two parsers of CEL name the expected tokens differently.
        let text = text.split_once(" expecting ").map_or(&*text, |(text, _)| text).to_owned();
        let text = match text.rsplit_once(['}', ']']) {
            _ if !INTERNAL.iter().any(|prefix| is_at(field, prefix)) => text,
            Some((_, why)) => why.to_owned(),
            None => text.trim_start_matches("Invalid value: null").to_owned(),
        };
        (kind.clone(), field.clone(), text)
    };
    verdict.iter().map(shorten).collect()
}

fn is_at(field: &str, prefix: &str) -> bool {
    field == prefix || (prefix.ends_with("Affinity") && field.starts_with(prefix))
}

fn definition(object: &ObjectMap) -> ResourceDefinition {
    let gvk = Gvk::of(object).unwrap();
    let found = built_in::definitions().into_iter().find(|definition| *definition.gvk() == gvk);
    found.unwrap_or_else(|| panic!("no {gvk}"))
}

/// Completes an object as a request's body is completed.
fn complete(definition: &ResourceDefinition, object: &mut ObjectMap) {
    let kind = &definition.kind;
    conform(kind, object).unwrap_or_else(|why| panic!("{} {object:?}: {why}", kind.gvk));
    kind.default(object).expect("room");
}

fn judge(definition: &ResourceDefinition, verb: &str, old: &ObjectMap, case: &Case) -> Verdict {
    let Behavior { rules, strategy, .. } = built_in::behavior(definition);
    let user = User::default();
    let writer = Writer { user: &user, warnings: &Warnings::default(), now: "2026-01-02T03:04:05Z" };
    let mut new = changed(old, case);
    complete(definition, &mut new);
    let own = |object: &ObjectMap| metadata(object).cloned().unwrap_or_default();
    let causes = if verb == "create" {
        metadata_mut(&mut new).shift_remove("resourceVersion");
        strategy.prepare_create(&mut new, &writer);
        let mut causes = meta::create::validate(&own(&new), definition.scope, strategy.names);
        causes.append(rules.create(&new).expect("threads"));
        causes
    } else {
        meta::update::prepare(metadata_mut(&mut new), &own(old));
        if verb == "update" {
            strategy.prepare_update(&mut new, old, &writer);
        } else {
            strategy.prepare_status_update(&mut new, old, &writer);
        }
        let mut causes = meta::update::validate(&own(&new), &own(old), definition.scope);
        let found = if verb == "update" {
            rules.update(&new, old)
        } else {
            rules.status(&new, old, Timestamp::now())
        };
        causes.append(found.expect("threads"));
        causes
    };
    let line = |cause: Cause| {
        let text = cause.message.split('\n').next().unwrap_or_default().to_owned();
        (cause.reason.as_str().to_owned(), cause.field, text)
    };
    causes.into_vec().into_iter().map(line).collect()
}

fn changed(object: &ObjectMap, case: &Case) -> ObjectMap {
    let mut object = Value::Object(object.clone());
    let (parent, key) = case.path.rsplit_once('/').unwrap();
    let key = key.replace("~1", "/").replace("~0", "~");
    match (object.pointer_mut(parent).unwrap(), &case.to) {
        (Value::Object(parent), Some(value)) => _ = parent.insert(key, value.clone()),
        (Value::Object(parent), None) => _ = parent.shift_remove(&key),
        (Value::Array(parent), Some(value)) => parent[key.parse::<usize>().unwrap()] = value.clone(),
        (Value::Array(parent), None) => _ = parent.remove(key.parse().unwrap()),
        _ => panic!("{} has no parent", case.path),
    }
    match sorted(object) {
        Value::Object(object) => object,
        _ => unreachable!("still an object"),
    }
}

/// Sorts members as Go prints maps, since upstream was given the object in this order.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members: std::collections::BTreeMap<_, _> = members.into_iter().collect();
            Value::Object(members.into_iter().map(|(name, value)| (name, sorted(value))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[test]
fn pods() {
    compare("pod");
}

#[test]
fn workloads() {
    compare("apps");
}

#[test]
fn jobs() {
    compare("batch");
}

#[test]
fn networks() {
    compare("networking");
}

#[test]
fn volumes() {
    compare("storage");
}

#[test]
fn configurations() {
    compare("config");
}

#[test]
fn roles() {
    compare("rbac");
}

#[test]
fn admissions() {
    compare("admission");
}

#[test]
fn extensions() {
    compare("extension");
}

#[test]
fn devices() {
    compare("devices");
}

#[test]
fn certificates() {
    compare("certificates");
}

#[test]
fn events() {
    compare("events");
}
