//! Steps that mend what keeps a store from being opened.

use super::{OpenError, postgres, sqlite};

impl OpenError {
    /// The step that usually mends it, for those who start a server. `None` if the message says what to do, or nobody knows.
    pub fn cure(&self) -> Option<&'static str> {
        match self {
            OpenError::Locked(_) => Some(
                "stop that one, or give this one a --data-dir of its own (several servers share a PostgreSQL database, but not a \
                 file)",
            ),
            OpenError::Unreachable { source, .. } => {
                sqlite::error::cure(source).or_else(|| postgres::error::cure(source))
            }
            _ => None,
        }
    }
}
