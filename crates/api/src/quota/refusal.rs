//! Reasons for which quotas refuse a write.

/// Why a write is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Forbidden(String),
    /// The text of an error that upstream answers as it is: a 500 without a reason.
    Plain(String),
}
