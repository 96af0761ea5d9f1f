//! How many pods a rollout may replace at the same time.

use crate::gotext;
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::format::percent;
use crate::kinds::prelude::*;

/// A number of pods, or a percentage. An absent one has the default.
#[derive(Clone, Copy)]
pub struct Amount<'v, 'p> {
    at: At<'v, 'p>,
    default: i64,
}

pub fn amount<'v, 'p>(at: At<'v, 'p>, default: i64) -> Amount<'v, 'p> {
    Amount { at, default }
}

impl Amount<'_, '_> {
    /// Must not be negative; a text must be a percentage.
    pub fn check(&self, errors: &mut Errors) {
        match self.at.opt_text() {
            Some(text) => errors.invalid_each(&self.at, text, percent(text)),
            None => errors.not_negative(&self.at),
        }
    }

    pub fn at_most_all(&self, errors: &mut Errors) {
        if self.percentage().is_some_and(|percentage| percentage > 100) {
            errors.invalid(&self.at, self.at.text(), "must not be greater than 100%");
        }
    }

    pub fn is_zero(&self) -> bool {
        self.value() == 0
    }

    /// The number, of pods or in percent.
    fn value(&self) -> i64 {
        match self.at.value() {
            Value::Null => self.default,
            Value::String(text) => self.percentage().unwrap_or_else(|| text.parse().unwrap_or(0)),
            _ => self.at.int(),
        }
    }

    fn percentage(&self) -> Option<i64> {
        let text = self.at.opt_text()?;
        percent(text).is_empty().then(|| text.trim_end_matches('%').parse().unwrap_or(i64::MAX))
    }

    pub fn at(&self) -> &At<'_, '_> {
        &self.at
    }

    /// The value as Go prints it.
    pub fn shown(&self) -> Verbatim {
        let value = if self.at.is_set() { self.at.value().to_string() } else { self.default.to_string() };
        Verbatim(value)
    }
}

/// The strategy of a deployment or daemon set, printed like upstream's internal struct.
pub fn shown_strategy(kind: &str, rolling: &At<'_, '_>) -> Verbatim {
    let json = |name: &str| match rolling.get(name).value() {
        Value::Null => "0".to_owned(),
        value => gotext::json(value),
    };
    let rolling = if rolling.is_set() {
        format!("{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}", json("maxUnavailable"), json("maxSurge"))
    } else {
        "null".to_owned()
    };
    Verbatim(format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", gotext::json(&kind.into())))
}
