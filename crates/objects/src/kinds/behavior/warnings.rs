//! Warnings of a kind about objects that it takes all the same: upstream's `WarningsOnCreate` and `WarningsOnUpdate`,
//! in its words and order.
//!
//! Warnings, like rules of validation, read the object's JSON as it is about to be stored, once it is known to be
//! valid. They are found once per resource; a kind with nothing to say costs nothing.

pub mod address;
pub mod finalizers;

use std::fmt;

use crate::fields::ObjectMap;
use crate::kinds::behavior::format::dns1123_label;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::rules::at::At;
use crate::tree::work;
use crate::warnings::Warnings;

type OfNew = fn(&ObjectMap, &mut Remarks<'_>);

type OfChange = fn(&ObjectMap, &ObjectMap, &mut Remarks<'_>);

/// Warnings about a kind's objects.
#[derive(Clone, Copy)]
pub struct KindWarnings {
    create: Option<OfNew>,
    update: Update,
    status: Option<OfNew>,
    /// The warning of every request to the resource: that there is a better one (`APILifecycleDeprecated`).
    pub every_request: Option<&'static str>,
    /// The warning of a DELETE that does not say what becomes of dependents, whether it succeeds or not.
    pub unspecified_dependents: Option<&'static str>,
}

#[derive(Clone, Copy)]
enum Update {
    Silent,
    /// The same warnings as about a new object.
    Same(OfNew),
    Change(OfChange),
}

impl KindWarnings {
    pub const NONE: Self = Self {
        create: None,
        update: Update::Silent,
        status: None,
        every_request: None,
        unspecified_dependents: None,
    };

    pub const fn new(create: OfNew, update: OfChange) -> Self {
        Self { create: Some(create), update: Update::Change(update), ..Self::NONE }
    }

    /// The same of new objects and of new versions.
    pub const fn same(warn: OfNew) -> Self {
        Self { create: Some(warn), update: Update::Same(warn), ..Self::NONE }
    }

    pub const fn on_create(create: OfNew) -> Self {
        Self { create: Some(create), ..Self::NONE }
    }

    pub const fn with_status(self, status: OfNew) -> Self {
        Self { status: Some(status), ..self }
    }

    pub const fn of_every_request(self, text: &'static str) -> Self {
        Self { every_request: Some(text), ..self }
    }

    pub const fn of_unspecified_dependents(self, text: &'static str) -> Self {
        Self { unspecified_dependents: Some(text), ..self }
    }

    /// Warns about a new object.
    pub fn create(&self, object: &ObjectMap, warnings: &Warnings) {
        if let Some(create) = self.create {
            create(object, &mut Remarks::new(warnings));
        }
    }

    /// Warns about a new version of `old`.
    pub fn update(&self, part: Part, new: &ObjectMap, old: &ObjectMap, warnings: &Warnings) {
        let remarks = &mut Remarks::new(warnings);
        match (part, self.update, self.status) {
            (Part::Main | Part::Scale, Update::Change(update), _) => update(new, old, remarks),
            (Part::Main | Part::Scale, Update::Same(warn), _) => warn(new, remarks),
            (Part::Status, _, Some(status)) => status(new, remarks),
            _ => {}
        }
    }
}

/// Items of a list that others are held against, so that a list of a whole body does not take minutes.
pub const MOST_COMPARED: usize = 1000;

/// Pairs that are compared for one object. Lists of a whole body have a hundred times as many.
const PAIRS: usize = 2_000_000;

/// Collector of the warnings about one object.
pub struct Remarks<'a> {
    warnings: &'a Warnings,
    /// Pairs that may still be compared.
    pairs: usize,
}

impl<'a> Remarks<'a> {
    pub fn new(warnings: &'a Warnings) -> Self {
        Self { warnings, pairs: PAIRS }
    }

    /// An item is about to be held against so many others.
    pub fn compare(&mut self, others: usize) {
        work::count(others);
        self.pairs = self.pairs.saturating_sub(others);
    }

    /// A remark on a place.
    pub fn on(&mut self, at: &At<'_, '_>, text: impl fmt::Display) {
        self.warnings.add(format!("{}: {text}", at.path()));
    }

    pub fn say(&mut self, text: impl Into<String>) {
        self.warnings.add(text);
    }

    /// Whether nothing that is said any more would be heard, or enough has been compared.
    pub fn are_enough(&self) -> bool {
        self.pairs == 0 || self.warnings.is_full()
    }
}

/// Amounts of bytes that are none (upstream asks whether thousandths are left).
pub fn whole_bytes(at: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let text = at.text();
    let milli = crate::quantity::nanos(text).map(|nanos| (nanos + nanos.signum() * 999_999) / 1_000_000);
    if milli.is_some_and(|milli| milli % 1000 != 0) {
        let text = crate::gotext::quote(text);
        remarks.on(at, format_args!("fractional byte value {text} is invalid, must be an integer"));
    }
}

/// A name that becomes a part of others, or of a host's.
pub fn label_name(object: &ObjectMap, used: &str, remarks: &mut Remarks<'_>) {
    let metadata = At::member(object, "metadata");
    let name = metadata.get("name");
    let found = dns1123_label(name.text());
    if !found.is_empty() {
        let found = found.join(" ");
        remarks.on(
            &name,
            format_args!(
                "this is used in {used}, which can result in surprising behavior; a DNS label is recommended: [{found}]"
            ),
        );
    }
}
