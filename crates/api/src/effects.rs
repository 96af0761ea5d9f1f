//! The effects of a write beside its object.

use std::sync::Arc;

use crate::cache::hidden_rows::HiddenRows;
use crate::storage::counting::Charge;
use crate::storage::{Mutation, Requirement};

/// The rows that a write requires, the counters that it charges, and the rows that are written with it or not at all.
/// Concerns add to it; [`Effects::onto`] is the only way out, so that no caller drops a part.
#[derive(Debug, Default)]
#[must_use = "a write is made with all of its effects"]
pub struct Effects {
    requires: Vec<Requirement>,
    /// The configuration of admission that has judged the write. Many writes share it.
    configured: Option<Arc<Requirement>>,
    charges: Vec<Charge>,
    joined: Vec<Mutation>,
    /// The row of admission's configuration, if the write changes the configuration.
    reconfigures: Option<HiddenRows>,
    /// Whether the object is written even if nothing of it changes.
    writes_unchanged: bool,
}

impl Effects {
    /// The rows that admission relied on.
    pub fn of_admission(requires: Vec<Requirement>, configured: Option<Arc<Requirement>>) -> Self {
        Self { requires, configured, ..Self::default() }
    }

    pub fn require(&mut self, requirements: impl IntoIterator<Item = Requirement>) {
        self.requires.extend(requirements);
    }

    pub fn charge(&mut self, charges: impl IntoIterator<Item = Charge>) {
        self.charges.extend(charges);
    }

    /// Adds rows that are written just before the object, in the same transaction.
    pub fn join(&mut self, mutations: impl IntoIterator<Item = Mutation>) {
        self.joined.extend(mutations);
    }

    /// Adds the effects that another concern has found.
    pub fn add(&mut self, other: Self) {
        self.require(other.requires);
        self.charge(other.charges);
        self.join(other.joined);
        if let Some(configured) = other.configured {
            self.configured = Some(configured);
        }
        self.reconfigures = other.reconfigures.or(self.reconfigures);
        self.writes_unchanged |= other.writes_unchanged;
    }

    /// Lets the object be written even if nothing of it changes: something else has to be stored with it.
    pub fn write_unchanged(&mut self) {
        self.writes_unchanged = true;
    }

    pub fn writes_unchanged(&self) -> bool {
        self.writes_unchanged
    }

    /// Joins the row of admission's configuration, which the write changes. The row has to be as the write's admission has seen
    /// it, or else as `now`. The write, coming after it, does not require that any more.
    pub fn reconfigure(&mut self, rows: HiddenRows, now: impl FnOnce() -> Arc<Requirement>) {
        self.configured.get_or_insert_with(now);
        self.reconfigures = Some(rows);
    }

    /// The preconditions alone. A write that turns out to remove the object has other charges and rows.
    pub fn preconditions(self) -> Self {
        Self { requires: self.requires, configured: self.configured, ..Self::default() }
    }

    /// Whether a row is written with the object.
    pub fn joins(&self) -> bool {
        !self.joined.is_empty()
    }

    /// The write of the object with all its effects, and the writes that come just before it.
    pub fn onto(mut self, mutation: Mutation) -> (Vec<Mutation>, Mutation) {
        if let Some(rows) = self.reconfigures {
            self.joined.extend(self.configured.take().map(|seen| rows.touch((*seen).clone())));
        }
        let mutation = mutation.requiring(self.requires).charging(self.charges);
        let shares = self.configured.or(mutation.shares);
        (self.joined, Mutation { shares, ..mutation })
    }
}
