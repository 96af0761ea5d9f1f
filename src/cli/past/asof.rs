//! `rowplane asof`: a command that sees the cluster as it was.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;
use tokio::process::Command;

use super::session::{ServerArgs, Session};
use crate::cli::child;
use crate::cli::error::Error;
use crate::cli::output::print;
use crate::server::data_dir::Temporary;

/// Arguments of `rowplane asof`.
#[derive(Clone, Debug, Args)]
pub struct AsofArgs {
    /// The time: -15m, 10:00, 'yesterday 18:00', '2026-11-22 10:00', RFC 3339, or a revision as rv-123456
    #[arg(value_name = "WHEN", allow_hyphen_values = true)]
    when: String,
    /// Print a kubeconfig for that time, for other programs, and run nothing
    #[arg(long)]
    print_kubeconfig: bool,
    /// The command to run, such as `kubectl get pods`; after --
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    #[command(flatten)]
    server: ServerArgs,
}

/// How the program was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    ByItself,
    /// The program is a plugin of kubectl, whose commands are then the usual ones.
    ByKubectl,
}

pub async fn run(arguments: AsofArgs, called: Called) -> Result<ExitCode, Error> {
    let session = Session::open(&arguments.server).await?;
    let at = session.at(&arguments.when).await?;
    if !at.shown.is_empty() {
        let _ = writeln!(std::io::stderr(), "as of {}", at.shown.replace("; revision=", ", revision "));
    }
    let kubeconfig = session.kubeconfig.behind(&at.door);
    if arguments.print_kubeconfig {
        print(&kubeconfig)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut words = arguments.command.into_iter().peekable();
    let is_kubectl = words.peek().is_some_and(|word| word == "kubectl");
    let program = match called {
        Called::ByKubectl if !is_kubectl && words.peek().is_some() => Some("kubectl".into()),
        _ => words.next(),
    };
    let program = program.ok_or_else(|| {
        Error::Usage(
            "there is no command: rowplane asof WHEN -- kubectl get pods, or --print-kubeconfig".to_owned(),
        )
    })?;
    // It holds credentials, and is gone when the command has ended.
    let directory = Temporary::create().map_err(Error::Server)?;
    let file = directory.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig).map_err(|source| Error::BackupFile { path: file.clone(), source })?;
    let mut command = Command::new(program);
    command.args(words).env("KUBECONFIG", &file);
    child::run(command).await
}
