//! Warnings about valid pods.

use crate::kinds::behavior::warnings::address::address;
use crate::kinds::behavior::warnings::label_name;
use crate::kinds::core::pod_spec::warnings::{Owner, spec};
use crate::kinds::prelude::*;

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    label_name(object, "the Pod's hostname", remarks);
    let metadata = At::member(object, "metadata");
    spec(&At::member(object, "spec"), &metadata.get("annotations"), Owner::Pod, remarks);
}

/// Warns about addresses in a Pod's status.
pub fn warn_status(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let status = At::member(object, "status");
    for list in ["podIPs", "hostIPs"] {
        for entry in status.get(list).items() {
            address(&entry.get("ip"), remarks);
        }
    }
}
