//! ValidatingAdmissionPolicy and MutatingAdmissionPolicy: expressions that users write refuse requests, or change objects
//! (`pkg/admission/plugin/policy`).

#[cfg(test)]
mod cases;
mod choice;
mod mutating;
mod params;
mod policy;
pub mod type_checking;
mod validating;

pub(in crate::admission) use mutating::MutatingAdmissionPolicy;
pub(in crate::admission) use validating::ValidatingAdmissionPolicy;

use std::path::PathBuf;
use std::sync::Arc;

use super::follow::Index;
use super::{by_resource, manifests};
use crate::admission::Attempt;
use crate::admission::configuration::Configuration;
use crate::error::Error;
use crate::fields;
use crate::followers::configured::GROUP;
use crate::gotext::quote;
use crate::request::{Hooks, Request};
use crate::tree::Map;
use policy::{Body, InForce, Policies};

/// Stored policies do not see policies and their bindings.
const EXEMPT: [&str; 4] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// Whether policies may see a request. Of policies and their bindings, only policies of files are told.
fn sees<B: Body>(index: &Index<Policies<B>>, request: &Request<'_>) -> bool {
    request.hooks == Hooks::See && (!is_exempt(request) || index.files().is_some())
}

fn is_exempt(request: &Request<'_>) -> bool {
    let definition = &request.target.resource.definition;
    definition.group().as_str() == GROUP && EXEMPT.contains(&definition.plural.as_str())
}

/// All policies, if one of them may see a request.
fn in_force<B: Body>(
    index: &Index<Policies<B>>,
    attempt: &Attempt<'_>,
) -> Result<Option<Arc<InForce<B>>>, Error> {
    by_resource::in_force(index, attempt, is_exempt(attempt.request))
}

/// The directory that a plugin's configuration names, which is of this kind.
fn directory(configuration: Option<&Configuration>, kind: &str) -> Result<Option<PathBuf>, String> {
    let Some(configured) = configuration else { return Ok(None) };
    let empty = Map::new();
    let root = configured.content.as_object().unwrap_or(&empty);
    let form = (fields::text(root, &["apiVersion"]), fields::text(root, &["kind"]));
    if form != ("apiserver.config.k8s.io/v1", kind) {
        let (version, kind) = (quote(form.0), quote(form.1));
        return Err(format!("no kind {kind} is registered for version {version}"));
    }
    let known = ["apiVersion", "kind", "staticManifestsDir"];
    match root.keys().find(|key| !known.contains(&key.as_str())) {
        Some(unknown) => Err(format!("strict decoding error: unknown field \"{unknown}\"")),
        None => manifests::directory(configuration),
    }
}
