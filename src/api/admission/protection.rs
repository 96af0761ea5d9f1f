//! StorageObjectInUseProtection: volumes wait for those who use them. Who takes the finalizers off is
//! kube-controller-manager.

use super::tolerations::list_mut;
use super::view::View;
use crate::api::{ObjectMap, metadata_mut};
use crate::tree::Value;

pub(super) fn volume(_: &View<'_>, volume: &mut ObjectMap) -> Result<(), String> {
    protect(volume, "kubernetes.io/pv-protection")
}

pub(super) fn claim(_: &View<'_>, claim: &mut ObjectMap) -> Result<(), String> {
    protect(claim, "kubernetes.io/pvc-protection")
}

pub(super) fn attributes(_: &View<'_>, class: &mut ObjectMap) -> Result<(), String> {
    protect(class, "kubernetes.io/vac-protection")
}

fn protect(object: &mut ObjectMap, finalizer: &str) -> Result<(), String> {
    let finalizers = list_mut(metadata_mut(object), "finalizers");
    if !finalizers.iter().any(|own| own == finalizer) {
        finalizers.push(Value::from(finalizer));
    }
    Ok(())
}
