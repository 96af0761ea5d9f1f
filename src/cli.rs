//! Subcommands, flags, start-up and shutdown. The only module that reads flags or the environment.
#![expect(clippy::disallowed_methods, reason = "a command has no server whose clock it could ask")]

pub mod args;
mod audit;
pub mod auth;
mod banner;
mod branch;
mod certs;
mod changes;
mod child;
mod client;
pub mod config;
mod console;
mod doctor;
mod envtest_assets;
pub mod error;
mod etcd;
pub mod export;
pub mod feature_gates;
mod find;
mod flagz;
mod generate;
mod healthcheck;
pub mod import;
pub mod keys;
mod kube_apiserver;
mod logging;
mod open;
mod output;
mod overview;
mod past;
mod progress;
mod record;
pub mod serve;
mod signals;
mod sql;
pub mod status;
mod table;
mod test_command;
pub mod transfer;
mod try_command;
mod up;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use clap::error::ErrorKind;
use rustix::fs::Mode;
use rustix::process::umask;

use self::args::{Cli, Command, Defaults};
use self::config::ServeConfig;
use self::envtest_assets::STAND_INS;
use self::error::Error;
use self::kube_apiserver::etcd_servers::EtcdServers;
use self::serve::Banner;

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
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "rowplane: {}", error.one_line());
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(arguments: Vec<OsString>, upkeep: Upkeep) -> Result<ExitCode, Error> {
    // Files of this process are accessible only by their owner unless it says otherwise: they contain keys, tokens and
    // Secrets.
    let others_mode = umask(Mode::RWXG | Mode::RWXO);
    if let Some((parent, program, arguments)) = up::tied::asked(&arguments) {
        return Err(up::tied::become_program(parent, program, arguments));
    }
    let arguments = as_called(arguments);
    if arguments.get(1..).is_some_and(|flags| flags == ["-h"]) {
        return print(&overview::text()).map(|()| ExitCode::SUCCESS);
    }
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(answer) if is_answer(answer.kind()) => {
            return answer.print().map(|()| ExitCode::SUCCESS).map_err(Error::Output);
        }
        Err(error) => return Err(Error::usage(&error)),
    };
    execute(cli.command(), &arguments, upkeep, others_mode)
}

/// Runs a subcommand. `others_mode` is the mask for files that other programs make.
fn execute(
    command: Command,
    arguments: &[OsString],
    upkeep: Upkeep,
    others_mode: Mode,
) -> Result<ExitCode, Error> {
    match command {
        Command::Serve(flags) => {
            let mut config = flags.into_config(Defaults::Own)?;
            config.server.flags = flagz::shown(arguments);
            logging::init(config.log);
            let banner = Banner::Print { kubeconfig: config.shown_kubeconfig.take() };
            serve(config, banner, upkeep)?;
        }
        Command::Up(flags) => {
            run_and_leave(upkeep, up::run(*flags, arguments.get(2..).unwrap_or_default()))?;
        }
        Command::Test(flags) => return run_and_leave(upkeep, test_command::run(*flags, others_mode)),
        Command::Backup(arguments) => {
            let (file, datastore, output) = arguments.backup.into_config()?;
            let backup = async { transfer::backup(&datastore, &file, arguments.keys.load().await?).await };
            runtime(upkeep)?.block_on(backup)?.print(output)?;
        }
        Command::Restore(arguments) => {
            let (file, datastore, output) = arguments.into_config()?;
            runtime(upkeep)?.block_on(transfer::restore(&file, &datastore))?.print(output)?;
        }
        Command::Export(arguments) => runtime(upkeep)?.block_on(export::run(arguments))?,
        Command::Import(arguments) => runtime(upkeep)?.block_on(import::run(arguments))?,
        Command::Status(arguments) => {
            let (config, output) = arguments.into_config()?;
            runtime(upkeep)?.block_on(status::show(config, output))?;
        }
        Command::Audit(arguments) => runtime(upkeep)?.block_on(audit::show(arguments))?,
        Command::Asof(asof) => return runtime(upkeep)?.block_on(past::asof::run(asof, called(arguments))),
        Command::History(arguments) => return runtime(upkeep)?.block_on(past::history::run(*arguments)),
        Command::Diff(arguments) => {
            let compared = runtime(upkeep)?.block_on(past::diff::run(arguments));
            return compared.or_else(|error| past::diff::trouble(&error));
        }
        Command::Blame(arguments) => return runtime(upkeep)?.block_on(past::blame::run(arguments)),
        Command::Record(arguments) => return runtime(upkeep)?.block_on(record::run(arguments)),
        Command::Open(arguments) => return runtime(upkeep)?.block_on(open::run(arguments)),
        Command::Undo(arguments) => return runtime(upkeep)?.block_on(past::undo::run(*arguments)),
        Command::Migrate(arguments) => {
            let (from, to, output) = arguments.into_config()?;
            runtime(upkeep)?.block_on(transfer::migrate(&from, &to))?.print(output)?;
        }
        Command::Sql(arguments) => sql::run(arguments, &single_threaded()?)?,
        Command::Find(arguments) => return runtime(upkeep)?.block_on(find::run(*arguments)),
        Command::Changes(arguments) => return runtime(upkeep)?.block_on(changes::run(*arguments)),
        Command::Auth(command) => runtime(upkeep)?.block_on(auth::run(command))?,
        Command::Console(arguments) => runtime(upkeep)?.block_on(console::run(arguments))?,
        Command::Certs(command) => certs::run(command)?,
        Command::Branch(command) => return runtime(upkeep)?.block_on(branch::run(command)),
        Command::Try(flags) => return runtime(upkeep)?.block_on(try_command::run(*flags, others_mode)),
        Command::Doctor(arguments) => runtime(upkeep)?.block_on(doctor::run(*arguments))?,
        Command::Healthcheck(arguments) => single_threaded()?.block_on(healthcheck::check(arguments))?,
        Command::Generate(command) => {
            // Man pages are for everybody.
            umask(others_mode);
            generate::run(&command)?;
        }
        Command::EnvtestAssets(arguments) => envtest_assets::fill(&arguments.dir)?,
        Command::KubeApiserver(others) => run_kube_apiserver(others.arguments, upkeep)?,
        Command::Etcd(others) => match etcd::parse(others.arguments, |name| std::env::var(name).ok())? {
            etcd::Asked::Print(text) => print(&text)?,
            etcd::Asked::Serve(config) => {
                logging::init(config.log);
                run_and_leave(upkeep, etcd::serve(*config))?;
            }
        },
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs `kube-apiserver` with these arguments.
fn run_kube_apiserver(arguments: Vec<String>, upkeep: Upkeep) -> Result<(), Error> {
    let ask = |servers: &EtcdServers| single_threaded()?.block_on(servers.ask());
    match kube_apiserver::parse(arguments, ask)? {
        kube_apiserver::ParsedCommand::Print(text) => print(&text),
        kube_apiserver::ParsedCommand::Run(run) => serve_as_kube_apiserver(*run, upkeep),
    }
}

/// Runs a command with a server of its own, and waits for none of the server's threads in the end.
fn run_and_leave<T>(upkeep: Upkeep, command: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = runtime(upkeep)?;
    let ended = runtime.block_on(command);
    runtime.shutdown_background();
    ended
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

/// Whether kubectl has called the program as its plugin, by the name that it looks for.
fn called(arguments: &[OsString]) -> past::asof::Called {
    let name = arguments.first().and_then(|program| Path::new(program).file_name());
    match name.is_some_and(|name| name == "kubectl-rowplane") {
        true => past::asof::Called::ByKubectl,
        false => past::asof::Called::ByItself,
    }
}

fn serve_as_kube_apiserver(run: kube_apiserver::Run, upkeep: Upkeep) -> Result<(), Error> {
    // The directory is removed when the server has ended.
    let kube_apiserver::Run { config, notes, in_memory, temporary: _temporary } = run;
    logging::init(config.log);
    if !notes.is_empty() {
        tracing::warn!(flags = notes.join(", "), "flags without effect here");
    }
    if let Some(why) = in_memory {
        tracing::warn!(
            why,
            "THE STATE IS IN MEMORY and is lost when this process ends; --datastore or --data-dir keeps it \
             (docs/kubeadm.md)"
        );
    }
    serve(config, Banner::Omit, upkeep)
}

fn serve(config: ServeConfig, banner: Banner, upkeep: Upkeep) -> Result<(), Error> {
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
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
