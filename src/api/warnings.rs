//! What a kind has to say of objects that it takes all the same: upstream's `WarningsOnCreate` and `WarningsOnUpdate`, in
//! its words and order.
//!
//! As rules of validation, these read the object's JSON as it is about to be stored, once it is known to be valid. They
//! are found once per resource; a kind with nothing to say costs nothing.

mod address;
mod app_armor;
mod kinds;
mod metadata;
mod network;
mod node_labels;
mod overlaps;
mod pod;
mod ports;
mod quota;
mod tls;
mod volume;
mod workloads;

use std::fmt;

use super::ObjectMap;
use super::options::delete::{DeleteOptions, Dependents};
use super::part::Part;
use super::strictness::Warnings;
use super::validation::at::At;
use crate::schema::resource::ResourceDefinition;
use crate::tree::work;

pub(super) use app_armor::sync as sync_app_armor;

type OfNew = fn(&ObjectMap, &mut Remarks<'_>);
type OfChange = fn(&ObjectMap, &ObjectMap, &mut Remarks<'_>);

/// What is said of a kind's objects.
#[derive(Clone, Copy, Default)]
pub struct Advice {
    create: Option<OfNew>,
    update: Option<OfChange>,
    status: Option<OfNew>,
}

impl Advice {
    pub fn of(definition: &ResourceDefinition) -> Self {
        kinds::advice(definition)
    }

    /// Of a new object.
    pub fn create(&self, object: &ObjectMap, warnings: &Warnings) {
        if let Some(create) = self.create {
            create(object, &mut Remarks::new(warnings));
        }
    }

    /// Of a new version of `old`.
    pub fn update(&self, part: Part, new: &ObjectMap, old: &ObjectMap, warnings: &Warnings) {
        match (part, self.update, self.status) {
            (Part::Main | Part::Scale, Some(update), _) => update(new, old, &mut Remarks::new(warnings)),
            (Part::Status, _, Some(status)) => status(new, &mut Remarks::new(warnings)),
            _ => {}
        }
    }
}

/// What is said of a resource whatever is done to it: that there is a better one (`APILifecycleDeprecated`).
pub fn of_resource(definition: &ResourceDefinition) -> Option<&'static str> {
    let endpoints = definition.group().is_empty() && definition.kind_name().as_str() == "Endpoints";
    endpoints.then_some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
}

/// What is said of a deletion, whatever comes of it.
pub fn of_deletion(definition: &ResourceDefinition, options: &DeleteOptions) -> Option<&'static str> {
    let job = (definition.group().as_str(), definition.kind_name().as_str()) == ("batch", "Job");
    (job && options.dependents == Dependents::Unspecified).then_some(
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or \
         set propagationPolicy=Orphan to suppress this warning",
    )
}

/// Items of a list that others are held against, so that a list of a whole body does not take minutes.
const MOST_COMPARED: usize = 1000;

/// Pairs that are compared for one object. Lists of a whole body have a hundred times as many.
const PAIRS: usize = 2_000_000;

/// Where remarks go.
struct Remarks<'a> {
    warnings: &'a Warnings,
    /// Pairs that may still be compared.
    pairs: usize,
}

impl<'a> Remarks<'a> {
    fn new(warnings: &'a Warnings) -> Self {
        Self { warnings, pairs: PAIRS }
    }

    /// An item is about to be held against so many others.
    fn compare(&mut self, others: usize) {
        work::count(others);
        self.pairs = self.pairs.saturating_sub(others);
    }

    /// A remark on a place.
    fn on(&mut self, at: &At<'_, '_>, text: impl fmt::Display) {
        self.warnings.add(format!("{}: {text}", at.path()));
    }

    fn say(&mut self, text: impl Into<String>) {
        self.warnings.add(text);
    }

    /// Whether nothing that is said any more would be heard, or enough has been compared.
    fn are_enough(&self) -> bool {
        self.pairs == 0 || self.warnings.is_full()
    }
}

/// Amounts of bytes that are none (upstream asks whether thousandths are left).
fn whole_bytes(at: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let text = at.text();
    let milli = crate::quantity::nanos(text).map(|nanos| (nanos + nanos.signum() * 999_999) / 1_000_000);
    if milli.is_some_and(|milli| milli % 1000 != 0) {
        let text = crate::gotext::quote(text);
        remarks.on(at, format_args!("fractional byte value {text} is invalid, must be an integer"));
    }
}

#[cfg(test)]
mod tests;
