//! `rowplane test -- CMD`: runs a command beside a server of its own, which ends with it.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use rustix::fs::Mode;
use rustix::process::{Pid, Signal as Kind, kill_process, umask};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::args::TestArgs;
use super::config::ServeConfig;
use super::error::Error;
use super::{envtest_assets, logging};
use crate::server::Server;
use crate::server::data_dir::Temporary;

/// The number that shells add to a signal's for the exit status of a command that the signal has ended.
const SIGNALED: u8 = 128;

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

/// Sends a signal to the command, unless the terminal has sent it to both.
fn forward(child: &Child, signal: Kind) {
    let is_of_terminal = signal != Kind::TERM && is_in_foreground();
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let (Some(id), false) = (id, is_of_terminal)
        && let Err(error) = kill_process(id, signal)
    {
        tracing::debug!(%error, "the command cannot be signalled");
    }
}

/// Whether this process belongs to the group that its terminal sends signals to.
fn is_in_foreground() -> bool {
    let group = std::fs::File::open("/dev/tty").ok().and_then(|tty| rustix::termios::tcgetpgrp(tty).ok());
    group == Some(rustix::process::getpgrp())
}

pub fn of_status(status: ExitStatus) -> ExitCode {
    match (status.code(), status.signal()) {
        (Some(code), _) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        (None, Some(signal)) => exit_code(signal),
        (None, None) => ExitCode::FAILURE,
    }
}

pub fn exit_code(signal: i32) -> ExitCode {
    ExitCode::from(SIGNALED.saturating_add(u8::try_from(signal).unwrap_or_default()))
}

/// The signals that the command is to get, caught from creation on.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
    hang_up: Signal,
}

impl Signals {
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    pub async fn next(&mut self) -> Kind {
        tokio::select! {
            _ = self.terminate.recv() => Kind::TERM,
            _ = self.interrupt.recv() => Kind::INT,
            _ = self.quit.recv() => Kind::QUIT,
            _ = self.hang_up.recv() => Kind::HUP,
        }
    }
}
