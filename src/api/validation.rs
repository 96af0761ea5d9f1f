//! What an object of a built-in kind has to be, beyond its types: upstream's rules, in its words and order.
//!
//! A rule reads the object's JSON as it is about to be stored: defaults are filled in, and where one is missing it is
//! read as if it were there. [`Rules`] are found once per resource; a kind without rules costs nothing. Metadata is
//! checked before, by `meta`.

mod admission_policy;
mod api_service;
mod apps;
pub(super) mod at;
mod autoscaling;
mod batch;
mod certificates;
mod claim;
mod condition;
mod config;
mod devices;
mod disruption_budget;
mod errors;
mod event;
mod expression;
mod extension;
mod flow;
pub(super) mod format;
pub(super) mod ip;
mod kinds;
mod lease;
mod metadata;
mod networking;
mod path_text;
mod pod;
mod pod_certificate;
mod priority_class;
mod rbac;
mod resource;
mod runtime_class;
mod same;
mod selector;
mod signing_request;
mod storage;
mod storage_migration;
mod storage_version;
mod trust_bundle;
mod volume_source;
mod webhook;

use super::ObjectMap;
use super::error::{Causes, Error};
use crate::expression::on_deep_stack;
use crate::long_work;
use crate::schema::resource::ResourceDefinition;
use at::At;
use errors::Errors;

type OfNew = fn(&ObjectMap, &mut Errors);
type OfChange = fn(&ObjectMap, &ObjectMap, &mut Errors);

/// The rules of a kind.
#[derive(Clone, Copy)]
pub struct Rules {
    /// For all three: upstream checks finalizers together with the kind.
    metadata: OfNew,
    create: OfNew,
    /// `None` where a new version has to be what a new object has to be.
    update: Option<OfChange>,
    status: OfChange,
    /// For what writes of a part of the spec make of it, beside what may change of that part.
    whole: OfNew,
}

impl Rules {
    pub fn of(definition: &ResourceDefinition) -> Self {
        kinds::rules(definition)
    }

    /// What is wrong with a new object.
    pub fn create(&self, object: &ObjectMap) -> Result<Causes, Error> {
        found(|errors| {
            (self.metadata)(object, errors);
            (self.create)(object, errors);
        })
    }

    /// What is wrong with a new version of `old`.
    pub fn update(&self, new: &ObjectMap, old: &ObjectMap) -> Result<Causes, Error> {
        found(|errors| {
            (self.metadata)(new, errors);
            match self.update {
                Some(update) => update(new, old, errors),
                None => (self.create)(new, errors),
            }
        })
    }

    /// What is wrong with an object of which a part of the spec was written.
    pub fn whole(&self, object: &ObjectMap) -> Result<Causes, Error> {
        found(|errors| {
            (self.metadata)(object, errors);
            (self.whole)(object, errors);
        })
    }

    /// What is wrong with a new status of `old`.
    pub fn status(&self, new: &ObjectMap, old: &ObjectMap) -> Result<Causes, Error> {
        found(|errors| {
            (self.metadata)(new, errors);
            (self.status)(new, old, errors);
        })
    }
}

/// What rules find. Those of an object with expressions are asked again on a deep stack, which most objects never need;
/// 503 if there is none.
fn found(rules: impl Fn(&mut Errors) + Sync) -> Result<Causes, Error> {
    let mut errors = Errors::default();
    rules(&mut errors);
    if !errors.passed_over_expressions() {
        return Ok(errors.into_causes());
    }
    let again = |stack| {
        let mut errors = Errors::on(stack);
        rules(&mut errors);
        errors.into_causes()
    };
    long_work::run(|| on_deep_stack(again)).map_err(|error| Error::Unavailable {
        message: format!("the expressions of the object cannot be checked now: {error}"),
        retry_after: 1,
    })
}

/// `acme.io/foo` (apimachinery `IsDomainPrefixedPath`).
fn domain_path(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    if text.is_empty() {
        return errors.required(at, "");
    }
    let parts = text.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty());
    let Some((host, path)) = parts else {
        return errors.invalid(at, text, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    };
    errors.invalid_each(at, host, format::dns1123_subdomain(host));
    if !path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b)) {
        let regex = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
        errors.invalid(at, path, &format!("Invalid path (regex used for validation is '{regex}')"));
    }
}

#[cfg(test)]
mod tests;
