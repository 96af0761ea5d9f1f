//! Why a server could not be started; each is one line for the operator.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::definitions;
use crate::audit;
use crate::auth::{pki, token_file};
use crate::http::router::PlaceError;
use crate::http::tls;
use crate::storage::OpenError;
use crate::tasks::Failure;

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot create the data directory {}: {source}", path.display())]
    DataDir { path: PathBuf, source: io::Error },
    #[error("replicas on a shared database need a data directory each")]
    NoDataDir,
    #[error(transparent)]
    Pki(#[from] pki::Error),
    #[error(transparent)]
    Tokens(#[from] token_file::Error),
    #[error(transparent)]
    Audit(#[from] audit::Error),
    #[error("failed to setup egress selector: {0}")]
    Egress(String),
    #[error(transparent)]
    Tls(#[from] tls::Error),
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error("the process has a cluster {0:?} already")]
    NameTaken(String),
    #[error("{0:?} cannot be the name of a cluster: {1}")]
    ClusterName(String, String),
    #[error("{0} is already in use")]
    PortTaken(SocketAddr),
    #[error("cannot listen on {address}: {source}")]
    Bind { address: SocketAddr, source: io::Error },
    #[error("the host's name {0:?} cannot be this server's: {1}")]
    Hostname(String, String),
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Definition(#[from] definitions::Invalid),
    #[error("cannot start: {0}")]
    Build(BuildError),
    #[error("the server cannot go on: {0}")]
    Failed(Failure),
}

impl Error {
    /// The message on one line: line ends in texts of other programs become blanks.
    pub fn one_line(&self) -> String {
        one_line(&self.to_string())
    }

    /// The error of a failed build. A store that could not be opened keeps its own message, which says what to do.
    pub(super) fn of_build(error: BuildError) -> Self {
        match error.downcast::<OpenError>() {
            Ok(open) => Error::Store(*open),
            Err(other) => Error::Build(other),
        }
    }

    pub(super) fn of_bind(address: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Error::PortTaken(address),
            _ => Error::Bind { address, source },
        }
    }
}

/// Replaces each run of white space, including line ends, by a blank.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Why the application could not be built. An [`OpenError`] is reported unchanged.
pub type BuildError = Box<dyn std::error::Error + Send + Sync>;
