//! Values of labels that `/metrics` shows, so that who collects metrics keeps few of them (`--allow-metric-labels`).

use std::collections::{BTreeMap, BTreeSet};

use metrics::Label;

/// The number of values that were not shown.
pub const UNEXPECTED: &str = "cardinality_enforcement_unexpected_categorizations_total";

/// The allowed values by metric and label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedLabels(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl AllowedLabels {
    /// Allows values, separated by commas, of a `metric,label`.
    pub fn allow(&mut self, key: &str, values: &str) -> Result<(), String> {
        let is_name = |name: &str| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
            name.chars().all(is_part) && name.starts_with(|c: char| !c.is_ascii_digit())
        };
        match key.split_once(',') {
            Some((metric, label)) if is_name(metric) && is_name(label) => {
                let allowed = values.split(',').map(str::to_owned).collect();
                self.0.entry(metric.to_owned()).or_default().insert(label.to_owned(), allowed);
                Ok(())
            }
            _ => Err(format!("{key:?} is no METRIC,LABEL")),
        }
    }

    /// Puts `unexpected` in the place of each other value, and counts them.
    pub fn constrain(&self, metric: &str, labels: &mut [Label]) -> u64 {
        let Some(allowed) = self.0.get(metric) else { return 0 };
        let mut unexpected = 0;
        for label in labels {
            if allowed.get(label.key()).is_some_and(|allowed| !allowed.contains(label.value())) {
                *label = Label::new(label.key().to_owned(), "unexpected");
                unexpected += 1;
            }
        }
        unexpected
    }
}
