//! PersistentVolumeClaimResize: a claim grows only when it is bound, to a class that allows it.

use super::view::{self, View};
use super::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::quantity::nanos;
use crate::request::Request;
use crate::schema::names::Gvr;
use crate::tree::Value;
use crate::{ObjectMap, fields};

const CLASSES: Gvr = Gvr::fixed("storage.k8s.io/v1", "storageclasses");
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) struct PersistentVolumeClaimResize;

impl Admission for PersistentVolumeClaimResize {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation == Operation::Update && of_kind(request, "", "PersistentVolumeClaim")
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        view::check(attempt, move |view, claim| attempt.old.map_or(Ok(()), |old| check(view, claim, old)))
    }
}

fn check(view: &View<'_>, claim: &ObjectMap, old: &ObjectMap) -> Result<(), String> {
    let size = |claim: &ObjectMap| nanos(fields::text(claim, &["spec", "resources", "requests", "storage"]));
    if size(claim).unwrap_or_default() <= size(old).unwrap_or_default() {
        return Ok(());
    }
    if fields::text(old, &["status", "phase"]) != "Bound" {
        return Err("Only bound persistent volume claims can be expanded".to_owned());
    }
    let class = Some(class(claim)).filter(|class| !class.is_empty() && *class == self::class(old));
    let class = class.and_then(|class| view.get(&CLASSES, class));
    match class.is_some_and(|class| class.get("allowVolumeExpansion") == Some(&Value::Bool(true))) {
        true => Ok(()),
        false => Err(
            "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc \
                      must support resize"
                .to_owned(),
        ),
    }
}

fn class(claim: &ObjectMap) -> &str {
    let annotated = fields::at(claim, &["metadata", "annotations", CLASS_ANNOTATION]).and_then(Value::as_str);
    annotated.unwrap_or_else(|| fields::text(claim, &["spec", "storageClassName"]))
}
