//! `rowplane test -- CMD`: runs a command beside a server of its own, which ends with it.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use rustix::fs::Mode;
use rustix::process::{Signal as Kind, umask};
use tokio::process::Command;

use super::args::TestArgs;
use super::child::{Signals, exit_code, forward, of_status};
use super::config::ServeConfig;
use super::error::Error;
use super::{envtest_assets, logging};
use crate::server::Server;
use crate::server::data_dir::Temporary;

/// Runs the command, and returns its exit status. `others_mode` is the mask for the files that the command makes.
pub async fn run(arguments: TestArgs, others_mode: Mode) -> Result<ExitCode, Error> {
    let (config, command) = arguments.into_config()?;
    let ServeConfig { mut server, log, .. } = config;
    logging::init(log.quiet());
    let mut signals = Signals::catch().map_err(Error::Signals)?;
    let directory = Temporary::create().map_err(Error::Server)?;
    let assets = directory.path().join("assets");
    envtest_assets::link_all(&assets)?;
    let data_dir = server.data_dir.get_or_insert_with(|| directory.path().join("data")).clone();
    if let Some(https) = &mut server.https {
        https.kubeconfig = Some(data_dir.join("admin.kubeconfig"));
    }
    let server = tokio::select! {
        started = Server::builder().config(server).start() => started?,
        signal = signals.next() => return Ok(exit_code(signal.as_raw())),
    };
    let status = beside(&server, &command, &assets, signals, others_mode).await;
    server.stop_now().await;
    status
}

/// Runs the command until it ends.
async fn beside(
    server: &Server,
    command: &[OsString],
    assets: &Path,
    mut signals: Signals,
    others_mode: Mode,
) -> Result<ExitCode, Error> {
    let kubeconfig = server.kubeconfig().ok_or_else(|| {
        Error::Usage(
            "--client-ca-file leaves the command without a user, since it replaces the server's own CA"
                .to_owned(),
        )
    })?;
    let (program, arguments) =
        command.split_first().ok_or_else(|| Error::Usage("there is no command".to_owned()))?;
    let mut command = Command::new(program);
    command.args(arguments).env("KUBECONFIG", kubeconfig).env("KUBEBUILDER_ASSETS", assets);
    let mask = umask(others_mode);
    let spawned = command.spawn();
    umask(mask);
    let mut child = spawned.map_err(|source| Error::Command { name: program.clone(), source })?;
    loop {
        tokio::select! {
            ended = child.wait() => return ended.map(of_status).map_err(Error::Signals),
            signal = signals.next() => forward(&child, signal),
            failure = server.failed() => {
                forward(&child, Kind::TERM);
                let _ = child.wait().await;
                return Err(Error::Failed(failure));
            }
        }
    }
}
