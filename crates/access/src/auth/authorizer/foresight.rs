//! Decisions by the state that this server has. Where other servers write, too, a proper decision waits for an answer of
//! the database, so that it knows what they have answered.

use super::Reason;
use crate::storage::Requirement;

/// The opinion that an authorizer has without asking anybody.
pub enum Foresight {
    /// It has no opinion on this user, whatever is stored.
    NoOpinion,
    Allowed(Grant),
    /// Only a decision tells.
    Unknown,
}

/// Why something is allowed.
#[derive(Clone, Debug, Default)]
pub struct Grant {
    pub reason: Reason,
    /// It is allowed as long as these rows are so.
    pub rows: Vec<Requirement>,
}
