//! Priority classes, devices, and subjects of roles (`pkg/apis/{scheduling,resource,rbac}/v1/defaults.go`).

use super::set::{if_absent, if_zero, text};
use crate::fields::{self, ObjectMap};
use crate::gotext::now;

const RBAC: &str = "rbac.authorization.k8s.io";

pub(super) fn priority_class(class: &mut ObjectMap) {
    if_absent(class, "preemptionPolicy", "PreemptLowerPriority");
}

pub(super) fn device_request(request: &mut ObjectMap) {
    if_zero(request, "allocationMode", "ExactCount");
    if text(request, "allocationMode") == "ExactCount" {
        if_zero(request, "count", 1);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a default is a function of the object alone, and this one is the time of day"
)]
pub(super) fn device_taint(taint: &mut ObjectMap) {
    if_absent(taint, "timeAdded", now());
}

pub(super) fn role_binding(binding: &mut ObjectMap) {
    if_zero(fields::object_mut(binding, "roleRef"), "apiGroup", RBAC);
}

pub(super) fn subject(subject: &mut ObjectMap) {
    if matches!(text(subject, "kind"), "User" | "Group") {
        if_zero(subject, "apiGroup", RBAC);
    }
}
