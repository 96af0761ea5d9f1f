//! The errors of fields, collected in the order in which they are found.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::causes::{Cause, CauseReason, Causes};
use crate::expression::{Checked, Environment, Refusal};
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::format::Check;
use crate::tree::Value;
use crate::{expression, gotext};

/// The errors of an object (apimachinery `field.ErrorList`).
#[derive(Default)]
pub struct Errors {
    /// The time of day, for rules about a new status.
    pub now: Timestamp,
    causes: Causes,
    /// Whether expressions are checked, or passed over.
    expressions: bool,
    passed_over: bool,
    unchecked: bool,
}

/// A bad value as Go prints it.
pub trait Shown {
    fn show(&self) -> String;
}

impl Shown for &str {
    fn show(&self) -> String {
        gotext::quote(self)
    }
}

impl Shown for String {
    fn show(&self) -> String {
        gotext::quote(self)
    }
}

impl Shown for i64 {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Shown for bool {
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Shown for &Value {
    fn show(&self) -> String {
        gotext::json(self)
    }
}

/// A text that stands as it is: JSON of a struct that upstream prints under its Go names.
pub struct Verbatim(pub String);

impl Shown for Verbatim {
    fn show(&self) -> String {
        self.0.clone()
    }
}

impl Errors {
    /// Errors of an object at this time of day.
    pub fn at(now: Timestamp) -> Self {
        Self { now, ..Self::default() }
    }

    /// Errors of an object whose expressions are checked too.
    pub fn with_expressions() -> Self {
        Self { expressions: true, ..Self::default() }
    }

    /// Checks an expression. `None` if nothing is known of it: expressions are passed over here, the system has no stack for
    /// one so deep, or so much is wrong already that nobody would be told.
    pub fn check(&mut self, text: &str, environment: &Environment) -> Option<Result<Checked, String>> {
        if !self.expressions {
            self.passed_over = true;
            return None;
        }
        if self.causes.is_full() {
            return None;
        }
        match expression::check(text, environment) {
            Ok(checked) => Some(Ok(checked)),
            Err(Refusal::Wrong(why)) => Some(Err(why)),
            Err(Refusal::NoStack) => {
                self.unchecked = true;
                None
            }
        }
    }

    /// Whether expressions are looked at; where they are not, it is noted that there was one.
    pub fn looks_at_expressions(&mut self) -> bool {
        self.passed_over |= !self.expressions;
        self.expressions
    }

    pub fn asks_expressions(&self) -> bool {
        self.expressions
    }

    /// Notes that an expression could not be checked.
    pub fn leave_unchecked(&mut self) {
        self.unchecked = true;
    }

    /// An empty list for errors that are told later.
    pub fn aside(&self) -> Self {
        Self { expressions: self.expressions, ..Self::default() }
    }

    /// Whether no more are told.
    pub fn is_full(&self) -> bool {
        self.causes.is_full()
    }

    /// Whether there was an expression, where they are passed over.
    pub fn passed_over_expressions(&self) -> bool {
        self.passed_over
    }

    /// Whether there was an expression that could not be checked.
    pub fn is_unchecked(&self) -> bool {
        self.unchecked
    }

    pub fn into_causes(self) -> Causes {
        self.causes
    }

    /// How many there are, told or not.
    pub fn len(&self) -> usize {
        self.causes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.causes.is_empty()
    }

    /// The errors in the order of their texts in an aggregated error.
    pub fn sorted(mut self) -> Self {
        self.causes.sort_by_key(|cause| format!("{}: {}", cause.field, cause.message));
        self
    }

    pub fn append(&mut self, others: Self) {
        self.passed_over |= others.passed_over;
        self.unchecked |= others.unchecked;
        self.causes.append(others.causes);
    }

    pub fn append_causes(&mut self, causes: Causes) {
        self.causes.append(causes);
    }

    pub fn push(&mut self, cause: Cause) {
        self.causes.push(cause);
    }

    /// The variant of [`Errors::push`] that makes the cause only if it is told.
    pub fn add(&mut self, cause: impl FnOnce() -> Cause) {
        self.causes.add(cause);
    }

    /// The same cause so many times.
    pub fn add_times(&mut self, times: usize, cause: impl Fn() -> Cause) {
        self.causes.add_times(times, cause);
    }

    pub fn required(&mut self, at: &At<'_, '_>, detail: &str) {
        self.causes.add(|| Cause::required(at.path().to_string(), detail));
    }

    pub fn invalid(&mut self, at: &At<'_, '_>, value: impl Shown, detail: &str) {
        self.causes.add(|| Cause::invalid(at.path().to_string(), value.show(), detail));
    }

    /// An invalid value that is not told.
    pub fn invalid_unsaid(&mut self, at: &At<'_, '_>, detail: &str) {
        let message = || format!("Invalid value: {detail}");
        self.causes.add(|| Cause::new(CauseReason::Invalid, at.path().to_string(), message()));
    }

    /// One error per message about a text.
    pub fn invalid_each(&mut self, at: &At<'_, '_>, value: &str, messages: Vec<String>) {
        for message in messages {
            self.invalid(at, value, &message);
        }
    }

    /// A text in a format.
    pub fn in_format(&mut self, at: &At<'_, '_>, check: Check) {
        self.invalid_each(at, at.text(), check(at.text()));
    }

    /// The variant of [`Errors::in_format`] for a text that has to be there.
    pub fn required_in_format(&mut self, at: &At<'_, '_>, check: Check) {
        match at.text() {
            "" => self.required(at, ""),
            _ => self.in_format(at, check),
        }
    }

    /// The variant of [`Errors::in_format`] for a text that may be empty.
    pub fn in_format_if_given(&mut self, at: &At<'_, '_>, check: Check) {
        if !at.text().is_empty() {
            self.in_format(at, check);
        }
    }

    /// The variant of [`Errors::in_format`] for a text that may be absent, but not empty.
    pub fn in_format_if_set(&mut self, at: &At<'_, '_>, check: Check) {
        if at.is_set() {
            self.in_format(at, check);
        }
    }

    pub fn forbidden(&mut self, at: &At<'_, '_>, detail: &str) {
        self.causes.add(|| Cause::forbidden(at.path().to_string(), detail));
    }

    /// An internal error, of a value that upstream could not make sense of itself.
    pub fn internal(&mut self, at: &At<'_, '_>, why: &str) {
        let message = || format!("Internal error: {why}");
        self.causes.add(|| Cause::new(CauseReason::Internal, at.path().to_string(), message()));
    }

    pub fn duplicate(&mut self, at: &At<'_, '_>, value: impl Shown) {
        self.causes.add(|| Cause::duplicate(at.path().to_string(), value.show()));
    }

    pub fn not_found(&mut self, at: &At<'_, '_>, value: impl Shown) {
        let message = || format!("Not found: {}", value.show());
        self.causes.add(|| Cause::new(CauseReason::NotFound, at.path().to_string(), message()));
    }

    /// `supported` in the order in which upstream lists it.
    pub fn not_supported(&mut self, at: &At<'_, '_>, value: impl Shown, supported: &[&str]) {
        self.causes.add(|| Cause::not_supported(at.path().to_string(), value.show(), supported));
    }

    pub fn too_long(&mut self, at: &At<'_, '_>, limit: usize) {
        self.causes.add(|| Cause::too_long(at.path().to_string(), limit));
    }

    /// An error like [`Errors::too_long`], where upstream counts characters.
    pub fn too_long_in_characters(&mut self, at: &At<'_, '_>, limit: usize) {
        let message = || format!("Too long: may not be more than {limit} characters");
        self.causes.add(|| Cause::new(CauseReason::TooLong, at.path().to_string(), message()));
    }

    pub fn too_many(&mut self, at: &At<'_, '_>, found: usize, limit: usize) {
        let unit = if limit == 1 { "item" } else { "items" };
        let message = || format!("Too many: {found}: must have at most {limit} {unit}");
        self.causes.add(|| Cause::new(CauseReason::TooMany, at.path().to_string(), message()));
    }

    /// A text that has to be one of a few; absent ones are the caller's.
    pub fn one_of(&mut self, at: &At<'_, '_>, value: &str, supported: &[&str]) -> bool {
        let known = supported.contains(&value);
        if !known {
            self.not_supported(at, value, supported);
        }
        known
    }

    /// A text, list or map that has to be there, and is not empty.
    pub fn present(&mut self, at: &At<'_, '_>, detail: &str) -> bool {
        let is_present = !at.text().is_empty() || !at.is_empty();
        if !is_present {
            self.required(at, detail);
        }
        is_present
    }

    /// A text that has to be there and to be one of a few.
    pub fn present_one_of(&mut self, at: &At<'_, '_>, supported: &[&str]) {
        if self.present(at, "") {
            self.one_of(at, at.text(), supported);
        }
    }

    /// A list or map with a limited number of entries.
    pub fn at_most(&mut self, at: &At<'_, '_>, limit: usize) {
        if at.len() > limit {
            self.too_many(at, at.len(), limit);
        }
    }

    /// A text with a limited number of bytes.
    pub fn no_longer(&mut self, at: &At<'_, '_>, limit: usize) {
        if at.text().len() > limit {
            self.too_long(at, limit);
        }
    }

    /// A list of texts that differ.
    pub fn distinct(&mut self, list: &At<'_, '_>) {
        let mut seen = BTreeSet::new();
        list.items().for_each(|item| self.distinct_from(&item, &mut seen));
    }

    /// A text that none of the earlier ones equals; it becomes one of them.
    pub fn distinct_from<'v>(&mut self, at: &At<'v, '_>, earlier: &mut BTreeSet<&'v str>) {
        if !earlier.insert(at.text()) {
            self.duplicate(at, at.text());
        }
    }

    /// A number that may not be below zero.
    pub fn not_negative(&mut self, at: &At<'_, '_>) {
        if at.int() < 0 {
            self.invalid(at, at.int(), "must be greater than or equal to 0");
        }
    }

    /// The variant of [`Errors::not_negative`] for several members.
    pub fn none_negative(&mut self, parent: &At<'_, '_>, names: &[&str]) {
        for name in names {
            self.not_negative(&parent.get(name));
        }
    }

    pub fn positive(&mut self, at: &At<'_, '_>) {
        if at.int() <= 0 {
            self.invalid(at, at.int(), "must be greater than zero");
        }
    }

    pub fn within(&mut self, at: &At<'_, '_>, min: i64, max: i64) {
        if !(min..=max).contains(&at.int()) {
            self.invalid(at, at.int(), &format!("must be between {min} and {max}, inclusive"));
        }
    }

    pub fn port(&mut self, at: &At<'_, '_>) {
        self.within(at, 1, 65535);
    }
}
