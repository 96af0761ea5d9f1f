//! ServiceAccounts.

use crate::kinds::behavior::columns::NAME_AND_AGE;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("serviceaccounts", "ServiceAccount")
        .short(&["sa"])
        .sub(&["token"])
        .returns_deleted(),
    strategy: Strategy { hooks: &AccountHooks, ..Strategy::PLAIN },
    rules: Rules::METADATA,
    warnings: KindWarnings::new(warn, warn_update),
    columns: &NAME_AND_AGE,
    fields: SelectableFields::metadata,
    other_version: None,
};

#[derive(Debug)]
struct AccountHooks;

impl Hooks for AccountHooks {
    fn prepare_create(&self, object: &mut ObjectMap, _: &Writer<'_>) {
        keep_names_of_secrets(object);
    }

    fn prepare_update(&self, new: &mut ObjectMap, _: &ObjectMap, _: &Writer<'_>) {
        keep_names_of_secrets(new);
    }
}

/// Secrets are those of the account's namespace, so that references keep nothing but names.
fn keep_names_of_secrets(account: &mut ObjectMap) {
    let secrets = account.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten();
    for secret in secrets.filter_map(Value::as_object_mut) {
        secret.retain(|name, _| name == "name");
    }
}

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
