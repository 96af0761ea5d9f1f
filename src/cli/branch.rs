//! `rowplane branch`: forks of a running cluster, made and used by its endpoints.

pub mod apply;
pub mod connection;
pub mod fields;
mod kubeconfig;
pub mod report;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};

use self::connection::{Connection, ConnectionArgs};
use super::error::Error;
use super::output::{OutputArgs, print};
use super::table::aligned;
use crate::api::fields::text;
use crate::tree::{Map, Value};

/// Subcommands of `rowplane branch`.
#[derive(Clone, Debug, Subcommand)]
pub enum BranchCommand {
    /// Fork the cluster
    Create(CreateArgs),
    /// Show the branches
    List(ListArgs),
    /// Print a kubeconfig for a branch
    Kubeconfig(BranchArgs),
    /// Show what differs on a branch from what it was made from, field by field
    Diff(DiffArgs),
    /// Make the changes of a branch in the cluster
    Apply(ApplyArgs),
    /// Throw a branch away
    Delete(BranchArgs),
}

/// Arguments of `rowplane branch create`.
#[derive(Clone, Debug, Args)]
pub struct CreateArgs {
    #[command(flatten)]
    branch: BranchArgs,
    #[command(flatten)]
    secrets: SecretArgs,
    /// The time whose state is forked: -1h, yesterday 18:00, 2026-11-22T10:00:00Z or rv-123456 [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    at: Option<String>,
    /// A file for the branch's kubeconfig
    #[arg(long, short = 'w', value_name = "FILE")]
    write_kubeconfig: Option<PathBuf>,
}

/// The values of Secrets in a branch.
#[derive(Clone, Copy, Debug, Args)]
pub struct SecretArgs {
    /// Keeps the values of Secrets, which are replaced otherwise
    #[arg(long)]
    pub keep_secrets: bool,
}

/// The name of a branch.
#[derive(Clone, Debug, Args)]
pub struct BranchArgs {
    /// The branch
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    connection: ConnectionArgs,
}

/// Arguments of `rowplane branch list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Arguments of `rowplane branch diff`.
#[derive(Clone, Debug, Args)]
pub struct DiffArgs {
    #[command(flatten)]
    branch: BranchArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Arguments of `rowplane branch apply`.
#[derive(Clone, Debug, Args)]
pub struct ApplyArgs {
    #[command(flatten)]
    branch: BranchArgs,
    /// Does not ask
    #[arg(long, short = 'y')]
    yes: bool,
}

/// Runs a subcommand. Returns the exit status.
pub async fn run(command: BranchCommand) -> Result<ExitCode, Error> {
    match command {
        BranchCommand::Create(CreateArgs { branch, secrets, at, write_kubeconfig }) => {
            let connection = Connection::of(&branch.connection)?;
            let made = connection.create(&branch.name, secrets.keep_secrets, at.as_deref()).await?;
            if let Some(file) = &write_kubeconfig {
                write(file, &connection.kubeconfig(text(&made, &["path"]))?)?;
            }
            print(&created(&made, write_kubeconfig.as_deref()))?;
        }
        BranchCommand::List(ListArgs { connection, output }) => {
            let branches = Connection::of(&connection)?.list().await?;
            output.print(&Value::Object(branches.clone()), |_| listed(&branches))?;
        }
        BranchCommand::Kubeconfig(BranchArgs { name, connection }) => {
            let connection = Connection::of(&connection)?;
            let branch = connection.branch(&name).await?;
            print(&connection.kubeconfig(text(&branch, &["path"]))?)?;
        }
        BranchCommand::Diff(DiffArgs { branch, output }) => {
            let changes = Connection::of(&branch.connection)?.changes(&branch.name).await?;
            output.print(&Value::Object(changes.clone()), |_| report::changes(&changes))?;
        }
        BranchCommand::Apply(ApplyArgs { branch, yes }) => {
            let connection = Connection::of(&branch.connection)?;
            let changes = connection.changes(&branch.name).await?;
            if !yes {
                print(&report::changes(&changes))?;
            }
            if !yes && !is_wanted(&connection)? {
                return Ok(ExitCode::FAILURE);
            }
            return apply::all(&connection, &changes).await;
        }
        BranchCommand::Delete(BranchArgs { name, connection }) => {
            Connection::of(&connection)?.delete(&name).await?;
            print(&format!("branch {name} is deleted\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks whether changes are to be made in the cluster. Without a terminal nobody can say so.
pub fn is_wanted(connection: &Connection) -> Result<bool, Error> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        let why = "nobody can be asked whether to apply this: there is no terminal, and no --yes";
        return Err(Error::Refused(why.to_owned()));
    }
    let mut out = std::io::stderr();
    write!(out, "Make these changes in {}? [y/N] ", connection.url())
        .and_then(|()| out.flush())
        .map_err(Error::Output)?;
    let mut answer = String::new();
    input.read_line(&mut answer).map_err(Error::Output)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Writes a file for its owner alone, as the mask of the process has it.
pub fn write(path: &Path, content: &str) -> Result<(), Error> {
    std::fs::write(path, content).map_err(|error| Error::Refused(format!("{}: {error}", path.display())))
}

fn created(branch: &Map, kubeconfig: Option<&Path>) -> String {
    let name = text(branch, &["name"]);
    let mut out = format!("branch {name} of revision {}\n", text(branch, &["base"]));
    for rule in branch.get("cut").and_then(Value::as_array).into_iter().flatten() {
        out.push_str(&format!("  {}\n", rule.as_str().unwrap_or_default()));
    }
    if text(branch, &["secrets"]) == "replace" {
        out.push_str("  values of Secrets: replaced, but those of helm's releases\n");
    }
    for name in branch.get("missing").and_then(Value::as_array).into_iter().flatten() {
        out.push_str(&format!(
            "  {}: none, since those of then are not kept\n",
            name.as_str().unwrap_or_default()
        ));
    }
    match kubeconfig {
        Some(path) => out.push_str(&format!("export KUBECONFIG={}\n", path.display())),
        None => out.push_str(&format!("rowplane branch kubeconfig {name} prints its kubeconfig\n")),
    }
    out
}

fn listed(branches: &Map) -> String {
    let mut rows = vec![["NAME", "BASE", "NEWEST", "BYTES", "CREATED", "USER"].map(str::to_owned)];
    for branch in branches.get("items").and_then(Value::as_array).into_iter().flatten() {
        let Some(branch) = branch.as_object() else { continue };
        let of = |field: &str| text(branch, &[field]).to_owned();
        let bytes = branch.get("bytes").map(Value::to_string).unwrap_or_default();
        rows.push([of("name"), of("base"), of("newest"), bytes, of("created"), of("user")]);
    }
    aligned(&rows)
}
