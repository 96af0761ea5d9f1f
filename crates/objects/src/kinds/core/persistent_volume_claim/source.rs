//! The two fields for a claim's data source are kept equal (`pkg/api/persistentvolumeclaim/util.go`).

use crate::fields;
use crate::kinds::prelude::*;

const SOURCE: &str = "dataSource";

const REFERENCE: &str = "dataSourceRef";

pub fn prepare(new: &mut ObjectMap, old: Option<&ObjectMap>) {
    let said = |name: &str| {
        old.and_then(|old| fields::at(old, &["spec", name])).is_some_and(|value| !value.is_null())
    };
    let kept = said(SOURCE) || said(REFERENCE);
    let referred = said(REFERENCE);
    let Some(spec) = new.get_mut("spec").and_then(Value::as_object_mut) else { return };
    // The feature CrossNamespaceVolumeDataSource is off in v1.37.
    if !referred && !fields::text(spec, &[REFERENCE, "namespace"]).is_empty() {
        spec.shift_remove(REFERENCE);
    }
    let reference = fields::object(spec, REFERENCE).cloned();
    if !kept && reference.is_none() && !fields::object(spec, SOURCE).is_some_and(is_old_source) {
        spec.shift_remove(SOURCE);
    }
    match (fields::object(spec, SOURCE).cloned(), reference) {
        (Some(source), None) => {
            spec.insert(REFERENCE, Value::Object(source));
        }
        (None, Some(reference)) if fields::text(&reference, &["namespace"]).is_empty() => {
            let source: Map = reference.into_iter().filter(|(name, _)| name != "namespace").collect();
            spec.insert(SOURCE, Value::Object(source));
        }
        _ => {}
    }
}

/// Whether the older field can name this source; others are dropped silently.
fn is_old_source(source: &ObjectMap) -> bool {
    let group = fields::text(source, &["apiGroup"]);
    match fields::text(source, &["kind"]) {
        "PersistentVolumeClaim" => group.is_empty(),
        "VolumeSnapshot" => group == "snapshot.storage.k8s.io",
        _ => false,
    }
}
