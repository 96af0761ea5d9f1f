//! `rowplane record`: the history of a cluster since a time, as one file to hand over; `rowplane open` serves it.

mod redact;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use axum::http::{Method, StatusCode};
use clap::Args;
use http_body_util::BodyExt as _;

use self::redact::redact;
use super::error::Error;
use super::past::encode;
use super::past::history::oldest;
use super::past::kinds::{self, Kind};
use super::past::session::{ServerArgs, Session, parse, refused};
use super::past::when::duration;
use crate::cli::client::Answer;
use crate::codec::at_rest::of_json;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::server::data_dir;
use crate::storage::recording::{RecordedChange, RecordedVersion, Span};
use crate::storage::sqlite::{Recorder, Sqlite};
use crate::storage::{ChangeKind, Moment, Upkeep as _, Writer};
use crate::tree::{Map, Value};

/// The longest line that is read: two objects.
const LONGEST_LINE: usize = 256 << 20;
/// Renewals of leases are most changes of a cluster, and nobody asks for them later.
const NEVER: &str = "leases.coordination.k8s.io";

/// Arguments of `rowplane record`.
#[derive(Clone, Debug, Args)]
pub struct RecordArgs {
    /// The file, which must not be there yet
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// From when on: a duration as 2h, or a time
    #[arg(long, value_name = "WHEN", default_value = "1h", allow_hyphen_values = true)]
    since: String,
    /// Leave out what Secrets hold: their values are empty, and so are their annotations, where managers keep copies
    #[arg(long)]
    redact: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// A recording in the making.
struct Recording {
    session: Session,
    recorder: Recorder,
    redacts: bool,
    versions: u64,
    /// Kinds of which there are no changes in the recording, by their names.
    without_changes: BTreeSet<String>,
}

pub async fn run(arguments: RecordArgs) -> Result<ExitCode, Error> {
    let session = Session::open(&arguments.server).await?;
    let since = match duration(&arguments.since) {
        Some(_) => format!("-{}", arguments.since),
        None => arguments.since.clone(),
    };
    let shown = match session.at(&since).await {
        Ok(at) => at.shown,
        // What is older than the store is all of it.
        Err(Error::Refused(why)) if why.contains("is not kept") => oldest(&session).await?,
        Err(error) => return Err(error),
    };
    let from = moment(&shown)?;
    let partial = Partial::create(&arguments.file)?;
    let store = Sqlite::open(&partial.file).await.map_err(crate::storage::transfer::Error::from)?;
    let recorder = store.recorder().await?;
    store.close().await;
    let mut recording = Recording {
        session,
        recorder,
        redacts: arguments.redact,
        versions: 0,
        without_changes: [NEVER.to_owned()].into(),
    };
    let until = recording.fill(from).await?;
    let versions = recording.versions;
    recording.recorder.finish(Span { from, until }).await?;
    partial.publish(&arguments.file)?;
    let said = format!(
        "{}: {versions} versions, from revision {} to {}; rowplane open serves them\n",
        arguments.file.display(),
        from.revision,
        until.revision
    );
    super::output::print(&said)?;
    Ok(ExitCode::SUCCESS)
}

impl Recording {
    /// Adds the state at the beginning, and the changes since then. Returns the end.
    async fn fill(&mut self, from: Moment) -> Result<Moment, Error> {
        let door = format!("/asof/rv-{}", from.revision);
        let is_recorded = |kind: &Kind| {
            kind.allows("list")
                && kind.allows("watch")
                && kind.group != "events.k8s.io"
                && kind.resource() != NEVER
        };
        let mut late = Vec::new();
        for kind in kinds::load(&self.session, &door).await?.into_iter().filter(is_recorded) {
            if !self.state(&door, &kind).await? {
                late.push(kind);
            }
        }
        let until = self.changes(from.revision).await?;
        let door = format!("/asof/rv-{}", until.revision);
        for kind in late {
            // History that is kept for a shorter time has at least its last state.
            self.state(&door, &kind).await?;
        }
        Ok(until)
    }

    /// Adds the objects of a kind behind a door. False if its history does not reach there.
    async fn state(&mut self, door: &str, kind: &Kind) -> Result<bool, Error> {
        let mut token = String::new();
        loop {
            let path = format!("{door}{}?limit=500&continue={token}", kind.path(""));
            let answer = self.session.send(Method::GET, &path, String::new()).await?;
            match answer.status {
                StatusCode::GONE => {
                    self.without_changes.insert(kind.resource());
                    return Ok(false);
                }
                StatusCode::FORBIDDEN => {
                    let _ = writeln!(std::io::stderr(), "left out: {}", refused(&answer));
                    self.without_changes.insert(kind.resource());
                    return Ok(true);
                }
                _ => {}
            }
            let mut page = parse(&answer)?;
            let Value::Array(items) = page["items"].take() else { return Ok(true) };
            for item in items {
                let Value::Object(item) = item else { continue };
                let mut object = Map::with_capacity(item.len() + 2);
                object.push("kind".into(), kind.kind.as_str().into());
                object.push("apiVersion".into(), kind.api_version().into());
                let rest = item.iter().filter(|(name, _)| !matches!(name.as_str(), "kind" | "apiVersion"));
                rest.for_each(|(name, value)| _ = object.push(name.clone(), value.clone()));
                self.add(GroupResource::new(&kind.group, &kind.plural), object, None).await?;
            }
            token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Adds the changes after a revision. Returns the moment up to which they have been told.
    async fn changes(&mut self, after: Revision) -> Result<Moment, Error> {
        let now = kinds::load(&self.session, "").await?;
        let mut excluded = String::new();
        for kind in now.iter().filter(|kind| self.without_changes.contains(&kind.resource())) {
            let _ = write!(excluded, "{},", kind.resource());
        }
        let excluded = encode(excluded.trim_end_matches(','));
        let path = format!(
            "/rowplane/changes?follow=false&include=object,previous&after={after}&exclude={excluded}"
        );
        let answer = self.session.client().open(&path).await.map_err(Error::Refused)?;
        let (head, mut body) = answer.into_parts();
        let (mut buffer, mut until): (Vec<u8>, Option<Moment>) = (Vec::new(), None);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Error::Refused(format!("the stream breaks off: {error}")))?;
            buffer.extend_from_slice(&frame.into_data().unwrap_or_default());
            if buffer.len() > LONGEST_LINE {
                return Err(Error::Refused("a line of the stream is too long".to_owned()));
            }
            while head.status.is_success()
                && let Some(end) = memchr::memchr(b'\n', &buffer)
            {
                let rest = buffer.split_off(end + 1);
                let line: Value = serde_json::from_slice(&buffer)
                    .map_err(|error| Error::Refused(format!("a line of the stream is no JSON: {error}")))?;
                buffer = rest;
                if let Some(error) = line.get("error") {
                    let message = error["message"].as_str().unwrap_or("the stream has ended").to_owned();
                    return Err(Error::Refused(message));
                }
                match line.get("heartbeat") {
                    Some(_) => until = Some(of_line(&line)?),
                    None => self.change(line).await?,
                }
            }
        }
        if !head.status.is_success() {
            let (status, headers) = (head.status, head.headers);
            return Err(refused(&Answer { status, date: None, headers, body: buffer.into() }));
        }
        until.ok_or_else(|| Error::Refused("the stream breaks off".to_owned()))
    }

    async fn change(&mut self, line: Value) -> Result<(), Error> {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let kind = match line["event"].as_str() {
            Some("ADDED") => ChangeKind::Added,
            Some("DELETED") => ChangeKind::Deleted,
            _ => ChangeKind::Modified,
        };
        let moment = of_line(&line)?;
        let writer = Writer {
            username: text("user"),
            impersonator: text("impersonator"),
            verb: text("verb"),
            subresource: text("subresource"),
            manager: text("manager"),
            client: text("client"),
        };
        let name = text("resource");
        let (plural, group) = name.split_once('.').unwrap_or((&name, ""));
        let resource = GroupResource::new(group, plural);
        let previous = line["previous"]["metadata"]["resourceVersion"].as_str();
        let previous = previous.and_then(|text| text.parse().ok()).map(Revision);
        let has_writer = writer != Writer::default();
        let writer = has_writer.then_some(writer);
        let change = RecordedChange { kind, previous, committed_ms: moment.committed_ms, writer };
        match line["object"].clone() {
            Value::Object(object) => self.add(resource, object, Some(change)).await,
            _ => {
                let before = &line["previous"];
                let stored_version = before["apiVersion"].as_str().unwrap_or_default().to_owned();
                let deletion = RecordedVersion {
                    resource,
                    namespace: text("namespace"),
                    name: text("name"),
                    revision: moment.revision,
                    uid: text("uid"),
                    stored_version,
                    value: Vec::new(),
                    change: Some(change),
                };
                self.insert(deletion).await
            }
        }
    }

    /// Adds a version of an object, as the API shows it.
    async fn add(
        &mut self,
        resource: GroupResource,
        mut object: Map,
        change: Option<RecordedChange>,
    ) -> Result<(), Error> {
        if self.redacts {
            redact(&mut object);
        }
        let text = |object: &Map, name: &str| {
            let found = object.get("metadata").and_then(|metadata| metadata.get(name)?.as_str());
            found.unwrap_or_default().to_owned()
        };
        let (namespace, name, uid) =
            (text(&object, "namespace"), text(&object, "name"), text(&object, "uid"));
        let revision = text(&object, "resourceVersion").parse().map(Revision);
        let revision =
            revision.map_err(|_| Error::Refused(format!("{resource} {name:?} has no revision")))?;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.shift_remove("resourceVersion");
        }
        let stored_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default().to_owned();
        let json = serde_json::to_vec(&object).map_err(|error| Error::Refused(error.to_string()))?;
        let value = of_json(&json).to_vec();
        self.insert(RecordedVersion {
            resource,
            namespace,
            name,
            revision,
            uid,
            stored_version,
            value,
            change,
        })
        .await
    }

    async fn insert(&mut self, version: RecordedVersion) -> Result<(), Error> {
        self.recorder.add(version).await?;
        self.versions += 1;
        Ok(())
    }
}

/// The moment that a server names: `2026-11-22T09:59:58.412Z; revision=123456`.
fn moment(shown: &str) -> Result<Moment, Error> {
    let parsed = shown.split_once("; revision=").and_then(|(time, revision)| of_texts(time, revision));
    parsed.ok_or_else(|| Error::Usage("--since has to be a time in the past".to_owned()))
}

/// The revision and the time of a line.
fn of_line(line: &Value) -> Result<Moment, Error> {
    let parsed = line["time"]
        .as_str()
        .zip(line["revision"].as_str())
        .and_then(|(time, revision)| of_texts(time, revision));
    parsed.ok_or_else(|| Error::Refused(format!("a line of the stream has no time: {line}")))
}

fn of_texts(time: &str, revision: &str) -> Option<Moment> {
    let committed_ms = time.parse::<jiff::Timestamp>().ok()?.as_millisecond();
    Some(Moment { revision: Revision(revision.parse().ok()?), committed_ms })
}

/// A file in a directory of its own beside its place, which goes unless the file is published.
struct Partial {
    directory: PathBuf,
    file: PathBuf,
}

impl Partial {
    fn create(target: &Path) -> Result<Self, Error> {
        if target.exists() {
            return Err(Error::Usage(format!("{} is there already", target.display())));
        }
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{:08x}.partial", rand::random::<u32>()));
        let directory = PathBuf::from(name);
        data_dir::create(&directory)?;
        Ok(Self { file: directory.join("recording"), directory })
    }

    fn publish(&self, target: &Path) -> Result<(), Error> {
        let moved = std::fs::rename(&self.file, target);
        moved.map_err(|source| Error::BackupFile { path: target.to_owned(), source })
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
