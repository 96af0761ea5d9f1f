//! Programs that are kept running.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Child;
use tokio_util::sync::CancellationToken;

use super::log::Log;
use super::tied;
use crate::server::error::one_line;

/// A program, and how it is run.
pub struct Program {
    pub name: &'static str,
    pub path: PathBuf,
    pub arguments: Vec<OsString>,
    /// Variables in addition to those of this process.
    pub environment: Vec<(String, OsString)>,
    /// The file of its output.
    pub log: PathBuf,
    /// How long it may take to end after SIGTERM.
    pub grace: Duration,
}

/// The ways to end a program.
#[derive(Clone, Default)]
pub struct Stop {
    /// Ends it with SIGTERM.
    pub gently: CancellationToken,
    /// Ends it with SIGKILL if SIGTERM has not done so yet.
    pub now: CancellationToken,
}

/// A program that runs. It is killed when it is dropped, as is whatever it has started in its group.
pub struct Running {
    child: Child,
    /// The group of processes; `None` once it has been killed.
    group: Option<Pid>,
    output: Receiver,
    log: Log,
    grace: Duration,
}

impl Program {
    /// Starts the program, on the main thread ([`tied::command`]).
    pub fn start(&self) -> io::Result<Running> {
        let log = Log::open(&self.log)?;
        let (output, input) = io::pipe()?;
        let mut command = tied::command(&self.path)?;
        command.args(&self.arguments).envs(self.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
        let child = command.spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let output = Receiver::from_owned_fd(output.into())?;
        Ok(Running { child, group, output, log, grace: self.grace })
    }

    /// Keeps the program running until it is to stop. `prepare` comes before each start; `attend` runs beside the program.
    pub async fn keep(
        &self,
        mut running: Option<Running>,
        stop: &Stop,
        prepare: impl Fn() -> Result<(), String>,
        attend: impl AsyncFn(),
    ) {
        let mut pause = Pause::default();
        while !stop.gently.is_cancelled() {
            let began = Instant::now();
            let started = match running.take() {
                Some(running) => Ok(running),
                None => prepare().and_then(|()| self.start().map_err(|error| error.to_string())),
            };
            let why = match started {
                Ok(mut running) => {
                    let attended = async {
                        attend().await;
                        std::future::pending::<Infallible>().await
                    };
                    tokio::select! {
                        why = running.ended() => why,
                        never = attended => match never {},
                        () = stop.gently.cancelled() => return running.stop(stop).await,
                    }
                }
                Err(why) => format!("could not be started: {why}"),
            };
            let wait = pause.after(began.elapsed());
            tell(&format!("{} {why}; it is started again in {wait:?}", self.name));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = stop.gently.cancelled() => {}
            }
        }
    }
}

impl Running {
    /// Waits for the end, and returns how it came. Output goes to the log meanwhile.
    pub async fn ended(&mut self) -> String {
        let mut buffer = [0; 16 << 10];
        let mut is_open = true;
        let ended = loop {
            tokio::select! {
                read = self.output.read(&mut buffer), if is_open => match read {
                    Ok(count) if count > 0 => self.log.add(&buffer[..count]),
                    Ok(_) | Err(_) => is_open = false,
                },
                ended = self.child.wait() => break ended,
            }
        };
        self.kill();
        // Output that it wrote last; a descendant that has left the group may keep the pipe open for ever.
        while let Ok(count @ 1..) = self.output.try_read(&mut buffer) {
            self.log.add(&buffer[..count]);
        }
        let how = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
        match self.log.last_line() {
            line if line.is_empty() => format!("ended ({how})"),
            line => format!("ended ({how}): {}", one_line(&line)),
        }
    }

    /// The last line of its output.
    pub fn last_line(&self) -> String {
        self.log.last_line()
    }

    /// Ends the program.
    pub async fn stop(mut self, stop: &Stop) {
        self.signal(Signal::TERM);
        let grace = self.grace;
        tokio::select! {
            _ = self.ended() => return,
            () = tokio::time::sleep(grace) => {}
            () = stop.now.cancelled() => {}
        }
        self.kill();
        let _ = self.child.wait().await;
    }

    fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.group = None;
    }

    fn signal(&self, signal: Signal) {
        // No group is left if nothing but the program was in it.
        if let Some(group) = self.group
            && let Err(error) = kill_process_group(group, signal)
        {
            tracing::debug!(%error, "a program cannot be signalled");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The time between the end of a program and its next start: doubled each time, until it has run well for a while.
#[derive(Default)]
struct Pause(Option<Duration>);

impl Pause {
    const SHORTEST: Duration = Duration::from_secs(1);
    const LONGEST: Duration = Duration::from_secs(60);
    /// The time for which a program has to run so that the next pause is the shortest.
    const WELL: Duration = Duration::from_secs(60);

    /// The pause after a run of this length.
    fn after(&mut self, run: Duration) -> Duration {
        let before = self.0.filter(|_| run < Self::WELL);
        let pause = before.map_or(Self::SHORTEST, |before| (before * 2).min(Self::LONGEST));
        *self.0.insert(pause)
    }
}

/// Tells the user a line.
pub fn tell(line: &str) {
    let _ = writeln!(io::stderr(), "rowplane: {line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_a_program_has_run_well() {
        let mut pause = Pause::default();
        let mut after = |seconds| pause.after(Duration::from_secs(seconds)).as_secs();
        assert_eq!([0, 5, 0, 0, 0, 0, 0, 0].map(&mut after), [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!([60, 59].map(after), [1, 2]);
    }
}
