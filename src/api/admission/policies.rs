//! ValidatingAdmissionPolicy and MutatingAdmissionPolicy: expressions that users write refuse requests, or change objects
//! (`pkg/admission/plugin/policy`).

mod choice;
mod mutating;
mod params;
mod policy;
mod validating;

pub(super) use mutating::{Invoked, MutatingAdmissionPolicy};
pub(super) use validating::ValidatingAdmissionPolicy;

use crate::api::request::{Hooks, Request};

/// Policies do not see policies and their bindings.
const EXEMPT: [&str; 4] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// Whether policies may see a request.
fn sees(request: &Request<'_>) -> bool {
    let definition = &request.target.resource.definition;
    let is_exempt = definition.group().as_str() == "admissionregistration.k8s.io"
        && EXEMPT.contains(&definition.plural.as_str());
    request.hooks == Hooks::See && !is_exempt
}
