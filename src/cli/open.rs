//! `rowplane open`: a server over a file that `rowplane record` has written. It shows the end of the recording, and the
//! times before it; nothing can be changed.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser as _};
use tokio::process::Command as Program;

use super::args::{Cli, Command};
use super::config::{Lifetime, ServeConfig};
use super::error::Error;
use super::signals::Ends;
use super::{child, logging};
use crate::http::past::Recording;
use crate::server::Server;
use crate::server::config::Controllers;
use crate::server::data_dir::Temporary;
use crate::storage::sqlite::Sqlite;
use crate::storage::{Reads as _, Upkeep as _};

/// Arguments of `rowplane open`.
#[derive(Clone, Debug, Args)]
pub struct OpenArgs {
    /// The recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// The command to run beside the server, which ends with it, such as `k9s`; after --
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Serves a copy of the file until the command ends, or a signal arrives.
pub async fn run(arguments: OpenArgs) -> Result<ExitCode, Error> {
    let directory = Temporary::create().map_err(Error::Server)?;
    let copy = directory.path().join("recording.db");
    let failed = |source| Error::BackupFile { path: arguments.file.clone(), source };
    std::fs::copy(&arguments.file, &copy).map_err(failed)?;
    let store = Sqlite::open(&copy).await.map_err(crate::storage::transfer::Error::from)?;
    let clock = store.clock().await.map_err(crate::storage::transfer::Error::from);
    store.close().await;
    let revision = clock?.revision;
    let line = [
        "rowplane".to_owned(),
        "test".to_owned(),
        format!("--datastore=sqlite:{}", copy.display()),
        format!("--data-dir={}", directory.path().join("data").display()),
        format!("--secure-port={}", arguments.port),
        "--".to_owned(),
        "command".to_owned(),
    ];
    let Command::Test(flags) = Cli::try_parse_from(line).map_err(|error| Error::usage(&error))?.command()
    else {
        return Err(Error::Usage("the flags of a test are those of no test".to_owned()));
    };
    let (ServeConfig { mut server, log, .. }, _) = flags.into_config()?;
    logging::init(log.quiet());
    server.controllers = Controllers::Off;
    server.compaction = None;
    server.recording = Some(Recording { revision, file: arguments.file.display().to_string() });
    let mut ends = Ends::catch(Lifetime::UntilSignal).map_err(Error::Signals)?;
    let server = tokio::select! {
        started = Server::builder().config(server).start() => started?,
        _ = ends.next() => return Ok(ExitCode::SUCCESS),
    };
    let kubeconfig = server.kubeconfig().ok_or_else(|| Error::Usage("the server has no user".to_owned()))?;
    let ended = match arguments.command.split_first() {
        Some((program, words)) => {
            let mut command = Program::new(program);
            command.args(words).env("KUBECONFIG", kubeconfig);
            child::run(command).await
        }
        None => {
            let shown = kubeconfig.display();
            let said = format!("read-only at revision {revision}; until Ctrl-C: export KUBECONFIG={shown}\n");
            let written = std::io::stdout().lock().write_all(said.as_bytes());
            written.map_err(Error::Output)?;
            ends.next().await;
            Ok(ExitCode::SUCCESS)
        }
    };
    server.stop_now().await;
    ended
}
