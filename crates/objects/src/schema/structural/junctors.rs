//! anyOf, oneOf, allOf and not.

use super::check::Check;
use super::outcome::ValidationResult;
use super::place::ValuePath;
use super::validate::Walk;
use super::view::View;
use super::{Node, SchemaNode};
use crate::gotext::quote;

impl Walk {
    /// Holds a value to the schemas of junctors. Nothing below them is excused for being as it was.
    pub(super) fn junctors(
        &mut self,
        schema: &SchemaNode,
        value: View<'_>,
        at: &ValuePath<'_>,
        found: &mut ValidationResult,
    ) {
        found.matched += 2;
        for check in &schema.checks {
            match check {
                Check::AnyOf(schemas) => any_of(self, schemas, value, at, found),
                Check::OneOf(schemas) => one_of(self, schemas, value, at, found),
                Check::AllOf(schemas) => all_of(self, schemas, value, at, found),
                Check::Not(schema) => {
                    if outcome(self, schema, value, at).is_valid() {
                        found.add_unplaced(|| format!("{} must not validate the schema (not)", name(at)));
                    }
                }
                _ => break,
            }
        }
    }
}

fn name(at: &ValuePath<'_>) -> String {
    quote(&at.dotted())
}

fn outcome(walk: &mut Walk, schema: &SchemaNode, value: View<'_>, at: &ValuePath<'_>) -> ValidationResult {
    let mut found = ValidationResult::default();
    walk.value(schema, value, at, &mut found);
    found
}

/// The outcome that has passed more checks; of two that are as good, the first one.
fn better(best: Option<ValidationResult>, other: ValidationResult) -> ValidationResult {
    match best {
        Some(best) if best.matched >= other.matched => best,
        _ => other,
    }
}

fn any_of(
    walk: &mut Walk,
    schemas: &[Node],
    value: View<'_>,
    at: &ValuePath<'_>,
    found: &mut ValidationResult,
) {
    let mut best = None;
    for schema in schemas {
        let outcome = outcome(walk, schema, value, at);
        if outcome.is_valid() {
            return found.merge(outcome);
        }
        best = Some(better(best, outcome));
    }
    found.add_unplaced(|| format!("{} must validate at least one schema (anyOf)", name(at)));
    best.into_iter().for_each(|best| found.merge(best));
}

fn one_of(
    walk: &mut Walk,
    schemas: &[Node],
    value: View<'_>,
    at: &ValuePath<'_>,
    found: &mut ValidationResult,
) {
    let (mut best, mut first, mut valid) = (None, None, 0);
    for schema in schemas {
        let outcome = outcome(walk, schema, value, at);
        if outcome.is_valid() {
            valid += 1;
            first.get_or_insert(outcome);
        } else if valid == 0 {
            best = Some(better(best, outcome));
        }
    }
    if let (1, Some(first)) = (valid, first) {
        return found.merge(first);
    }
    let why =
        if valid == 0 { "Found none valid".to_owned() } else { format!("Found {valid} valid alternatives") };
    found.add_unplaced(|| format!("{} must validate one and only one schema (oneOf). {why}", name(at)));
    best.into_iter().filter(|_| valid == 0).for_each(|best| found.merge(best));
}

fn all_of(
    walk: &mut Walk,
    schemas: &[Node],
    value: View<'_>,
    at: &ValuePath<'_>,
    found: &mut ValidationResult,
) {
    let mut valid = 0;
    for schema in schemas {
        let outcome = outcome(walk, schema, value, at);
        valid += usize::from(outcome.is_valid());
        found.merge(outcome);
    }
    if valid != schemas.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        found.add_unplaced(|| format!("{} must validate all the schemas (allOf){none}", name(at)));
    }
}
