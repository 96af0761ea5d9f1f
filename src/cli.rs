//! Subcommands, flags, start-up and shutdown. The only module that reads flags or the environment.
#![expect(clippy::disallowed_methods, reason = "a command has no server whose clock it could ask")]

pub mod args;
mod audit;
pub mod auth;
mod banner;
pub mod config;
mod envtest_assets;
pub mod error;
mod etcd;
pub mod feature_gates;
mod flagz;
pub mod keys;
mod kube_apiserver;
mod logging;
mod progress;
pub mod serve;
mod signals;
pub mod status;
mod table;
pub mod transfer;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use clap::error::ErrorKind;
use rustix::fs::Mode;
use rustix::process::umask;

use self::args::{Cli, Command, Defaults, StatusConfig};
use self::envtest_assets::STAND_INS;
use self::error::Error;
use self::serve::Banner;
use crate::server::config::Config;

/// Hooks by which memory that is not needed any more goes back to the system.
#[derive(Clone, Copy)]
pub struct Upkeep {
    /// Gives back what the calling thread, which is about to end, has freed.
    pub give_back: fn(),
    /// Does so now and then. Called whenever a thread has nothing to do.
    pub tidy: fn(),
}

/// The whole program: parses `arguments`, runs the subcommand, and reports a failure in one line.
///
/// `upkeep` is what the program can do besides.
pub fn main(arguments: Vec<OsString>, upkeep: Upkeep) -> ExitCode {
    match run(arguments, upkeep) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "rowplane: {}", error.one_line());
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(arguments: Vec<OsString>, upkeep: Upkeep) -> Result<(), Error> {
    // Files of this process are accessible only by their owner unless it says otherwise: they contain keys, tokens and
    // Secrets.
    umask(Mode::RWXG | Mode::RWXO);
    let arguments = as_called(arguments);
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(answer) if is_answer(answer.kind()) => return answer.print().map_err(Error::Output),
        Err(error) => return Err(Error::usage(&error)),
    };
    match cli.command() {
        Command::Serve(flags) => {
            let mut config = flags.into_config(Defaults::Own)?;
            config.server.flags = flagz::shown(&arguments);
            logging::init(config.log);
            let banner = Banner::Print { kubeconfig: config.shown_kubeconfig };
            serve(config.server, banner, upkeep)
        }
        Command::Backup(arguments) => {
            let (file, datastore) = arguments.backup.into_config()?;
            let backup = async { transfer::backup(&datastore, &file, arguments.keys.load().await?).await };
            runtime(upkeep)?.block_on(backup)?.print()
        }
        Command::Restore(arguments) => {
            let (file, datastore) = arguments.into_config()?;
            runtime(upkeep)?.block_on(transfer::restore(&file, &datastore))?.print()
        }
        Command::Status(arguments) => {
            let StatusConfig { datastore, wait, keys, max_object_bytes } = arguments.into_config()?;
            let (inventory, long) = runtime(upkeep)?.block_on(async {
                let inventory = status::inventory(&datastore, wait, &keys).await?;
                Ok::<_, Error>((inventory, status::long_objects(&datastore, max_object_bytes).await?))
            })?;
            status::print(&inventory, &long, max_object_bytes).map_err(Error::Output)
        }
        Command::Audit(arguments) => runtime(upkeep)?.block_on(audit::show(arguments)),
        Command::Migrate(arguments) => {
            let (from, to) = arguments.into_config()?;
            runtime(upkeep)?.block_on(transfer::migrate(&from, &to))?.print()
        }
        Command::Auth(command) => runtime(upkeep)?.block_on(auth::run(command)),
        Command::EnvtestAssets(arguments) => envtest_assets::fill(&arguments.dir),
        Command::KubeApiserver(others) => match kube_apiserver::parse(others.arguments)? {
            kube_apiserver::ParsedCommand::Print(text) => print(&text),
            kube_apiserver::ParsedCommand::Run(config, notes, _temporary) => {
                logging::init(config.log);
                if !notes.is_empty() {
                    tracing::warn!(flags = notes.join(", "), "flags without effect here");
                }
                serve(config.server, Banner::Omit, upkeep)
            }
        },
        Command::Etcd(others) => match etcd::parse(others.arguments)? {
            etcd::Asked::Print(text) => print(&text),
            etcd::Asked::Serve(urls) => single_threaded()?.block_on(etcd::serve(urls)),
        },
    }
}

/// The arguments, with the subcommand inserted if the program was called by another program's name: `kube-apiserver
/// ...` means `rowplane kube-apiserver ...`.
fn as_called(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let name = arguments.first().and_then(|program| Path::new(program).file_name());
    let stand_in = name.and_then(|name| name.to_str()).filter(|name| STAND_INS.contains(name));
    if let Some(stand_in) = stand_in.map(OsString::from) {
        arguments.insert(1, stand_in);
    }
    arguments
}

fn serve(config: Config, banner: Banner, upkeep: Upkeep) -> Result<(), Error> {
    let runtime = runtime(upkeep)?;
    let served = runtime.block_on(serve::serve(config, banner));
    // Tasks that did not end within the grace period are not waited for.
    runtime.shutdown_background();
    served
}

fn print(text: &str) -> Result<(), Error> {
    std::io::stdout().lock().write_all(text.as_bytes()).map_err(Error::Output)
}

/// How long an idle thread for blocking work is kept. A thread that has served requests before (tokio hands a worker's place
/// to another thread while the worker is busy for long) keeps the memory that it has allocated and others have freed, and so
/// does one that has made OpenAPI documents. Work that comes once a second must not keep all of them alive in turn.
const KEPT_ALIVE: Duration = Duration::from_millis(500);

fn runtime(upkeep: Upkeep) -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_keep_alive(KEPT_ALIVE)
        .on_thread_park(upkeep.tidy)
        .on_thread_stop(upkeep.give_back)
        .thread_name("rowplane")
        .build()
        .map_err(Error::Runtime)
}

fn single_threaded() -> Result<tokio::runtime::Runtime, Error> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)
}

/// clap reports `--help` and `--version` as errors, though they are none.
fn is_answer(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::DisplayHelp | ErrorKind::DisplayVersion)
}

#[cfg(test)]
mod tests;
