//! Refusals of connections.

use super::{ClusterId, Wanted};

/// Why a connection is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the database is a standby, and nothing can be written to it until it is promoted")]
    Standby,
    #[error("the database is not what target_session_attrs={0} asks for")]
    Unwanted(Wanted),
    #[error(
        "the database is the cluster {present}, and this server knows {known} (system identifier/timeline): a connection to the \
         wrong one, or to an old primary that is back; if it has been restored or moved on purpose, start the servers with \
         --datastore-accept={present}"
    )]
    Stranger { known: ClusterId, present: ClusterId },
    #[error(
        "the database is another one than this server has started with; restart the server if that is meant to be"
    )]
    Replaced,
    #[error(
        "the database has lost the number of {0} in a failover and given it another one; restart this server, which still uses \
         the old one"
    )]
    Renumbered(String),
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Sql(#[from] sqlx::Error),
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The errors of several hosts, one for each.
    #[error("none of the database's hosts serves ({})", listed(.0))]
    Nowhere(Box<[(String, Error)]>),
}

impl Error {
    /// The error if every host has failed; the only host's error is told as it is.
    pub fn nowhere(mut failures: Vec<(String, Error)>) -> Self {
        match (failures.pop(), failures.is_empty()) {
            (Some((_, error)), true) => error,
            (last, _) => Self::Nowhere(failures.into_iter().chain(last).collect()),
        }
    }
}

fn listed(failures: &[(String, Error)]) -> String {
    failures.iter().map(|(host, error)| format!("{host}: {error}")).collect::<Vec<_>>().join("; ")
}
