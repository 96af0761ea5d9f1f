//! Approvals that definitions in the groups of the Kubernetes community need, and that an annotation holds.

use super::conditions::Condition;
use crate::fields;
use crate::gotext::quote;
use crate::kinds::prelude::*;

const APPROVAL: &str = "api-approved.kubernetes.io";
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

#[derive(PartialEq)]
pub enum Approval {
    Missing,
    Bypassed,
    Approved,
    Invalid,
}

pub fn of(object: &ObjectMap) -> Approval {
    let text = annotation(object);
    let is_url = text.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty()
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric())
            && !rest.starts_with('/')
            && !rest.is_empty()
    });
    match text {
        "" => Approval::Missing,
        _ if text.starts_with("unapproved") => Approval::Bypassed,
        _ if is_url => Approval::Approved,
        _ => Approval::Invalid,
    }
}

fn annotation(object: &ObjectMap) -> &str {
    fields::text(object, &["metadata", "annotations", APPROVAL])
}

fn is_protected(object: &ObjectMap) -> bool {
    let group = fields::text(object, &["spec", "group"]);
    let own =
        |domain: &str| group == domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    own("k8s.io") || own("kubernetes.io")
}

fn need() -> String {
    format!("protected groups must have approval annotation {}", quote(APPROVAL))
}

fn missing() -> String {
    format!("{}, {SEE}", need())
}

fn invalid() -> String {
    format!("{} with either a URL or a reason starting with \"unapproved\", {SEE}", need())
}

pub fn required(object: &ObjectMap, errors: &mut Errors) {
    if !is_protected(object) {
        return;
    }
    let metadata = At::member(object, "metadata");
    let annotations = metadata.get("annotations");
    let annotation = annotations.key(APPROVAL);
    match of(object) {
        Approval::Missing => errors.required(&annotation, &missing()),
        Approval::Invalid => errors.invalid(&annotation, annotation.text(), &invalid()),
        Approval::Bypassed | Approval::Approved => {}
    }
}

/// The status condition about the approval; `None` for groups that need none.
pub fn condition(object: &ObjectMap) -> Option<Condition> {
    if !is_protected(object) {
        return None;
    }
    let (status, reason, message) = match of(object) {
        Approval::Missing => (false, "MissingAnnotation", missing()),
        Approval::Bypassed => {
            (false, "UnapprovedAnnotation", format!("not approved: {}", quote(annotation(object))))
        }
        Approval::Approved => (true, "ApprovedAnnotation", format!("approved in {}", annotation(object))),
        Approval::Invalid => (false, "InvalidAnnotation", invalid()),
    };
    Some(Condition::new("KubernetesAPIApprovalPolicyConformant", status, reason, message))
}
