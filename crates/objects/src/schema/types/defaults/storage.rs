//! Volumes, claims and classes (`pkg/apis/{core,storage}/v1/defaults.go`).

use super::set::{if_absent, if_zero, part};
use crate::fields::{self, ObjectMap};
use crate::tree::json;

pub(super) fn persistent_volume(volume: &mut ObjectMap) {
    if_zero(fields::object_mut(volume, "status"), "phase", "Pending");
    let Some(spec) = part(volume, "spec") else { return };
    if_zero(spec, "persistentVolumeReclaimPolicy", "Retain");
    if_absent(spec, "volumeMode", "Filesystem");
}

pub(super) fn claim(claim: &mut ObjectMap) {
    if_zero(fields::object_mut(claim, "status"), "phase", "Pending");
}

pub(super) fn claim_spec(spec: &mut ObjectMap) {
    if_absent(spec, "volumeMode", "Filesystem");
}

pub(super) fn class(class: &mut ObjectMap) {
    if_absent(class, "reclaimPolicy", "Delete");
    if_absent(class, "volumeBindingMode", "Immediate");
}

pub(super) fn csi_driver(driver: &mut ObjectMap) {
    let Some(spec) = part(driver, "spec") else { return };
    if_absent(spec, "attachRequired", true);
    for flag in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        if_absent(spec, flag, false);
    }
    if_absent(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    if_zero(spec, "volumeLifecycleModes", json!(["Persistent"]));
    if_absent(spec, "preventPodSchedulingIfMissing", false);
}
