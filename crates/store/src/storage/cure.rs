//! Steps that mend what keeps a store from being opened.

use super::{DriverError, OpenError};

/// The step that mends an error of one kind of database.
type Cure = fn(&DriverError) -> Option<&'static str>;

const CURES: &[Cure] = &[
    #[cfg(feature = "sqlite")]
    super::sqlite::error::cure,
    #[cfg(feature = "postgres")]
    super::postgres::error::cure,
];

impl OpenError {
    /// The step that usually mends it, for those who start a server. `None` if the message says what to do, or nobody knows.
    pub fn cure(&self) -> Option<&'static str> {
        match self {
            OpenError::Locked(_) => Some(
                "stop that one, or give this one a --data-dir of its own (several servers share a PostgreSQL database, but not a \
                 file)",
            ),
            OpenError::Unreachable { source, .. } => CURES.iter().find_map(|cure| cure(source)),
            _ => None,
        }
    }
}
