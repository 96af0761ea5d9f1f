//! ValidatingAdmissionPolicy and MutatingAdmissionPolicy: section 3 of `docs/spec/admission.md`.

mod beta;
mod manifests;
mod mutating;
mod rights;
mod validating;

use serde_json::Value;

const VALIDATING: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const VALIDATING_BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
const MUTATING_BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
/// The version that is off by default.
const BETA: &str = "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies";
const BETA_BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicybindings";

fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}
