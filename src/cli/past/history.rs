//! `rowplane history`: who has changed what, newest first.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::encode;
use super::kinds::{self, Object};
use super::session::{ServerArgs, Session};
use crate::cli::error::Error;
use crate::cli::output::print;
use crate::cli::table::aligned;
use crate::codec::yaml;
use crate::tree::{Value, json};

/// Kinds of which there are so many changes that they hide all others.
pub const NOISY: &str = "events,events.events.k8s.io,leases.coordination.k8s.io";

/// Arguments of `rowplane history`.
#[derive(Clone, Debug, Args)]
pub struct HistoryArgs {
    /// The object, as deploy/web; without one, all changes in the namespace
    #[arg(value_name = "OBJECT", num_args = 0..=2)]
    object: Vec<String>,
    /// Only changes since then: a duration as 1h, or a time
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    since: Option<String>,
    /// Only changes of this user
    #[arg(long, value_name = "NAME", default_value = "")]
    user: String,
    /// Leave out changes of nothing but the status
    #[arg(long)]
    not_status: bool,
    /// Only these kinds, as deployments.apps,secrets
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Changes in all namespaces, and of objects that have none
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Show each change: like ones in a row are not folded, and Events and Leases not left out
    #[arg(long)]
    all: bool,
    /// The most changes to show
    #[arg(long, value_name = "CHANGES", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// The format: table, json, yaml, or name
    #[arg(
        long,
        short,
        value_name = "FORMAT",
        value_enum,
        default_value = "table",
        hide_possible_values = true
    )]
    output: Format,
    #[command(flatten)]
    server: ServerArgs,
}

/// The format of a command's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Json,
    Yaml,
    Name,
}

pub async fn run(arguments: HistoryArgs) -> Result<ExitCode, Error> {
    let session = Session::open(&arguments.server).await?;
    let after = match &arguments.since {
        None => 0,
        Some(since) => revision(&session, since).await?,
    };
    let object = match arguments.object.as_slice() {
        [] => None,
        words => Some(kinds::object(&kinds::load(&session, "").await?, words, &session.namespace)?),
    };
    let path = match &object {
        Some(object) => format!("/history{}?after={after}", object.path()),
        None => changes_path(&session, &arguments, after).await?,
    };
    let entries = entries(&session, &path, arguments.limit as usize, &arguments).await?;
    let text = match arguments.output {
        Format::Json => serde_json::to_string_pretty(&list(&entries)).unwrap_or_default() + "\n",
        Format::Yaml => yaml::write(&list(&entries)),
        Format::Name => names(&entries, object.as_ref()),
        Format::Table => table(&entries, object.is_none(), arguments.all),
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The first moment of which anything is kept, as a server names moments.
pub async fn oldest(session: &Session) -> Result<String, Error> {
    let range = session.get("/history/range").await?;
    let (time, revision) = (text(&range["oldest"]["time"]), text(&range["oldest"]["revision"]));
    Ok(format!("{time}; revision={revision}"))
}

/// The revision of a time, which may be a duration until now without its sign.
pub async fn revision(session: &Session, since: &str) -> Result<u64, Error> {
    let text = match super::when::duration(since) {
        Some(_) => format!("-{since}"),
        None => since.to_owned(),
    };
    match session.at(&text).await {
        Ok(at) => Ok(at.revision().unwrap_or_default()),
        // What is older than the store is all of it.
        Err(Error::Refused(why)) if why.contains("is not kept") => Ok(0),
        Err(error) => Err(error),
    }
}

async fn changes_path(session: &Session, arguments: &HistoryArgs, after: u64) -> Result<String, Error> {
    let mut path = format!("/history?after={after}");
    if !arguments.all_namespaces {
        let _ = write!(path, "&namespace={}", encode(&session.namespace));
    }
    if !arguments.user.is_empty() {
        let _ = write!(path, "&user={}", encode(&arguments.user));
    }
    if arguments.not_status {
        path.push_str("&notStatus=true");
    }
    if !arguments.kinds.is_empty() {
        let known = kinds::load(session, "").await?;
        let named: Result<Vec<String>, Error> =
            arguments.kinds.iter().map(|name| Ok(kinds::find(&known, name)?.resource())).collect();
        let _ = write!(path, "&resource={}", encode(&named?.join(",")));
    } else if !arguments.all {
        let _ = write!(path, "&exclude={}", encode(NOISY));
    }
    Ok(path)
}

/// Entries page by page, until there are enough.
async fn entries(
    session: &Session,
    path: &str,
    enough: usize,
    arguments: &HistoryArgs,
) -> Result<Vec<Value>, Error> {
    let mut entries = Vec::new();
    let mut rest = String::new();
    loop {
        let page = session.get(&format!("{path}&limit={}&continue={rest}", enough.min(500))).await?;
        for warning in page["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if rest.is_empty() && !arguments.kinds.is_empty() {
                eprintln_line(warning);
            }
        }
        let is_shown = |entry: &&Value| {
            arguments.object.is_empty()
                || (arguments.user.is_empty() || entry["user"] == arguments.user.as_str())
                    && !(arguments.not_status && entry["subresource"] == "status")
        };
        entries.extend(page["items"].as_array().into_iter().flatten().filter(is_shown).cloned());
        rest = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        if rest.is_empty() || entries.len() >= enough {
            entries.truncate(enough);
            return Ok(entries);
        }
    }
}

fn eprintln_line(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn list(entries: &[Value]) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "items": entries})
}

fn names(entries: &[Value], object: Option<&Object>) -> String {
    let mut names: Vec<String> = entries
        .iter()
        .map(|entry| match object {
            Some(object) => object.shown(),
            None => format!("{}/{}", text(&entry["resource"]), text(&entry["name"])),
        })
        .collect();
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names.into_iter().map(|name| name + "\n").collect()
}

/// A line for each change; like ones in a row are folded.
fn table(entries: &[Value], with_object: bool, all: bool) -> String {
    let mut rows: Vec<([String; 7], usize)> = Vec::new();
    for entry in entries {
        let row = row(entry, with_object);
        match rows.last_mut() {
            // The object, the event, who, and what has changed are the same.
            Some((last, like)) if !all && last[2..] == row[2..] => *like += 1,
            _ => rows.push((row, 0)),
        }
    }
    let head = ["REVISION", "TIME", "EVENT", "OBJECT", "USER", "MANAGER", "CHANGED"].map(str::to_owned);
    let rows = rows.into_iter().map(|(mut row, like)| {
        if like > 0 {
            let _ = write!(row[6], " (+{like} like this)");
        }
        row
    });
    let rows: Vec<[String; 7]> = [head].into_iter().chain(rows).collect();
    match with_object {
        true => aligned(&rows),
        false => {
            aligned(&rows.into_iter().map(|[a, b, c, _, e, f, g]| [a, b, c, e, f, g]).collect::<Vec<_>>())
        }
    }
}

pub fn row(entry: &Value, with_object: bool) -> [String; 7] {
    let object = match with_object {
        true => format!("{}/{}", text(&entry["resource"]), text(&entry["name"])),
        false => String::new(),
    };
    let time = text(&entry["time"]);
    let time = match time.split_once('T') {
        Some((day, clock)) => format!("{day} {}Z", clock.get(..8).unwrap_or(clock)),
        None => time,
    };
    let changed = entry["changed"].as_array().map(|paths| {
        let paths: Vec<String> = paths.iter().map(|path| text(path).replace("[name=", "[")).collect();
        match paths.len() {
            0 => "(nothing but who owns what)".to_owned(),
            1..=4 => paths.join(", "),
            more => format!("{}, … ({more} paths)", paths[..3].join(", ")),
        }
    });
    let user = match (text(&entry["user"]), text(&entry["impersonator"])) {
        (user, by) if by.is_empty() => user,
        (user, by) => format!("{user} (by {by})"),
    };
    let changed = changed.unwrap_or_else(|| "-".to_owned());
    [text(&entry["revision"]), time, text(&entry["event"]), object, user, text(&entry["manager"]), changed]
}

/// Text without what would move the cursor: names come from clients.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_changes_are_folded() {
        let entry = |revision: &str, changed: Value| {
            json!({"revision": revision, "time": "2026-11-22T09:58:01.120Z", "event": "MODIFIED", "user": "anna",
                "manager": "kubectl", "changed": changed})
        };
        let status = json!(["status.readyReplicas"]);
        let entries = [
            entry("4", json!(["spec.containers[name=app].image"])),
            entry("3", status.clone()),
            entry("2", status),
            json!({"revision": "1", "time": "2026-11-22T09:58:01.120Z", "event": "ADDED", "user": "ci"}),
        ];
        let expected = "\
REVISION  TIME                  EVENT     USER  MANAGER  CHANGED
4         2026-11-22 09:58:01Z  MODIFIED  anna  kubectl  spec.containers[app].image
3         2026-11-22 09:58:01Z  MODIFIED  anna  kubectl  status.readyReplicas (+1 like this)
1         2026-11-22 09:58:01Z  ADDED     ci             -
";
        assert_eq!(table(&entries, false, false), expected);
        assert_eq!(table(&entries, false, true).lines().count(), 5);
    }
}
