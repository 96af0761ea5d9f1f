//! Validation rules for objects of built-in kinds, beyond the types of fields: upstream's rules, in its words and
//! order.
//!
//! A rule reads the object's JSON as it is about to be stored: defaults are filled in, and where one is missing it is
//! read as if it were there. [`Rules`] are found once per resource; a kind without rules costs nothing. Metadata is
//! checked before, by `meta`.

pub mod at;
pub mod condition;
pub mod declarative;
pub mod errors;
pub mod expression;
pub mod format;
pub mod ip;
pub mod metadata;
pub mod object_meta;
pub mod path_text;
pub mod resource;
pub mod same;
pub mod selector;

use jiff::Timestamp;

use crate::causes::Causes;
use crate::fields::ObjectMap;
use crate::kinds::behavior::format as behavior_format;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::declarative::Struct;
use crate::kinds::behavior::rules::errors::Errors;
use crate::kinds::behavior::rules::metadata::finalizers;
use crate::long_work;
use crate::schema::types::MessageId;

/// The system had no thread for the expressions of the object.
#[derive(Debug, thiserror::Error)]
#[error("the expressions of the object cannot be checked now: there is no stack for one so deep")]
pub struct Unchecked;

type OfNew = fn(&ObjectMap, &mut Errors);

type OfChange = fn(&ObjectMap, &ObjectMap, &mut Errors);

/// The rules of a kind.
#[derive(Clone, Copy)]
pub struct Rules {
    /// The rules of every write: upstream checks finalizers together with the kind.
    metadata: OfNew,
    create: OfNew,
    /// The rules of a new version; `None` if they are those of a new object.
    update: Option<OfChange>,
    status: OfChange,
    /// The rules of the object after a write to a part of its spec.
    part: OfNew,
    /// The rules that upstream declares at the fields of the kind, asked after all others.
    declared: Option<&'static Struct>,
    /// Whether the name of a new object is only looked at when nothing else is wrong.
    names_last: bool,
}

impl Rules {
    /// Kinds that are not checked at all.
    pub const NONE: Self = Self {
        metadata: any,
        create: any,
        update: None,
        status: any_change,
        part: any,
        declared: None,
        names_last: false,
    };

    /// Kinds of which only metadata are checked.
    pub const METADATA: Self = Self { metadata: finalizers, ..Self::NONE };

    pub const fn new(create: OfNew, update: OfChange) -> Self {
        Self { create, update: Some(update), ..Self::METADATA }
    }

    /// Rules that do not look at what was there before: a new version has to be what a new object has to be.
    pub const fn timeless(create: OfNew) -> Self {
        Self { create, ..Self::METADATA }
    }

    pub const fn with_status(self, status: OfChange) -> Self {
        Self { status, ..self }
    }

    /// Rules for the object after a write to a part of its spec, beside what may change of that part.
    pub const fn with_part(self, part: OfNew) -> Self {
        Self { part, ..self }
    }

    /// For kinds of which upstream checks finalizers as any API server does, and not as its own kinds (`ValidateObjectMeta` of
    /// apimachinery, and not of `pkg/apis/core`).
    pub const fn without_finalizers(self) -> Self {
        Self { metadata: any, ..self }
    }

    /// For kinds whose own rules, which come first, do not look at metadata.
    pub const fn before_names(self) -> Self {
        Self { names_last: true, ..self }
    }

    /// The same rules, followed by those that upstream declares at the fields of the kind.
    pub fn with_declared(self, kind: MessageId) -> Self {
        Self { declared: Struct::of(kind), ..self }
    }

    /// Whether the name of a new object is only looked at when nothing else is wrong.
    pub fn names_last(&self) -> bool {
        self.names_last
    }

    /// Errors of a new object.
    pub fn create(&self, object: &ObjectMap) -> Result<Causes, Unchecked> {
        found(|errors| {
            (self.metadata)(object, errors);
            (self.create)(object, errors);
            self.declared(object, None, errors);
        })
    }

    /// Errors of a new version of `old`.
    pub fn update(&self, new: &ObjectMap, old: &ObjectMap) -> Result<Causes, Unchecked> {
        found(|errors| {
            (self.metadata)(new, errors);
            match self.update {
                Some(update) => update(new, old, errors),
                None => (self.create)(new, errors),
            }
            self.declared(new, Some(old), errors);
        })
    }

    /// Errors of an object of which a part of the spec was written.
    pub fn part(&self, object: &ObjectMap) -> Result<Causes, Unchecked> {
        found(|errors| {
            (self.metadata)(object, errors);
            (self.part)(object, errors);
        })
    }

    /// Errors of a new status of `old`.
    pub fn status(&self, new: &ObjectMap, old: &ObjectMap, now: Timestamp) -> Result<Causes, Unchecked> {
        found(|errors| {
            errors.now = now;
            (self.metadata)(new, errors);
            (self.status)(new, old, errors);
            self.declared(new, Some(old), errors);
        })
    }

    fn declared(&self, new: &ObjectMap, old: Option<&ObjectMap>, errors: &mut Errors) {
        if let Some(rules) = self.declared {
            rules.validate(new, old, errors);
        }
    }
}

/// The causes that rules find. Rules of an object with expressions are asked again where long work is done, which most
/// objects never need.
fn found(rules: impl Fn(&mut Errors)) -> Result<Causes, Unchecked> {
    let mut errors = Errors::default();
    rules(&mut errors);
    if !errors.passed_over_expressions() {
        return Ok(errors.into_causes());
    }
    long_work::run(|| {
        let mut errors = Errors::with_expressions();
        rules(&mut errors);
        if errors.is_unchecked() { Err(Unchecked) } else { Ok(errors.into_causes()) }
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

fn any(_: &ObjectMap, _: &mut Errors) {}

fn any_change(_: &ObjectMap, _: &ObjectMap, _: &mut Errors) {}
