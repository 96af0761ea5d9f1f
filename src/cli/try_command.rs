//! `rowplane try -- CMD`: runs a command against a fork of the cluster, and shows what it has changed there.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use axum::http::Method;
use clap::Args;
use rand::RngExt as _;
use rustix::fs::Mode;
use rustix::process::{Pid, Signal, kill_process_group, umask};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, sleep_until};

use super::branch::connection::{Connection, ConnectionArgs, told};
use super::branch::{SecretArgs, apply, is_wanted, report, write};
use super::child::{Signals, exit_code, of_status};
use super::error::Error;
use crate::api::fields::{items, text};
use crate::gotext;
use crate::server::data_dir::Temporary;
use crate::server::definitions::{self, Definition, Source};
use crate::tree::{Map, Value};

/// A branch is quiet when nothing was written to it for so long.
const QUIET: Duration = Duration::from_secs(2);
/// How often that is asked.
const ASK_EVERY: Duration = Duration::from_millis(200);
/// How long a command that has ended by itself is waited for at most, until its branch is quiet.
const PATIENCE: Duration = Duration::from_secs(30);
/// The media type of a server-side apply.
const APPLY: &str = "application/apply-patch+yaml";
/// How long a command may take to end when it is told to.
const GRACE: Duration = Duration::from_secs(5);

/// Arguments of `rowplane try`.
#[derive(Clone, Debug, Args)]
pub struct TryArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    secrets: SecretArgs,
    /// A file or directory with CustomResourceDefinitions that the fork is to have, as they are written there, before the
    /// command runs. Can be given more than once
    #[arg(long, value_name = "PATH")]
    crds: Vec<PathBuf>,
    /// Ends the command, and all that it has started, after this time
    #[arg(long = "for", value_name = "DURATION", value_parser = limit)]
    limit: Option<Duration>,
    /// Ends the command once nothing was written for two seconds
    #[arg(long, value_name = "WHEN", value_parser = ["quiet"])]
    until: Option<String>,
    /// Then makes the changes in the cluster
    #[arg(long)]
    apply: bool,
    /// Does not ask before that
    #[arg(long, short = 'y', requires = "apply")]
    yes: bool,
    /// The command, which finds the fork by KUBECONFIG
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The time that a command has.
fn limit(text: &str) -> Result<Duration, String> {
    match text.starts_with('-') {
        true => Err("a duration here cannot be negative".to_owned()),
        false => gotext::parse_duration(text),
    }
}

/// Whether a definition is served.
fn is_established(definition: &Map) -> bool {
    let holds = |condition: &Value| condition["type"] == "Established" && condition["status"] == "True";
    items(definition, &["status", "conditions"]).iter().any(holds)
}

/// Why a command has ended.
enum Ended {
    ByItself(ExitStatus),
    /// The time was over, or the branch quiet.
    Told,
    /// A signal was sent to this process.
    Signal(Signal),
}

/// Runs the command, and returns its exit status; 1 if changes that were to be applied are left. The branch is deleted in any
/// case. `others_mode` is the mask for the files that the command makes.
pub async fn run(arguments: TryArgs, others_mode: Mode) -> Result<ExitCode, Error> {
    let connection = Connection::of(&arguments.connection)?;
    let sources: Vec<Source> = arguments.crds.iter().cloned().map(Source::Path).collect();
    let definitions = definitions::read(&sources).map_err(|error| Error::Refused(error.to_string()))?;
    let mut signals = Signals::catch().map_err(Error::Signals)?;
    let name = format!("try-{:08x}", rand::rng().random::<u32>());
    let branch = connection.create(&name, arguments.secrets.keep_secrets, None).await?;
    let kubeconfig = connection.kubeconfig(text(&branch, &["path"]))?;
    let tried = Trial { connection: &connection, name: &name, arguments: &arguments };
    let status = match tried.define(text(&branch, &["path"]), definitions).await {
        Ok(()) => tried.run(&kubeconfig, &mut signals, others_mode).await,
        Err(error) => Err(error),
    };
    let deleted = connection.delete(&name).await;
    let status = status?;
    deleted?;
    Ok(status)
}

/// One run of a command against a branch.
struct Trial<'a> {
    connection: &'a Connection,
    name: &'a str,
    arguments: &'a TryArgs,
}

impl Trial<'_> {
    /// Makes definitions on the branch at a path what they are in files, and waits until they are served.
    async fn define(&self, path: &str, definitions: Vec<Definition>) -> Result<(), Error> {
        for Definition { name, object, .. } in definitions {
            let url = format!("{path}{}/{name}", definitions::PATH);
            let (object, apply) =
                (Value::Object(object), format!("{url}?fieldManager=rowplane-try&force=true"));
            let mut answer = self.connection.ask(Method::PATCH, &apply, Some((APPLY, &object))).await?;
            let until = Instant::now() + PATIENCE;
            while answer.0.is_success() && !is_established(&answer.1) && Instant::now() < until {
                sleep(ASK_EVERY).await;
                answer = self.connection.ask(Method::GET, &url, None).await?;
            }
            let (status, answer) = answer;
            if !status.is_success() {
                return Err(Error::Refused(told(status, &answer)));
            }
            if !is_established(&answer) {
                return Err(Error::Refused(format!("the definition {name} is not served on the branch")));
            }
        }
        Ok(())
    }

    async fn run(
        &self,
        kubeconfig: &str,
        signals: &mut Signals,
        others_mode: Mode,
    ) -> Result<ExitCode, Error> {
        let directory = Temporary::create().map_err(Error::Server)?;
        let file = directory.path().join("kubeconfig");
        write(&file, kubeconfig)?;
        let (program, rest) = self
            .arguments
            .command
            .split_first()
            .ok_or_else(|| Error::Usage("there is no command".to_owned()))?;
        let mut command = Command::new(program);
        command.args(rest).env("KUBECONFIG", &file).kill_on_drop(true);
        if self.is_limited() {
            // So that all can be ended that it starts.
            command.process_group(0);
        }
        let mask = umask(others_mode);
        let spawned = command.spawn();
        umask(mask);
        let mut child = spawned.map_err(|source| Error::Command { name: program.clone(), source })?;
        let status = match self.until_ended(&mut child, signals).await? {
            Ended::ByItself(status) => of_status(status),
            Ended::Told => ExitCode::SUCCESS,
            Ended::Signal(signal) => return Ok(exit_code(signal.as_raw())),
        };
        self.until_quiet(Some(PATIENCE)).await?;
        let changes = self.connection.changes(self.name).await?;
        super::output::print(&report::changes(&changes))?;
        if self.arguments.apply && (self.arguments.yes || is_wanted(self.connection)?) {
            let applied = apply::all(self.connection, &changes).await?;
            return Ok(if status == ExitCode::SUCCESS { applied } else { status });
        }
        Ok(status)
    }

    /// Whether the command may be ended before it ends by itself.
    fn is_limited(&self) -> bool {
        self.arguments.limit.is_some() || self.arguments.until.is_some()
    }

    async fn until_ended(&self, child: &mut Child, signals: &mut Signals) -> Result<Ended, Error> {
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let late = self.arguments.limit.map(|limit| Instant::now() + limit);
        let late = async {
            match late {
                Some(late) => sleep_until(late).await,
                None => std::future::pending().await,
            }
        };
        let quiet = async {
            match self.arguments.until {
                Some(_) => self.until_quiet(None).await,
                None => std::future::pending().await,
            }
        };
        let ended = tokio::select! {
            ended = child.wait() => Ended::ByItself(ended.map_err(Error::Signals)?),
            () = late => Ended::Told,
            quiet = quiet => quiet.map(|()| Ended::Told)?,
            signal = signals.next() => Ended::Signal(signal),
        };
        if !matches!(ended, Ended::ByItself(_)) || self.is_limited() {
            self.end(child, group).await;
        }
        Ok(ended)
    }

    /// Ends the command, with all that it has started if it has a group of its own.
    async fn end(&self, child: &mut Child, group: Option<Pid>) {
        let send = |signal: Signal| match (group, self.is_limited()) {
            (Some(group), true) => drop(kill_process_group(group, signal)),
            (Some(process), false) => drop(rustix::process::kill_process(process, signal)),
            (None, _) => {}
        };
        send(Signal::TERM);
        if tokio::time::timeout(GRACE, child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
        if self.is_limited() {
            send(Signal::KILL);
        }
    }

    /// Waits until nothing was written to the branch for a while, or for at most `patience`.
    async fn until_quiet(&self, patience: Option<Duration>) -> Result<(), Error> {
        let begun = Instant::now();
        let (mut newest, mut since) = (String::new(), Instant::now());
        while since.elapsed() < QUIET && patience.is_none_or(|patience| begun.elapsed() < patience) {
            let branch = self.connection.branch(self.name).await?;
            let now = text(&branch, &["newest"]);
            if now != newest {
                (newest, since) = (now.to_owned(), Instant::now());
            }
            sleep(ASK_EVERY).await;
        }
        Ok(())
    }
}
