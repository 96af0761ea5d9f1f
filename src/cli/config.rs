//! The result of parsing the flags of `rowplane serve`.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::server::config::Config;

/// The configuration of `rowplane serve`.
#[derive(Clone, Debug)]
pub struct ServeConfig {
    pub server: Config,
    /// The path of the kubeconfig in the message that the server is ready, if it differs from the server's own.
    pub shown_kubeconfig: Option<PathBuf>,
    pub log: LogConfig,
    /// Lines with which the log begins.
    pub warnings: Vec<&'static str>,
    pub lifetime: Lifetime,
}

/// The event that ends a server which nothing has gone wrong with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// SIGTERM or SIGINT.
    UntilSignal,
    /// The same, or the end of the standard input.
    UntilStdinEnds,
}

/// How the program logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// klog's levels.
    pub verbosity: u8,
    /// Whether only warnings and errors are logged, whatever the level.
    pub is_quiet: bool,
    pub format: LogFormat,
}

impl LogConfig {
    /// Only warnings, unless a level is asked for.
    pub fn quiet(self) -> Self {
        Self { is_quiet: self.verbosity == 0, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}
