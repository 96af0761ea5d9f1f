//! Commands that this program starts and waits for.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitCode, ExitStatus};

use rustix::process::{Pid, Signal as Kind, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::error::Error;

/// The number that shells add to a signal's for the exit status of a command that the signal has ended.
const SIGNALED: u8 = 128;

/// Runs a command until it ends, and returns its exit status.
pub async fn run(mut command: Command) -> Result<ExitCode, Error> {
    let mut signals = Signals::catch().map_err(Error::Signals)?;
    let name = command.as_std().get_program().to_owned();
    let mut child = command.spawn().map_err(|source| Error::Command { name, source })?;
    loop {
        tokio::select! {
            ended = child.wait() => return ended.map(of_status).map_err(Error::Signals),
            signal = signals.next() => forward(&child, signal),
        }
    }
}

/// Sends a signal to the command, unless the terminal has sent it to both.
pub fn forward(child: &Child, signal: Kind) {
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
