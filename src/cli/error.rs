//! Why the program could not do what it was asked to; each is one line for the operator.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue};

use crate::auth::pki;
use crate::server;
use crate::server::error::one_line;
use crate::storage::{OpenError, transfer};
use crate::tasks::Failure;

/// The exit status of a command that is not there, and of one that cannot be run, as of shells and `env`.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An error in a flag, or in the environment variable of a flag.
    #[error("{0}")]
    Usage(String),
    #[error(
        "{0} is already in use; end the program there, or choose another port with --secure-port (0 takes a free one)"
    )]
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
    #[error("cannot run {}: {source}", name.display())]
    Command { name: OsString, source: io::Error },
    #[error("{asked} is not ready: {why}")]
    Unhealthy { asked: String, why: String },
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
    /// clap's message with the name that it suggests, and without its usage, which takes many lines.
    pub(super) fn usage(error: &clap::Error) -> Self {
        let text = error.to_string();
        let message = text.split("\n\n").next().unwrap_or_default().trim();
        let mut message = message.strip_prefix("error: ").unwrap_or(message).to_owned();
        for kind in [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand] {
            let suggested = match error.get(kind) {
                Some(ContextValue::String(name)) => Some(name),
                Some(ContextValue::Strings(names)) => names.first(),
                _ => None,
            };
            if let Some(name) = suggested {
                message.push_str(&format!("; did you mean '{name}'?"));
            }
        }
        Error::Usage(message)
    }

    /// 2 for a malformed command line, as clap does; 126 or 127 for a command that cannot be run; 1 for everything else.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Command { source, .. } => failed_code(source),
            _ => 1,
        }
    }

    /// The message and the cure on one line: line ends in texts of other programs become blanks.
    pub fn one_line(&self) -> String {
        let cure = self.cure().map(|cure| format!("; {cure}")).unwrap_or_default();
        one_line(&format!("{self}{cure}"))
    }

    /// The step that usually mends it. `None` if the message says what to do, or nobody knows.
    pub fn cure(&self) -> Option<&'static str> {
        let is_denied = |source: &io::Error| source.kind() == io::ErrorKind::PermissionDenied;
        match self {
            Error::Store(error)
            | Error::Server(server::Error::Store(error))
            | Error::Transfer(transfer::Error::Open(error)) => error.cure(),
            Error::Server(server::Error::DataDir { .. }) => Some("choose another with --data-dir"),
            Error::Server(server::Error::Pki(
                pki::Error::Write { source, .. } | pki::Error::Read { source, .. },
            )) if is_denied(source) => {
                Some("run as the user who owns the directory, or choose another with --data-dir")
            }
            Error::Server(server::Error::Bind { source, .. }) if is_denied(source) => {
                Some("ports below 1024 need CAP_NET_BIND_SERVICE; choose another with --secure-port")
            }
            Error::Server(server::Error::Bind { source, .. })
                if source.kind() == io::ErrorKind::AddrNotAvailable =>
            {
                Some("no interface of this host has the address; --bind-address=0.0.0.0 listens on all")
            }
            _ => None,
        }
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

/// The exit status for a command that could not be started.
fn failed_code(error: &io::Error) -> u8 {
    if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN }
}
