//! The budget of an evaluation, and why one has no value.

use std::sync::atomic::AtomicBool;

use crate::value::Error;

/// Why an evaluation has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    Error(Error),
    /// It costs more than it may.
    Limit,
    /// Somebody has given up on it.
    Interrupted,
    /// Upstream cannot tell what sorting costs of a list that is an error, and ends the evaluation.
    Unsortable,
}

impl Fault {
    pub fn message(&self) -> &str {
        match self {
            Self::Error(error) => error.message(),
            Self::Limit => "operation cancelled: actual cost limit exceeded",
            Self::Interrupted => "operation interrupted",
            Self::Unsortable => {
                "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"
            }
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// The most bytes of such programs. Nobody who means well needs more, and each program takes milliseconds to compile.
pub const PATTERNS: usize = 16 << 20;

/// The cost limit of an evaluation, and what is spent and left.
#[derive(Debug)]
pub struct Budget<'b> {
    pub limit: u64,
    pub spent: u64,
    /// The bytes that are left for the programs of patterns that are no constants.
    pub patterns: usize,
    /// Becomes true when nobody waits for the value any more.
    pub interrupt: Option<&'b AtomicBool>,
}

impl Budget<'_> {
    pub fn of(limit: u64) -> Self {
        Self { limit, spent: 0, patterns: PATTERNS, interrupt: None }
    }

    pub(super) fn spend(&mut self, cost: u64) -> Result<(), Fault> {
        self.spent = self.spent.saturating_add(cost);
        if self.spent > self.limit { Err(Fault::Limit) } else { Ok(()) }
    }
}
