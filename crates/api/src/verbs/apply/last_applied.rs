//! The annotation in which kubectl recorded what it applied, before the server did that: it contains the applied body.

use crate::kinds::behavior::rules::metadata::ANNOTATIONS_MAX;
use crate::meta::pairs;
use crate::ownership::Kind;
use crate::patch::apply::compare::compare;
use crate::patch::apply::conflict::Conflict;
use crate::patch::apply::managers::Acting;
use crate::patch::apply::owned::owned;
use crate::patch::apply::ownership::Versions;
use crate::patch::apply::validate::validate;
use crate::tree::Value;
use crate::{ObjectMap, gotext, metadata, metadata_mut};

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The manager whose record this is.
const KUBECTL: &str = "kubectl";

/// Removes those conflicts of kubectl's with other managers that concern fields which kubectl applied itself on the
/// client's side and which still have that value.
pub fn unforgiven(
    kind: &Kind<'_>,
    live: &ObjectMap,
    acting: &Acting,
    conflicts: Vec<Conflict>,
) -> Vec<Conflict> {
    let Some(own) = own_fields(kind, live, acting) else { return conflicts };
    let left = conflicts.into_iter().map(|conflict| {
        let fields = conflict.fields.difference(&own);
        Conflict { fields, ..conflict }
    });
    left.filter(|conflict| !conflict.fields.is_empty()).collect()
}

fn own_fields(
    kind: &Kind<'_>,
    live: &ObjectMap,
    acting: &Acting,
) -> Option<crate::patch::apply::fields::FieldSet> {
    if acting.identity.name != KUBECTL {
        return None;
    }
    let record: ObjectMap = serde_json::from_str(annotation(live)?).ok()?;
    let version = &acting.identity.api_version;
    let schema = kind.schema(version)?;
    if record.get("apiVersion").is_none_or(|recorded| recorded != version.as_str()) {
        return None;
    }
    validate(schema, &record).ok()?;
    let changed = compare(schema, &record, live).written();
    Some(owned(schema, &record).difference(&changed))
}

/// Updates the annotation, if the object has one.
pub fn refresh(object: &mut ObjectMap, config: &ObjectMap, manager: &str) {
    if manager != KUBECTL || annotation(object).is_none_or(str::is_empty) {
        return;
    }
    let mut record = config.clone();
    if let Some(Value::Object(annotations)) =
        record.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"))
    {
        annotations.shift_remove(ANNOTATION);
    }
    let mut record = Value::Object(record);
    sort(&mut record);
    let text = format!("{}\n", gotext::json(&record));
    let metadata = metadata_mut(object);
    let others = pairs(metadata, "annotations").filter(|(key, _)| *key != ANNOTATION);
    let size: usize = others.map(|(key, value)| key.len() + value.len()).sum();
    let fits = size + ANNOTATION.len() + text.len() <= ANNOTATIONS_MAX;
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        match fits {
            true => annotations.insert(ANNOTATION, text.into()),
            false => annotations.shift_remove(ANNOTATION),
        };
    }
}

/// Sorts members as Go prints maps.
fn sort(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.sort_keys();
            members.values_mut().for_each(sort);
        }
        Value::Array(items) => items.iter_mut().for_each(sort),
        _ => {}
    }
}

fn annotation(object: &ObjectMap) -> Option<&str> {
    let annotations = pairs(metadata(object)?, "annotations");
    annotations.into_iter().find(|(key, _)| *key == ANNOTATION).map(|(_, value)| value)
}
