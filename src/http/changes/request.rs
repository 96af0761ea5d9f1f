//! The parameters of a stream of changes.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::request::Parts;

use crate::api::error::Error;
use crate::gotext;
use crate::http::request::query;
use crate::revision::Revision;

const USUAL_HEARTBEAT: Duration = Duration::from_secs(10);
const SHORTEST_HEARTBEAT: Duration = Duration::from_secs(1);
const LONGEST_HEARTBEAT: Duration = Duration::from_secs(300);

/// The form of the lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Ndjson,
    CloudEvents,
    Debezium,
}

/// The parameters of a stream of changes.
#[derive(Debug)]
pub struct ChangesRequest {
    /// Only changes after this revision; `None` for those from now on.
    pub after: Option<Revision>,
    /// The only kinds, as `deployments.apps`; empty for all.
    pub resources: BTreeSet<String>,
    pub excluded: BTreeSet<String>,
    /// The only namespaces; empty for all, and for objects that have none.
    pub namespaces: BTreeSet<String>,
    pub form: Include,
    pub format: Form,
    /// Whether the objects that are there come first.
    pub has_snapshot: bool,
    /// Whether the stream goes on when all changes have been told.
    pub follows: bool,
    pub heartbeat: Duration,
    pub timeout: Option<Duration>,
}

/// The parts of a line that are there on request.
#[derive(Clone, Copy, Debug, Default)]
pub struct Include {
    pub object: bool,
    pub previous: bool,
    /// The paths of what has changed.
    pub changed: bool,
}

impl Include {
    pub fn needs_values(self) -> bool {
        self.object || self.previous || self.changed
    }
}

impl ChangesRequest {
    pub fn read(parts: &Parts) -> Result<Self, Error> {
        let query = query(parts);
        let names = |name: &str| -> BTreeSet<String> {
            query.text(name).split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let wrong = |name: &str, why: &str| {
            Err(Error::BadRequest(format!(
                "{name}: invalid value {}: {why}",
                gotext::quote(query.text(name))
            )))
        };
        let after = match query.text("after") {
            "" => None,
            text => match gotext::parse_uint(text) {
                Ok(revision) => Some(Revision(revision)),
                Err(why) => return wrong("after", &why),
            },
        };
        let format = match query.text("format") {
            "" | "ndjson" => Form::Ndjson,
            "cloudevents" => Form::CloudEvents,
            "debezium" => Form::Debezium,
            _ => return wrong("format", "it has to be ndjson, cloudevents or debezium"),
        };
        let mut form = Include::default();
        for part in names("include") {
            match part.as_str() {
                "object" => form.object = true,
                "previous" => form.previous = true,
                "changed" => form.changed = true,
                _ => return wrong("include", "it has to be made of object, previous and changed"),
            }
        }
        if format == Form::Debezium {
            // The envelope has both.
            form = Include { object: true, previous: true, ..form };
        }
        let heartbeat = match query.text("heartbeat") {
            "" => USUAL_HEARTBEAT,
            text => match gotext::parse_duration(text) {
                Ok(time) => time.clamp(SHORTEST_HEARTBEAT, LONGEST_HEARTBEAT),
                Err(why) => return wrong("heartbeat", &why),
            },
        };
        let has_snapshot = query.flag("snapshot").unwrap_or(false);
        if has_snapshot && after.is_some() {
            return Err(Error::bad_request("a snapshot is one of now: give either snapshot or after"));
        }
        let seconds = query.integer("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
        const YEAR: u64 = 365 * 24 * 3600;
        Ok(Self {
            after,
            resources: names("resources"),
            excluded: names("exclude"),
            namespaces: names("namespaces"),
            form,
            format,
            has_snapshot,
            follows: query.flag("follow").unwrap_or(true),
            heartbeat,
            timeout: seconds.filter(|seconds| *seconds > 0).map(|n| Duration::from_secs(n.min(YEAR))),
        })
    }
}
