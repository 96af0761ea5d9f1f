//! DefaultStorageClass and DefaultIngressClass: an object that names no class gets the newest class that is marked as
//! default.

use std::cmp::Reverse;

use super::view::{self, View};
use super::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::request::Request;
use crate::schema::names::Gvr;
use crate::tree::Value;
use crate::{ObjectMap, fields};

const STORAGE: Gvr = Gvr::fixed("storage.k8s.io/v1", "storageclasses");
const STORAGE_MARKS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const INGRESS: Gvr = Gvr::fixed("networking.k8s.io/v1", "ingressclasses");
const INGRESS_MARKS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

pub(super) struct DefaultStorageClass;

impl Admission for DefaultStorageClass {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation == Operation::Create && of_kind(request, "", "PersistentVolumeClaim")
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        view::complete(attempt, of_claim)
    }
}

pub(super) struct DefaultIngressClass;

impl Admission for DefaultIngressClass {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation == Operation::Create && of_kind(request, "networking.k8s.io", "Ingress")
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        view::complete(attempt, of_ingress)
    }
}

fn of_claim(view: &View<'_>, claim: &mut ObjectMap) -> Result<(), String> {
    let annotated = annotation(claim, "volume.beta.kubernetes.io/storage-class").is_some();
    complete(view, claim, annotated, "storageClassName", (&STORAGE, &STORAGE_MARKS));
    Ok(())
}

fn of_ingress(view: &View<'_>, ingress: &mut ObjectMap) -> Result<(), String> {
    let annotated = annotation(ingress, "kubernetes.io/ingress.class").is_some();
    complete(view, ingress, annotated, "ingressClassName", (&INGRESS, &INGRESS_MARKS));
    Ok(())
}

fn complete(
    view: &View<'_>,
    object: &mut ObjectMap,
    annotated: bool,
    field: &str,
    (resource, marks): (&Gvr, &[&str]),
) {
    let spec = fields::object_mut(object, "spec");
    if annotated || spec.get(field).is_some_and(|class| !class.is_null()) {
        return;
    }
    if let Some(name) = default(view, resource, marks) {
        spec.insert(field, name.into());
    }
}

fn default(view: &View<'_>, resource: &Gvr, marks: &[&str]) -> Option<String> {
    let mut classes: Vec<ObjectMap> = marks.iter().flat_map(|mark| view.mentioning(resource, mark)).collect();
    classes.retain(|class| marks.iter().any(|mark| annotation(class, mark) == Some("true")));
    let meta = |class: &ObjectMap, name: &str| fields::text(class, &["metadata", name]).to_owned();
    let newest =
        classes.iter().min_by_key(|class| (Reverse(meta(class, "creationTimestamp")), meta(class, "name")));
    newest.map(|class| meta(class, "name"))
}

fn annotation<'a>(object: &'a ObjectMap, name: &str) -> Option<&'a str> {
    fields::at(object, &["metadata", "annotations", name]).and_then(Value::as_str)
}
