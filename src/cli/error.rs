//! Why the program could not do what it was asked to; each is one line for the operator.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::server;
use crate::server::error::one_line;
use crate::storage::{OpenError, transfer};
use crate::tasks::Failure;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error in a flag, or in the environment variable of a flag.
    #[error("{0}")]
    Usage(String),
    #[error("{0} is already in use; choose another with --bind-address and --secure-port")]
    PortTaken(SocketAddr),
    #[error("the host's name {0:?} cannot be this server's: {1}; give another with --hostname-override")]
    Hostname(String, String),
    /// Errors for which kube-apiserver and etcd exit with 1.
    #[error("{0}")]
    Refused(String),
    #[error("a store in memory is its server's alone")]
    InMemory,
    #[error(transparent)]
    Server(server::Error),
    #[error(transparent)]
    Store(#[from] OpenError),
    #[error(transparent)]
    Transfer(#[from] transfer::Error),
    #[error("{}: {source}", path.display())]
    BackupFile { path: PathBuf, source: io::Error },
    #[error("cannot fill {}: {source}", path.display())]
    Assets { path: PathBuf, source: io::Error },
    #[error("the migration {name} has failed: {why}")]
    Migration { name: String, why: String },
    #[error("cannot start threads: {0}")]
    Runtime(io::Error),
    #[error("cannot handle signals: {0}")]
    Signals(io::Error),
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    #[error("the server cannot go on: {0}")]
    Failed(Failure),
}

impl Error {
    /// clap's message without hints and usage, which take many lines.
    pub(super) fn usage(error: &clap::Error) -> Self {
        let text = error.to_string();
        let message = text.split("\n\n").next().unwrap_or_default().trim();
        Error::Usage(message.strip_prefix("error: ").unwrap_or(message).to_owned())
    }

    /// 2 for a malformed command line, as clap does; 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            _ => 1,
        }
    }

    /// The message on one line: line ends in texts of other programs become blanks.
    pub fn one_line(&self) -> String {
        one_line(&self.to_string())
    }
}

impl From<server::Error> for Error {
    /// Converts errors whose messages should name a flag.
    fn from(error: server::Error) -> Self {
        match error {
            server::Error::PortTaken(address) => Error::PortTaken(address),
            server::Error::Hostname(name, why) => Error::Hostname(name, why),
            other => Error::Server(other),
        }
    }
}
