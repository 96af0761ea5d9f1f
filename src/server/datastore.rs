//! The place where the state of a server is kept.

#[cfg(all(feature = "postgres", feature = "sqlite"))]
mod url;

use std::fmt;
use std::path::PathBuf;

#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub use self::url::InvalidUrl;
#[cfg(feature = "postgres")]
use crate::storage::postgres::Address;

/// The place where the state is kept.
#[derive(Clone, PartialEq, Eq)]
pub enum Datastore {
    /// The state lives as long as the server.
    Memory,
    /// A file, which a server without the feature `sqlite` refuses.
    Sqlite(PathBuf),
    /// Printing this variant does not show a password in its URL.
    #[cfg(feature = "postgres")]
    Postgres(Address),
}

impl fmt::Display for Datastore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Datastore::Memory => f.write_str("memory:"),
            Datastore::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            #[cfg(feature = "postgres")]
            Datastore::Postgres(address) => address.fmt(f),
        }
    }
}

impl fmt::Debug for Datastore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Datastore({self})")
    }
}
