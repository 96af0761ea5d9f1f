//! `rowplane undo`: makes objects what they were at a time, by ordinary requests with the caller's rights.
//!
//! A plan is made first, from the state at that time and the state of now, and sent as a dry run. Each write carries the
//! uid and the resourceVersion that the plan has seen: what somebody changes meanwhile is a conflict, and is kept.

mod plan;
mod send;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;

use self::plan::{Planner, Step};
use super::kinds;
use super::session::{ServerArgs, Session};
use crate::cli::error::Error;
use crate::cli::output::print;

/// Arguments of `rowplane undo`.
#[derive(Clone, Debug, Args)]
pub struct UndoArgs {
    /// The object, as deploy/web; namespace/shop is all that the namespace had
    #[arg(value_name = "OBJECT", num_args = 1..=2, required = true)]
    object: Vec<String>,
    /// The time whose state comes back, as -10m
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    to: String,
    /// Write; without this, the plan is shown and sent as a dry run
    #[arg(long)]
    yes: bool,
    /// Also delete what has been made in the namespace since then
    #[arg(long)]
    prune: bool,
    /// Only objects with these labels
    #[arg(long, short = 'l', value_name = "SELECTOR", default_value = "")]
    selector: String,
    /// Only these kinds, as deployments,secrets
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Also change objects that were deleted and created again since then
    #[arg(long)]
    across_recreation: bool,
    /// Delete and create again what has fields that cannot be changed
    #[arg(long)]
    recreate: bool,
    /// Also write the status of custom resources
    #[arg(long)]
    with_status: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// Shows the plan, and carries it out if that is asked for. Exits with 1 if something of it could not be done.
pub async fn run(arguments: UndoArgs) -> Result<ExitCode, Error> {
    let session = Session::open(&arguments.server).await?;
    let at = session.at(&arguments.to).await?;
    if at.door.is_empty() {
        return Err(Error::Usage("--to has to be in the past".to_owned()));
    }
    let then = kinds::load(&session, &at.door).await?;
    let object = kinds::object(&then, &arguments.object, &session.namespace)?;
    let planner = Planner::new(&session, &at, &arguments, then).await?;
    let plan = match object.kind.group.is_empty() && object.kind.plural == "namespaces" {
        true => planner.namespace(object).await?,
        false => vec![planner.named(object).await?],
    };
    let mut text = String::new();
    let (mut changes, mut failures) = (0, 0);
    let mut sender = send::Sender::new(&session, &arguments);
    for step in &plan {
        if let Step::Nothing = step.step {
            continue;
        }
        let outcome = sender.send(step).await?;
        let refused = matches!(step.step, Step::Refused(_));
        failures += usize::from(outcome.is_err() || refused);
        changes += usize::from(step.step.writes() && outcome.is_ok());
        let _ = writeln!(text, "{}", step.line());
        for note in step.notes.iter().chain(outcome.as_ref().ok().into_iter().flatten()) {
            let _ = writeln!(text, "        {note}");
        }
        if let Err(why) = outcome {
            let _ = writeln!(text, "        failed: {why}");
        }
    }
    let noun = if changes == 1 { "change" } else { "changes" };
    let failed = if failures == 0 { String::new() } else { format!(", {failures} could not be done") };
    let _ = match (arguments.yes, changes) {
        (true, _) => writeln!(text, "{changes} {noun} written{failed}"),
        (false, 0) => writeln!(text, "nothing to change{failed}"),
        (false, _) => writeln!(text, "{changes} {noun}{failed}; nothing was written. Repeat with --yes."),
    };
    if plan.iter().any(|step| step.object.kind.plural == "persistentvolumeclaims" && step.step.writes()) {
        text.push_str("The data in volumes does not come back.\n");
    }
    print(&text)?;
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
