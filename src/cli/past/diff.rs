//! `rowplane diff`: what is different between two times, of an object or of a namespace.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::ExitCode;

use clap::Args;

use super::history::NOISY;
use super::kinds::{self, Kind};
use super::leaves::{differences, leaves, plain};
use super::session::{At, ServerArgs, Session};
use super::unified::unified;
use crate::cli::error::Error;
use crate::cli::output::print;
use crate::codec::yaml;
use crate::tree::Value;

/// The exit status when there is a difference, and when there was trouble, as of kubectl diff.
const DIFFERENT: u8 = 1;
const TROUBLE: u8 = 2;

/// Arguments of `rowplane diff`.
#[derive(Clone, Debug, Args)]
pub struct DiffArgs {
    /// The object, as deploy/web; without one, the whole namespace
    #[arg(value_name = "OBJECT", num_args = 0..=2)]
    object: Vec<String>,
    /// The earlier time, as -1h
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    from: String,
    /// The later time
    #[arg(long, value_name = "WHEN", default_value = "now", allow_hyphen_values = true)]
    to: String,
    #[command(flatten)]
    server: ServerArgs,
}

/// Prints the differences. Exits with 0 if there are none, with 1 if there are some.
pub async fn run(arguments: DiffArgs) -> Result<ExitCode, Error> {
    let session = Session::open(&arguments.server).await?;
    let (from, to) = (session.at(&arguments.from).await?, session.at(&arguments.to).await?);
    let text = match arguments.object.as_slice() {
        [] => namespace(&session, &from, &to).await?,
        words => object(&session, words, &from, &to).await?,
    };
    print(&text)?;
    Ok(if text.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
}

/// Tells what went wrong. The exit status is not that of a difference.
pub fn trouble(error: &Error) -> Result<ExitCode, Error> {
    let _ = writeln!(std::io::stderr(), "rowplane: {}", error.one_line());
    Ok(ExitCode::from(TROUBLE))
}

async fn object(session: &Session, words: &[String], from: &At, to: &At) -> Result<String, Error> {
    let kinds = kinds::load(session, &from.door).await?;
    let object = kinds::object(&kinds, words, &session.namespace)?;
    let old = session.find(&format!("{}{}", from.door, object.path())).await?;
    let new = session.find(&format!("{}{}", to.door, object.path())).await?;
    if old.is_none() && new.is_none() {
        return Err(Error::Refused(format!("{} was at neither time", object.shown())));
    }
    let text =
        |value: &Option<Value>| value.as_ref().map(|value| yaml::write(&plain(value))).unwrap_or_default();
    let name =
        |at: &At| format!("{} {}", object.shown(), if at.shown.is_empty() { "now" } else { &at.shown });
    Ok(unified(&text(&old), &text(&new), (&name(from), &name(to))))
}

/// The objects of a namespace that came, went or changed, a line for each.
async fn namespace(session: &Session, from: &At, to: &At) -> Result<String, Error> {
    let mut kinds = kinds::load(session, &from.door).await?;
    for kind in kinds::load(session, &to.door).await? {
        if !kinds.iter().any(|known| known.resource() == kind.resource()) {
            kinds.push(kind);
        }
    }
    let mut lines = String::new();
    for kind in kinds.iter().filter(|kind| is_compared(kind)) {
        let (old, new) = (items(session, kind, from).await?, items(session, kind, to).await?);
        let mut names: Vec<&String> = old.keys().chain(new.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let line = match (old.get(name), new.get(name)) {
                (None, Some(_)) => "added".to_owned(),
                (Some(_), None) => "deleted".to_owned(),
                (Some(old), Some(new)) => match changed(old, new) {
                    paths if paths.is_empty() => continue,
                    paths => format!("changed  {}", paths.join(", ")),
                },
                (None, None) => continue,
            };
            let (what, paths) = line.split_once("  ").unwrap_or((&line, ""));
            lines.push_str(format!("{what:<8} {}/{name}  {paths}", kind.resource()).trim_end());
            lines.push('\n');
        }
    }
    Ok(lines)
}

fn is_compared(kind: &Kind) -> bool {
    kind.namespaced && kind.allows("list") && !NOISY.split(',').any(|noisy| noisy == kind.resource())
}

fn changed(old: &Value, new: &Value) -> Vec<String> {
    const SHOWN: usize = 4;
    let found = differences(&leaves(&plain(old)), &leaves(&plain(new)));
    let mut paths: Vec<String> = found.iter().take(SHOWN).map(|(path, ..)| path.clone()).collect();
    if found.len() > SHOWN {
        paths.push(format!("… ({} paths)", found.len()));
    }
    paths
}

/// The objects of a kind by name; none where the kind was not served.
async fn items(session: &Session, kind: &Kind, at: &At) -> Result<BTreeMap<String, Value>, Error> {
    let path = format!("{}{}", at.door, kind.path(&session.namespace));
    let Some(_) = session.find(&format!("{path}?limit=1")).await? else { return Ok(BTreeMap::new()) };
    let items = session.list(&path).await?.into_iter();
    Ok(items.map(|item| (item["metadata"]["name"].as_str().unwrap_or_default().to_owned(), item)).collect())
}
