//! Violations of rules that an evaluation has found.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViolationKind {
    Invalid,
    Required,
    Forbidden,
    Duplicate,
}

/// A rule that is not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    pub kind: ViolationKind,
    pub field: String,
    /// With the words for its kind, and the value where it is shown.
    pub message: String,
}

/// The violations of rules in an object, and warnings of those that its old version had already.
#[derive(Debug, Default)]
pub struct Findings {
    /// The first ones: nobody reads thousands.
    pub violations: Vec<Violation>,
    /// How many more there are.
    pub untold: usize,
    pub warnings: Vec<String>,
    /// The budget that is left; less than nothing once it is gone.
    pub budget: i64,
    /// How many rules may still be asked.
    pub runs: u64,
    /// Whether the system had no thread for an expression.
    pub no_stack: bool,
}
