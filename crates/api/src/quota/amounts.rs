//! Amounts by the names of what is counted, with upstream's arithmetic of `ResourceList`.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::ObjectMap;
use crate::quantity;

/// Amounts by name. Sorted, as messages list them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts(BTreeMap<Box<str>, Box<str>>);

impl Amounts {
    /// The quantities of a JSON object.
    pub fn of(list: Option<&ObjectMap>) -> Self {
        let entries = list.into_iter().flatten();
        Self(
            entries
                .filter_map(|(name, amount)| Some((name.as_str().into(), amount.as_str()?.into())))
                .collect(),
        )
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|amount| &**amount)
    }

    pub fn set(&mut self, name: impl Into<Box<str>>, amount: impl Into<Box<str>>) {
        self.0.insert(name.into(), amount.into());
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.0.iter().map(|(name, amount)| (&**name, &**amount))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds an amount to one of the names.
    pub fn plus(&mut self, name: &str, amount: &str) {
        let sum = match self.get(name) {
            Some(own) => added(own, amount),
            None => amount.to_owned(),
        };
        self.set(name, sum);
    }

    pub fn add(&mut self, other: &Self) {
        other.iter().for_each(|(name, amount)| self.plus(name, amount));
    }

    pub fn subtract(&mut self, other: &Self) {
        other.iter().for_each(|(name, amount)| self.plus(name, &negated(amount)));
    }

    /// Takes the larger of both amounts.
    pub fn raise(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            if self.get(name).is_none_or(|own| exceeds(amount, own)) {
                self.set(name, amount);
            }
        }
    }

    /// Keeps the amounts for whose name and quantity `wanted` is true.
    pub fn retain(&mut self, wanted: impl Fn(&str, &str) -> bool) {
        self.0.retain(|name, amount| wanted(name, amount));
    }
}

impl From<Amounts> for std::sync::Arc<[(Box<str>, Box<str>)]> {
    fn from(amounts: Amounts) -> Self {
        amounts.0.into_iter().collect()
    }
}

/// The sum of two quantities. An amount that is larger than any quantity stays as it is.
pub fn added(one: &str, other: &str) -> String {
    quantity::sum(one, other).unwrap_or_else(|_| one.to_owned())
}

pub fn negated(amount: &str) -> String {
    match amount.strip_prefix('-') {
        Some(positive) => positive.to_owned(),
        None => format!("-{}", amount.strip_prefix('+').unwrap_or(amount)),
    }
}

pub fn exceeds(amount: &str, bound: &str) -> bool {
    quantity::compare(amount, bound) == Ok(Ordering::Greater)
}

pub fn is_zero(amount: &str) -> bool {
    quantity::compare(amount, "0") == Ok(Ordering::Equal)
}

pub fn is_negative(amount: &str) -> bool {
    exceeds("0", amount)
}
