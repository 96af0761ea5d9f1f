//! Names and annotations that mean something else than they seem to.

use super::Remarks;
use crate::api::ObjectMap;
use crate::api::validation::at::At;
use crate::api::validation::format::dns1123_label;
use crate::gotext;

const MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";
/// The end of names of admission's objects that come from files.
const STATIC: &str = ".static.k8s.io";

/// A name that becomes a part of others, or of a host's.
pub(super) fn label_name(object: &ObjectMap, used: &str, remarks: &mut Remarks<'_>) {
    let metadata = At::member(object, "metadata");
    let name = metadata.get("name");
    let found = dns1123_label(name.text());
    if !found.is_empty() {
        let found = found.join(" ");
        remarks.on(
            &name,
            format_args!(
                "this is used in {used}, which can result in surprising behavior; a DNS label is recommended: [{found}]"
            ),
        );
    }
}

pub(super) fn account(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let metadata = At::member(object, "metadata");
    let annotations = metadata.get("annotations");
    let at = annotations.key(MOUNTABLE_SECRETS);
    if at.is_set() {
        let why = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
        remarks.on(&at, why);
    }
}

pub(super) fn account_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    let metadata = At::member(old, "metadata");
    if !metadata.get("annotations").key(MOUNTABLE_SECRETS).is_set() {
        account(new, remarks);
    }
}

pub(super) fn manifest(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let metadata = At::member(object, "metadata");
    let name = metadata.get("name");
    if name.text().ends_with(STATIC) {
        let end = gotext::quote(STATIC);
        let what = "are reserved for static manifest-based configurations and cannot be managed via the API";
        remarks.on(&name, format_args!("names ending with {end} {what}"));
    }
}

pub(super) fn slice(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let spec = At::member(object, "spec");
    let driver = spec.get("driver");
    if driver.text().to_lowercase() != driver.text() {
        let text = gotext::quote(driver.text());
        remarks.on(
            &driver,
            format_args!("driver names should be lowercase; {text} contains uppercase characters"),
        );
    }
}
