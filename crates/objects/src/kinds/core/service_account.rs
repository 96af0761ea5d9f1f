//! ServiceAccounts.

use crate::fields::ObjectMap;
use crate::kinds::behavior::BuiltIn;
use crate::kinds::behavior::columns::Printer;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, age, cells, name};
use crate::kinds::behavior::definition::namespaced;
use crate::kinds::behavior::rules::Rules;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::selectable::SelectableFields;
use crate::kinds::behavior::strategy::Strategy;
use crate::kinds::behavior::warnings::{KindWarnings, Remarks};

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("serviceaccounts", "ServiceAccount")
        .short(&["sa"])
        .sub(&["token"])
        .returns_deleted(),
    strategy: Strategy::PLAIN,
    rules: Rules::METADATA,
    warnings: KindWarnings::new(warn, warn_update),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let metadata = At::member(object, "metadata");
    let annotations = metadata.get("annotations");
    let at = annotations.key(MOUNTABLE_SECRETS);
    if at.is_set() {
        let why = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        remarks.on(&at, why);
    }
}

pub fn warn_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    let metadata = At::member(old, "metadata");
    if !metadata.get("annotations").key(MOUNTABLE_SECRETS).is_set() {
        warn(new, remarks);
    }
}

pub static COLUMNS: Printer =
    Printer { columns: &[NAME, AGE], cells: |object, now| cells![name(object), age(object, now)], ..PLAIN };
