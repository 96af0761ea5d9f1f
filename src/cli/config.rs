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
}

/// How the program logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// klog's levels.
    pub verbosity: u8,
    pub format: LogFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}
