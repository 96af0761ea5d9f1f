//! `rowplane blame`: for each field of an object, the change that has made it what it is.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;

use super::kinds;
use super::leaves::{Leaves, leaves, short};
use super::session::{ServerArgs, Session};
use crate::cli::error::Error;
use crate::cli::output::{OutputArgs, print};
use crate::cli::table::aligned;
use crate::patch::apply::managers::Managers;
use crate::tree::{Value, json};

/// Arguments of `rowplane blame`.
#[derive(Clone, Debug, Args)]
pub struct BlameArgs {
    /// The object, as deploy/web
    #[arg(value_name = "OBJECT", num_args = 1..=2, required = true)]
    object: Vec<String>,
    /// The object as it was at this time
    #[arg(long, value_name = "WHEN", default_value = "now", allow_hyphen_values = true)]
    at: String,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// The change to which a leaf owes its value.
struct Blame {
    /// The entry of the history; `None` if the change is older than what is kept.
    entry: Option<Value>,
    /// The value before; `None` if there was none, or if nobody knows.
    was: Option<Value>,
}

pub async fn run(arguments: BlameArgs) -> Result<ExitCode, Error> {
    let session = Session::open(&arguments.server).await?;
    let at = session.at(&arguments.at).await?;
    let known = kinds::load(&session, &at.door).await?;
    let object = kinds::object(&known, &arguments.object, &session.namespace)?;
    let live = session.get(&format!("{}{}", at.door, object.path())).await?;
    let path = format!("/history{}?include=object&limit=100", object.path());
    let wanted = leaves(&live);
    let (blames, oldest) = trace(&session, &path, at.revision(), &wanted).await?;
    let owners = owners(&live);
    let rows: Vec<Value> = wanted
        .iter()
        .map(|(path, value)| {
            let blame = blames.get(path);
            let entry = blame.and_then(|blame| blame.entry.as_ref());
            let mut row = json!({"path": path.as_str(), "value": value.clone()});
            match entry {
                Some(entry) => {
                    for name in ["revision", "time", "user", "manager"] {
                        row[name] = entry[name].clone();
                    }
                }
                None => row["before"] = oldest.as_str().into(),
            }
            if let Some(owner) = owners.get(path) {
                row["owner"] = owner.as_str().into();
            }
            if let Some(was) = blame.and_then(|blame| blame.was.clone()) {
                row["was"] = was;
            }
            row
        })
        .collect();
    let text = arguments.output.render(&Value::Array(rows.clone()), |_| table(&rows));
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// One pass through the history, newest first, until each leaf has its answer. Also returns the oldest kept revision.
async fn trace(
    session: &Session,
    path: &str,
    at: Option<u64>,
    wanted: &Leaves,
) -> Result<(BTreeMap<String, Blame>, String), Error> {
    let mut blames = BTreeMap::new();
    // The entry that follows, with the leaves that are as they are now since then.
    let mut later: Option<Value> = None;
    let mut open: Vec<&String> = wanted.keys().collect();
    let (mut oldest, mut rest) = (String::new(), at.map(|at| (at + 1).to_string()).unwrap_or_default());
    loop {
        let mut page = session.get(&format!("{path}&continue={rest}")).await?;
        let Value::Array(entries) = page["items"].take() else { break };
        for mut entry in entries {
            let object = entry["object"].take();
            let now = if object.is_null() { Leaves::new() } else { leaves(&object) };
            oldest = entry["revision"].as_str().unwrap_or_default().to_owned();
            open.retain(|path| {
                let value = now.get(*path);
                if value == wanted.get(*path) {
                    return true;
                }
                blames.insert((*path).clone(), Blame { entry: later.clone(), was: value.cloned() });
                false
            });
            if entry["event"] == "ADDED" {
                for path in open.drain(..) {
                    blames.insert(path.clone(), Blame { entry: Some(entry.clone()), was: None });
                }
            }
            if open.is_empty() {
                return Ok((blames, oldest));
            }
            later = Some(entry);
        }
        rest = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        if rest.is_empty() {
            break;
        }
    }
    Ok((blames, oldest))
}

/// The manager that owns each leaf now, where `managedFields` names it.
fn owners(object: &Value) -> BTreeMap<String, String> {
    let entries = object["metadata"]["managedFields"].as_array().map_or(&[][..], Vec::as_slice);
    let mut owners = BTreeMap::new();
    for manager in Managers::decode(entries).map(|managers| managers.0).unwrap_or_default() {
        for path in manager.fields.paths() {
            let text = crate::api::verbs::past::path_text(&path);
            owners.insert(text, manager.identity.name.clone());
        }
    }
    owners
}

fn table(rows: &[Value]) -> String {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let cells = |row: &Value| {
        let (revision, time) = match row["before"].as_str() {
            Some(oldest) => (format!("≤ {oldest}"), String::new()),
            None => {
                (text(row, "revision"), text(row, "time").get(..19).unwrap_or_default().replace('T', " "))
            }
        };
        let manager = match (text(row, "manager"), text(row, "owner")) {
            (manager, owner) if manager.is_empty() => owner,
            (manager, owner) if owner.is_empty() || owner == manager => manager,
            (manager, owner) => format!("{manager} (now {owner})"),
        };
        let was = row.get("was").map(|was| format!("(was {})", short(was))).unwrap_or_default();
        let value = format!("{}: {}", text(row, "path").replace("[name=", "["), short(&row["value"]));
        [revision, time, text(row, "user"), manager, value, was]
    };
    let head = ["REVISION", "TIME", "USER", "MANAGER", "FIELD", ""].map(str::to_owned);
    aligned(&[head].into_iter().chain(rows.iter().map(cells)).collect::<Vec<_>>())
}
