//! The flags that test suites and test libraries use.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::cli::config::Lifetime;

/// Definitions that a server starts with, and the end of a server that belongs to another process.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Testing flags")]
pub struct TestingArgs {
    /// A file or directory with CustomResourceDefinitions to apply before the server is ready. Can be given more than
    /// once
    #[arg(long, value_name = "PATH")]
    pub(super) crds: Vec<PathBuf>,

    /// Ends the server, as SIGTERM does, when its standard input ends: when the process that holds the other end of the
    /// pipe is gone
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    exit_with_stdin: bool,

    /// Lets members of system:masters set the server's time, make it answer with faults, reset it and the like, by URLs
    /// below /rowplane/v1; at a loopback address alone
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    pub(super) test_endpoints: bool,
}

impl TestingArgs {
    pub fn lifetime(&self) -> Lifetime {
        if self.exit_with_stdin { Lifetime::UntilStdinEnds } else { Lifetime::UntilSignal }
    }
}
