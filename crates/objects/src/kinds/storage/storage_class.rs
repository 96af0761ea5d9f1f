//! StorageClasses.

use std::collections::{BTreeMap, BTreeSet};

use crate::causes::Cause;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, flag, name, optional_text, text, text_column};
use crate::kinds::behavior::format::label_key;
use crate::kinds::behavior::rules::selector;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::core::node::labels::deprecated;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("storageclasses", "StorageClass").short(&["sc"]).returns_deleted(),
    strategy: Strategy { status_metadata: RESET, ..Strategy::PLAIN },
    rules: Rules::timeless(create),
    warnings: KindWarnings::same(warn),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const PARAMETERS: usize = 512;

const PARAMETERS_SIZE: usize = 256 * 1024;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    provisioner(&At::member(object, "provisioner"), errors);
    parameters(&At::member(object, "parameters"), errors);
    let (reclaim, binding) = (At::member(object, "reclaimPolicy"), At::member(object, "volumeBindingMode"));
    errors.one_of(&reclaim, reclaim.text_or("Delete"), &["Delete", "Retain"]);
    let mode = binding.opt_text().unwrap_or("Immediate");
    errors.one_of(&binding, mode, &["Immediate", "WaitForFirstConsumer"]);
    topologies(&At::member(object, "allowedTopologies"), errors);
}

pub fn provisioner(at: &At<'_, '_>, errors: &mut Errors) {
    let name = at.text().to_lowercase();
    if !name.is_empty() {
        errors.invalid_each(at, &name, label_key(&name));
    }
}

pub fn parameters(map: &At<'_, '_>, errors: &mut Errors) {
    if map.len() > PARAMETERS {
        return errors.too_long(map, PARAMETERS);
    }
    let mut size = 0;
    for (key, value) in map.entries() {
        if key.is_empty() {
            errors.invalid(map, key, "field can not be empty.");
        }
        size += key.len() + value.text().len();
    }
    if size > PARAMETERS_SIZE {
        errors.too_long(map, PARAMETERS_SIZE);
    }
}

fn topologies(list: &At<'_, '_>, errors: &mut Errors) {
    // The number of occurrences of each term.
    let mut terms: BTreeMap<BTreeMap<&str, BTreeSet<&str>>, usize> = BTreeMap::new();
    for term in list.items() {
        let mut keys = BTreeMap::new();
        for requirement in term.get("matchLabelExpressions").items() {
            let (key, values) = (requirement.get("key"), requirement.get("values"));
            errors.present(&values, "");
            errors.distinct(&values);
            selector::label_name(&key, errors);
            if keys.insert(key.text(), values.texts().collect::<BTreeSet<_>>()).is_some() {
                errors.duplicate(&key, key.text());
            }
        }
        // Upstream keeps one empty term per term, and compares with these, too.
        let empties = if keys.is_empty() { list.len() } else { 0 };
        let before = terms.entry(keys).or_default();
        let expressions = term.get("matchLabelExpressions");
        errors.add_times(*before + empties, || Cause::duplicate(expressions.path().to_string(), "\"\""));
        *before += 1;
    }
}

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    for topology in At::member(object, "allowedTopologies").items() {
        for expression in topology.get("matchLabelExpressions").items() {
            let key = expression.get("key");
            if let Some(message) = deprecated(key.text()) {
                remarks.on(&key, message);
            }
        }
    }
}

const DEFAULT_CLASS_ANNOTATIONS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Provisioner", "Driver that makes volumes of the class.").at("provisioner"),
        text_column("ReclaimPolicy", "What becomes of a volume when its claim is gone.")
            .of(|object, _| optional_text(&object["reclaimPolicy"], "Delete").into()),
        text_column("VolumeBindingMode", "When volumes are made and bound.")
            .of(|object, _| optional_text(&object["volumeBindingMode"], "Immediate").into()),
        text_column("AllowVolumeExpansion", "Whether volumes can grow.")
            .of(|object, _| flag(&object["allowVolumeExpansion"]).into()),
        AGE,
    ],
    default: Some(default),
    ..PLAIN
};

/// The newest of the classes that are marked, and the first by name of those that are as new.
fn default(classes: &[Value]) -> Option<&str> {
    let is_marked = |class: &&Value| {
        let annotations = &class["metadata"]["annotations"];
        DEFAULT_CLASS_ANNOTATIONS.iter().any(|annotation| annotations[*annotation] == "true")
    };
    let created = |class: &Value| text(&class["metadata"]["creationTimestamp"]).to_owned();
    let newest = |a: &&Value, b: &&Value| created(a).cmp(&created(b)).then_with(|| name(b).cmp(name(a)));
    classes.iter().filter(is_marked).max_by(newest).map(name)
}
