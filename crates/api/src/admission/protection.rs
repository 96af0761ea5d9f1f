//! StorageObjectInUseProtection: volumes get a finalizer that keeps them as long as they are used.
//! kube-controller-manager removes it.

use super::pods::tolerations::list_mut;
use super::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::request::Request;
use crate::tree::Value;
use crate::{ObjectMap, metadata_mut};

pub(super) struct StorageObjectInUseProtection;

impl Admission for StorageObjectInUseProtection {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation == Operation::Create && finalizer(request).is_some()
    }

    fn looks(&self, _: &Attempt<'_>) -> bool {
        false
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        let Some(finalizer) = finalizer(attempt.request) else { return Verdict::Now(Ok(())) };
        Verdict::Now(attempt.object_mut().map(|object| protect(object, finalizer)))
    }
}

/// The finalizer that protects objects of this kind while they are used.
fn finalizer(request: &Request<'_>) -> Option<&'static str> {
    let protected = [
        ("", "PersistentVolume", "kubernetes.io/pv-protection"),
        ("", "PersistentVolumeClaim", "kubernetes.io/pvc-protection"),
        ("storage.k8s.io", "VolumeAttributesClass", "kubernetes.io/vac-protection"),
    ];
    protected
        .into_iter()
        .find(|(group, kind, _)| of_kind(request, group, kind))
        .map(|(.., finalizer)| finalizer)
}

fn protect(object: &mut ObjectMap, finalizer: &str) {
    let finalizers = list_mut(metadata_mut(object), "finalizers");
    if !finalizers.iter().any(|own| own == finalizer) {
        finalizers.push(Value::from(finalizer));
    }
}
