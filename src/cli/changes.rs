//! `rowplane changes`: what changes, as it changes: a client of `/rowplane/changes`.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use http_body_util::BodyExt as _;

use super::error::Error;
use super::output::print;
use super::past::encode;
use super::past::history::{NOISY, oldest, revision, row};
use super::past::kinds;
use super::past::session::{ServerArgs, Session, refused};
use crate::cli::client::Answer;
use crate::tree::Value;

/// The longest line that is read: two objects.
const LONGEST_LINE: usize = 256 << 20;
const USUAL_SINCE: &str = "10m";

/// Arguments of `rowplane changes`.
#[derive(Clone, Debug, Args)]
pub struct ChangesArgs {
    /// Go on as changes come; without --since from now on
    #[arg(long, short)]
    follow: bool,
    /// Changes since then: a duration as 1h, or a time [default: 10m, without --follow]
    #[arg(long, value_name = "WHEN", allow_hyphen_values = true)]
    since: Option<String>,
    /// Only these kinds, as deployments.apps,secrets
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    kinds: Vec<String>,
    /// Changes in all namespaces, and of objects that have none
    #[arg(long, short = 'A')]
    all_namespaces: bool,
    /// Also changes of Events and Leases
    #[arg(long)]
    all: bool,
    /// The format: text, or json with the objects
    #[arg(
        long,
        short,
        value_name = "FORMAT",
        value_enum,
        default_value = "text",
        hide_possible_values = true
    )]
    output: Format,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub async fn run(arguments: ChangesArgs) -> Result<ExitCode, Error> {
    let session = Session::open(&arguments.server).await?;
    let since = arguments.since.as_deref().or((!arguments.follow).then_some(USUAL_SINCE));
    let mut after = match since {
        Some(since) => match revision(&session, since).await? {
            0 => oldest(&session).await?.split_once("revision=").and_then(|(_, text)| text.parse().ok()),
            after => Some(after),
        },
        None => None,
    };
    let query = query(&session, &arguments).await?;
    loop {
        let begin = after.map(|after| format!("&after={after}")).unwrap_or_default();
        let told = read(&session, &format!("/rowplane/changes?{query}{begin}"), arguments.output).await?;
        match told {
            // The server ends a stream after a while.
            Some(told) if arguments.follow => after = Some(told),
            _ => return Ok(ExitCode::SUCCESS),
        }
    }
}

async fn query(session: &Session, arguments: &ChangesArgs) -> Result<String, Error> {
    let include = if arguments.output == Format::Json { "object,previous,changed" } else { "changed" };
    let mut query = format!("follow={}&include={include}", arguments.follow);
    if !arguments.all_namespaces {
        let _ = write!(query, "&namespaces={}", encode(&session.namespace));
    }
    if !arguments.kinds.is_empty() {
        let known = kinds::load(session, "").await?;
        let named: Result<Vec<String>, Error> =
            arguments.kinds.iter().map(|name| Ok(kinds::find(&known, name)?.resource())).collect();
        let _ = write!(query, "&resources={}", encode(&named?.join(",")));
    } else if !arguments.all {
        let _ = write!(query, "&exclude={}", encode(NOISY));
    }
    Ok(query)
}

/// Prints a stream until it ends. Returns the revision up to which everything has been told.
async fn read(session: &Session, path: &str, format: Format) -> Result<Option<u64>, Error> {
    let (head, mut body) = session.client().open(path).await.map_err(Error::Refused)?.into_parts();
    let (mut buffer, mut told): (Vec<u8>, Option<u64>) = (Vec::new(), None);
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { break };
        buffer.extend_from_slice(&frame.into_data().unwrap_or_default());
        if buffer.len() > LONGEST_LINE {
            return Err(Error::Refused("a line of the stream is too long".to_owned()));
        }
        if !head.status.is_success() {
            continue;
        }
        let Some(end) = buffer.iter().rposition(|byte| *byte == b'\n') else { continue };
        let rest = buffer.split_off(end + 1);
        let lines = std::mem::replace(&mut buffer, rest);
        let mut shown = String::new();
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let value: Value = serde_json::from_slice(line)
                .map_err(|error| Error::Refused(format!("a line of the stream is no JSON: {error}")))?;
            if let Some(error) = value.get("error") {
                print(&shown)?;
                let message = error["message"].as_str().unwrap_or("the stream has ended").to_owned();
                return Err(Error::Refused(message));
            }
            told = value["revision"].as_str().and_then(|text| text.parse().ok()).or(told);
            match format {
                _ if value.get("heartbeat").is_some() => {}
                Format::Json => shown.push_str(&format!("{}\n", String::from_utf8_lossy(line))),
                Format::Text => shown.push_str(&in_words(&value)),
            }
        }
        print(&shown)?;
    }
    match head.status.is_success() {
        true => Ok(told),
        false => {
            let (status, headers) = (head.status, head.headers);
            Err(refused(&Answer { status, date: None, headers, body: buffer.into() }))
        }
    }
}

/// A change in columns that do not wait for the next ones.
fn in_words(change: &Value) -> String {
    let [revision, time, event, object, user, manager, changed] = row(change, true);
    let namespace = change["namespace"].as_str().map(|name| format!("{name} ")).unwrap_or_default();
    let who = if user.is_empty() { manager } else { format!("{user} {manager}").trim_end().to_owned() };
    format!("{revision:<9} {time}  {event:<8}  {namespace}{object}  {who}  {changed}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    #[test]
    fn a_change_is_a_line() {
        let change = json!({"revision": "12", "time": "2026-11-22T09:58:01.120Z", "event": "MODIFIED",
            "resource": "deployments.apps", "namespace": "shop", "name": "web", "user": "anna",
            "manager": "kubectl", "changed": ["spec.replicas"]});
        let line = "12        2026-11-22 09:58:01Z  MODIFIED  shop deployments.apps/web  anna kubectl  spec.replicas\n";
        assert_eq!(in_words(&change), line);
    }
}
