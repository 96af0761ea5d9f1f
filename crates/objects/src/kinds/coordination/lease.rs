//! Leases.

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, text_column};
use crate::kinds::behavior::format::label_key;
use crate::kinds::behavior::gated_fields::Feature::{ElectionStrategy, PreferredHolder};
use crate::kinds::behavior::gated_fields::Node;
use crate::kinds::behavior::gated_fields::Node::{Of, Under};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("leases", "Lease").creates_on_update().conditional(),
    strategy: Strategy { gated_fields: GATED, ..Strategy::PLAIN },
    rules: Rules::timeless(create).without_finalizers(),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const GATED: &[Node] =
    &[Under("spec", &[Of(ElectionStrategy, "strategy"), Of(PreferredHolder, "preferredHolder")])];

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let duration = spec.get("leaseDurationSeconds");
    if duration.opt_int().is_some_and(|seconds| seconds <= 0) {
        errors.invalid(&duration, duration.int(), "must be greater than 0");
    }
    errors.not_negative(&spec.get("leaseTransitions"));
    let strategy = spec.get("strategy");
    if strategy.is_set() {
        self::strategy(&strategy, errors);
    }
    let holder = spec.get("preferredHolder");
    if !holder.text().is_empty() && strategy.text().is_empty() {
        errors.forbidden(&holder, "may only be specified if `strategy` is defined");
    }
}

/// Validates the strategy by which a holder is chosen.
pub fn strategy(strategy: &At<'_, '_>, errors: &mut Errors) {
    // Upstream reports errors at this place.
    let (place, text) = (strategy.get("strategy"), strategy.text());
    if text.contains('/') {
        errors.invalid_each(&place, text, label_key(text));
    } else {
        errors.one_of(&place, text, &["OldestEmulationVersion"]);
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[NAME, text_column("Holder", "Who holds the lease.").at("spec.holderIdentity"), AGE],
    ..PLAIN
};
