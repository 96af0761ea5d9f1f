//! The command line. Every flag can also be set by an environment variable `ROWPLANE_<FLAG>`.

mod admission;
mod aggregation;
mod audit;
mod audit_query;
mod authentication;
mod authorization;
mod branches;
mod certificates;
mod controllers;
mod generic;
mod kubelets;
mod metrics;
mod oidc_flags;
mod serve;
mod service_accounts;
mod services;
mod sql;
mod storage;
mod test;
mod testing;
mod tls;
pub mod up;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Arg, Args, CommandFactory, Parser, Subcommand};

pub use self::admission::Defaults;
pub use self::audit_query::AuditQueryArgs;
use self::serve::ServeArgs;
pub use self::test::TestArgs;
use self::up::UpArgs;
use super::auth::AuthCommand;
use super::branch::BranchCommand;
use super::certs::CertsCommand;
use super::changes::ChangesArgs;
use super::console::ConsoleArgs;
use super::doctor::DoctorArgs;
use super::error::Error;
use super::export::ExportArgs;
use super::find::FindArgs;
use super::generate::GenerateCommand;
use super::healthcheck::HealthcheckArgs;
use super::import::ImportArgs;
use super::keys::{BackupKeyArgs, KeyArgs};
use super::open::OpenArgs;
use super::output::OutputArgs;
use super::overview;
use super::past::asof::AsofArgs;
use super::past::blame::BlameArgs;
use super::past::diff::DiffArgs;
use super::past::history::HistoryArgs;
use super::past::undo::UndoArgs;
use super::record::RecordArgs;
use super::sql::StatementArgs;
use super::status::WaitMigrations;
use super::try_command::TryArgs;
use crate::gotext;
use crate::server::datastore::Datastore;
use crate::storage::MAX_OBJECT_BYTES;
use crate::storage::postgres::ClusterId;

/// The default data directory.
pub const DATA_DIR: &str = "./rowplane-data";

/// The columns of help on a terminal that is wider.
const WIDTH: usize = 100;
const AFTER_HELP: &str = "Every flag can also be set by an environment variable: --data-dir by ROWPLANE_DATA_DIR. -h shows the most frequent flags, \
     --help all.";

/// The Kubernetes API on SQL.
#[derive(Debug, Args)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: ServeArgs,
}

impl Cli {
    /// `rowplane` alone means `rowplane serve`.
    pub fn command(self) -> Command {
        self.command.unwrap_or_else(|| Command::Serve(Box::new(self.serve)))
    }
}

impl Parser for Cli {}

impl CommandFactory for Cli {
    fn command() -> clap::Command {
        let command = Self::augment_args(clap::Command::new("rowplane").version(env!("CARGO_PKG_VERSION")));
        command
            .args_conflicts_with_subcommands(true)
            .max_term_width(WIDTH)
            .after_help(AFTER_HELP)
            .mut_args(server_flag)
            .mut_subcommand("serve", |serve| serve.mut_args(server_flag).after_help(AFTER_HELP))
            .mut_subcommand("test", |test| test.mut_args(|flag| TestArgs::flag(server_flag(flag))))
            .mut_subcommand("up", |up| {
                up.mut_args(|flag| UpArgs::flag(server_flag(flag))).after_help(AFTER_HELP)
            })
    }

    fn command_for_update() -> clap::Command {
        <Self as CommandFactory>::command()
    }
}

/// A flag of `rowplane serve` with what all of them have: an environment variable, and for a boolean Go's spellings, or
/// none for true.
fn server_flag(flag: Arg) -> Arg {
    let Some(name) = flag.get_long() else { return flag };
    let is_frequent = overview::FLAGS.iter().any(|(known, ..)| *known == name);
    let variable = variable(name);
    let flag = flag.hide_short_help(!is_frequent).env(variable).hide_env(true);
    match flag.get_value_names() {
        Some([name]) if name == "BOOL" => {
            flag.num_args(0..=1).default_missing_value("true").value_parser(switch)
        }
        _ => flag,
    }
}

/// The environment variable of a flag.
fn variable(flag: &str) -> String {
    format!("ROWPLANE_{}", flag.replace('-', "_").to_uppercase())
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API, the default
    Serve(Box<ServeArgs>),
    /// Serve a cluster: API, controller manager, scheduler
    Up(Box<UpArgs>),
    /// Run a command beside a server of its own, in memory
    Test(Box<TestArgs>),
    /// Write the state of a store to a file, while servers run
    Backup(EncryptedBackupArgs),
    /// Fill a new store from a backup
    Restore(BackupArgs),
    /// Fill a new store with a cluster that etcd has kept
    Import(ImportArgs),
    /// Write the state of a store as a snapshot for etcd
    Export(ExportArgs),
    /// Show whether servers are well, and what the store holds
    Status(StatusArgs),
    /// Ask by SELECT: all kinds, joins, any time; a shell
    Sql(StatementArgs),
    /// Find objects of all kinds by a text in them
    Find(Box<FindArgs>),
    /// Show what changes, as it changes
    Changes(Box<ChangesArgs>),
    /// Show who did what: the audit events in the database
    Audit(AuditQueryArgs),
    /// Run a command that sees the cluster as it was
    Asof(AsofArgs),
    /// Show who has changed what, newest first
    History(Box<HistoryArgs>),
    /// Show what is different between two times
    Diff(DiffArgs),
    /// Show for each field of an object who has set it, and when
    Blame(BlameArgs),
    /// Write the history since a time to a file to hand over
    Record(RecordArgs),
    /// Serve a recording, read-only
    Open(OpenArgs),
    /// Make objects what they were: a plan first, then with --yes
    Undo(Box<UndoArgs>),
    /// Copy the store of stopped servers into a new one
    Migrate(MigrateArgs),
    /// Show who may do what, and why, by the roles in a store
    #[command(subcommand)]
    Auth(AuthCommand),
    /// Look at a cluster, and at its past, in a browser
    Console(ConsoleArgs),
    /// Issue, list and renew certificates of a cluster's programs
    #[command(subcommand)]
    Certs(CertsCommand),
    /// Fork the cluster, see what differs, apply it or not
    #[command(subcommand)]
    Branch(BranchCommand),
    /// Run a command on a fork, and show what it changed there
    Try(Box<TryArgs>),
    /// Look for what is wrong, and name the step that mends it
    Doctor(Box<DoctorArgs>),
    /// Ask whether a server on this machine is ready
    Healthcheck(HealthcheckArgs),
    /// Make man pages, completions for shells, or docs/flags.md
    #[command(subcommand)]
    Generate(GenerateCommand),
    /// Fill a directory for KUBEBUILDER_ASSETS, as envtest needs
    EnvtestAssets(EnvtestAssetsArgs),
    /// Serve with kube-apiserver's flags; also by its name
    #[command(disable_help_flag = true)]
    KubeApiserver(Others),
    /// Serve etcd's API by etcd's flags; also by its name
    #[command(disable_help_flag = true)]
    Etcd(Others),
}

/// Arguments of `rowplane envtest-assets`.
#[derive(Clone, Debug, Args)]
pub struct EnvtestAssetsArgs {
    /// The directory
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
}

/// Another program's command line.
#[derive(Clone, Debug, Args)]
pub struct Others {
    #[arg(value_name = "FLAGS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// Arguments of `rowplane backup`.
#[derive(Clone, Debug, Args)]
pub struct EncryptedBackupArgs {
    #[command(flatten)]
    pub backup: BackupArgs,
    #[command(flatten)]
    pub keys: BackupKeyArgs,
}

/// A store, and the file of its backup.
#[derive(Clone, Debug, Args)]
pub struct BackupArgs {
    /// The backup
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    store: StoreArgs,
}

impl BackupArgs {
    pub fn into_config(self) -> Result<(PathBuf, Datastore, OutputArgs), Error> {
        Ok((self.file, self.store.datastore()?, self.output))
    }
}

/// Arguments of `rowplane migrate`.
#[derive(Clone, Debug, Args)]
pub struct MigrateArgs {
    /// The store to read
    #[arg(long, value_name = "URL")]
    from: String,
    /// The store to fill; it has to be new
    #[arg(long, value_name = "URL")]
    to: String,
    #[command(flatten)]
    output: OutputArgs,
}

impl MigrateArgs {
    /// From where, and to where.
    pub fn into_config(self) -> Result<(Datastore, Datastore, OutputArgs), Error> {
        let named = |url: &str| {
            let mut datastore = parse(url)?;
            if let Datastore::Postgres(address) = &mut datastore {
                address.in_arguments = true;
            }
            Ok::<_, Error>(datastore)
        };
        Ok((named(&self.from)?, named(&self.to)?, self.output))
    }
}

fn parse(url: &str) -> Result<Datastore, Error> {
    Datastore::parse(url).map_err(|error| Error::Usage(format!("invalid --datastore: {error}")))
}

/// Arguments of `rowplane status`.
#[derive(Clone, Debug, Args)]
pub struct StatusArgs {
    /// First wait until no StorageVersionMigration runs, and show their progress; fails if one has failed
    #[arg(long)]
    wait_migrations: bool,
    /// Name the objects that are larger than this number of bytes
    #[arg(long, env = "ROWPLANE_MAX_OBJECT_BYTES", value_name = "BYTES", default_value_t = MAX_OBJECT_BYTES)]
    max_object_bytes: usize,
    /// Also show the versions in which the objects of each resource are stored, and who writes them
    #[arg(long)]
    storage_versions: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    keys: KeyArgs,
}

/// The reports of `rowplane status`.
pub struct StatusConfig {
    pub datastore: Datastore,
    pub data_dir: PathBuf,
    pub wait: WaitMigrations,
    pub keys: KeyArgs,
    /// Longer objects are named.
    pub max_object_bytes: usize,
    /// Whether the versions at rest are shown.
    pub with_versions: bool,
}

impl StatusArgs {
    pub fn into_config(self) -> Result<(StatusConfig, OutputArgs), Error> {
        let wait = if self.wait_migrations { WaitMigrations::Yes } else { WaitMigrations::No };
        let (keys, max_object_bytes) = (self.keys, self.max_object_bytes);
        let (datastore, with_versions) = (self.store.datastore()?, self.storage_versions);
        let data_dir = self.store.data_dir_or_default().to_owned();
        let config = StatusConfig { datastore, data_dir, wait, keys, max_object_bytes, with_versions };
        Ok((config, self.output))
    }
}

/// The place of the state.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Datastore flags")]
pub struct StoreArgs {
    /// The directory for certificates, keys, the administrator's kubeconfig and the SQLite database
    #[arg(long, env = "ROWPLANE_DATA_DIR", value_name = "DIR", default_value = DATA_DIR)]
    data_dir: Option<PathBuf>,

    /// The store: sqlite:PATH, postgres://USER@HOST/DATABASE, or memory: for state that ends with the server
    /// [default: sqlite in the data directory]
    #[arg(long, env = "ROWPLANE_DATASTORE", value_name = "URL", hide_env_values = true)]
    datastore: Option<String>,

    /// A file with the password for PostgreSQL, and nothing else
    #[arg(long, env = "ROWPLANE_DATASTORE_PASSWORD_FILE", value_name = "FILE")]
    datastore_password_file: Option<PathBuf>,

    /// Accepts this PostgreSQL cluster although the data directory belongs to another one, after a restore or a move.
    /// The error of a server that refuses a database shows the value to give
    #[arg(long, env = "ROWPLANE_DATASTORE_ACCEPT", value_name = "SYSTEM/TIMELINE")]
    datastore_accept: Option<ClusterId>,
}

impl StoreArgs {
    /// The directory that the flag names, or else the default.
    pub fn data_dir_or_default(&self) -> &Path {
        self.data_dir().unwrap_or(Path::new(DATA_DIR))
    }

    /// The directory that the flag names; `None` in a command in which it has no default.
    pub fn data_dir(&self) -> Option<&Path> {
        self.data_dir.as_deref()
    }

    pub fn datastore(&self) -> Result<Datastore, Error> {
        let Some(url) = &self.datastore else {
            return Ok(Datastore::in_data_dir(self.data_dir_or_default()));
        };
        let mut datastore = parse(url)?;
        match &mut datastore {
            Datastore::Postgres(address) => {
                address.password_file = self.datastore_password_file.clone();
                address.accepted = self.datastore_accept;
                // The environment is for this user's eyes, and the list of processes for everybody's.
                address.in_arguments = std::env::var("ROWPLANE_DATASTORE").ok().as_ref() != Some(url);
            }
            Datastore::Sqlite(_) | Datastore::Memory if self.datastore_password_file.is_some() => {
                return Err(Error::Usage("--datastore-password-file is for PostgreSQL".to_owned()));
            }
            Datastore::Sqlite(_) | Datastore::Memory => {}
        }
        Ok(datastore)
    }
}

/// A boolean as Go's flags read it.
fn switch(text: &str) -> Result<bool, String> {
    gotext::parse_bool(text).ok_or_else(|| format!("{text:?} is neither true nor false"))
}

/// A Go duration, as everywhere in Kubernetes' flags.
fn duration(text: &str) -> Result<Duration, String> {
    if text.starts_with('-') {
        return Err("a duration here cannot be negative".to_owned());
    }
    gotext::parse_duration(text)
}

/// A duration of something that is done again and again.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() { Err("must be greater than zero".to_owned()) } else { Ok(duration) }
}
