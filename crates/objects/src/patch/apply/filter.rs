//! Filters of ownership: the paths, among those that a request touches, that its manager can own.

use super::fields::{Entry, FieldSet};
use super::path::PathElement;

/// One step of a pattern; `None` matches every step.
pub type Step = Option<&'static str>;

/// The paths of an object that the manager of a request may own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All except these paths and everything below them.
    Exclude(FieldSet),
    /// Paths that match a pattern, and everything above and below them.
    Include(&'static [&'static [Step]]),
}

impl Default for Filter {
    fn default() -> Self {
        Self::Exclude(FieldSet::default())
    }
}

impl Filter {
    /// The paths of `set` that pass the filter.
    pub fn pass(&self, set: FieldSet) -> FieldSet {
        match self {
            Self::Exclude(paths) => set.recursive_difference(paths),
            Self::Include(patterns) => include(&set, patterns),
        }
    }
}

fn include(set: &FieldSet, patterns: &[&'static [Step]]) -> FieldSet {
    let passed = |entry: Entry<'_>| {
        let rest: Vec<&'static [Step]> =
            patterns.iter().filter_map(|pattern| match_step(pattern, entry.element)).collect();
        if rest.is_empty() {
            return None;
        }
        let below = match rest.iter().any(|pattern| pattern.is_empty()) {
            true => entry.below.clone(),
            false => include(entry.below, &rest),
        };
        Some((entry.element.clone(), entry.member, below))
    };
    set.entries().filter_map(passed).collect()
}

/// The rest of a pattern behind its first step, if that step matches `element`.
fn match_step(pattern: &'static [Step], element: &PathElement) -> Option<&'static [Step]> {
    let (first, rest) = pattern.split_first()?;
    let fits = match (first, element) {
        (None, _) => true,
        (Some(name), PathElement::Field(field)) => **field == **name,
        (Some(_), _) => false,
    };
    fits.then_some(rest)
}
