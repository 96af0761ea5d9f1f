//! What an object of a built-in kind has to be, beyond its types: upstream's rules, in its words and order.
//!
//! A rule reads the object's JSON as it is about to be stored: defaults are filled in, and where one is missing it is
//! read as if it were there. [`Rules`] are found once per resource; a kind without rules costs nothing. Metadata is
//! checked before, by `meta`.

pub mod at;
pub mod condition;
pub mod errors;
pub mod expression;
pub mod format;
pub mod ip;
pub mod metadata;
pub mod path_text;
pub mod resource;
pub mod same;
pub mod selector;

use crate::api::error::Error;
use crate::api::validation::kinds;
use crate::causes::Causes;
use crate::expression::on_deep_stack;
use crate::fields::ObjectMap;
use crate::kinds::behavior::format as behavior_format;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::kinds::behavior::rules::metadata::finalizers;
use crate::long_work;
use crate::schema::resource::ResourceDefinition;

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
pub fn domain_path(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    if text.is_empty() {
        return errors.required(at, "");
    }
    let parts = text.split_once('/').filter(|(host, path)| !host.is_empty() && !path.is_empty());
    let Some((host, path)) = parts else {
        return errors.invalid(at, text, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    };
    errors.invalid_each(at, host, behavior_format::dns1123_subdomain(host));
    if !path.bytes().all(|b| b.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&b)) {
        let regex = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+";
        errors.invalid(at, path, &format!("Invalid path (regex used for validation is '{regex}')"));
    }
}

/// Kinds that are not checked yet, and those of others.
const NONE: Rules = Rules { metadata: any, create: any, update: None, status: any_change, whole: any };

fn any(_: &ObjectMap, _: &mut Errors) {}

fn any_change(_: &ObjectMap, _: &ObjectMap, _: &mut Errors) {}

/// Rules of kinds whose status has none, or that have no status.
const fn plain(create: OfNew, update: OfChange) -> Rules {
    with_status(create, update, any_change)
}

const fn with_status(create: OfNew, update: OfChange, status: OfChange) -> Rules {
    Rules { metadata: finalizers, create, update: Some(update), status, whole: any }
}

/// Rules that do not look at what was there before.
const fn timeless(create: OfNew) -> Rules {
    timeless_with_status(create, any_change)
}

const fn timeless_with_status(create: OfNew, status: OfChange) -> Rules {
    Rules { metadata: finalizers, create, update: None, status, whole: any }
}

#[cfg(test)]
mod tests;
