//! `PodLogOptions`: which part of a container's output is asked for.

use jiff::Timestamp;
use url::form_urlencoded::Serializer;

use crate::causes::Cause;
use crate::error::Error;
use crate::gotext::{self, Fraction, parse_time};
use crate::options::query::Query;
use crate::schema::names::GroupKind;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    pub container: String,
    pub follow: bool,
    /// Whether the kubelet's certificate may be anything.
    pub skips_verification: bool,
    previous: bool,
    timestamps: bool,
    since_seconds: Option<i64>,
    since: Option<Timestamp>,
    tail_lines: Option<i64>,
    limit_bytes: Option<i64>,
}

impl LogOptions {
    /// Reads the options for the log of this Pod: 400 if they cannot be read, 422 if they are wrong.
    pub fn parse(query: &Query, pod: &str) -> Result<Self, Error> {
        let flag = |name| query.flag(name) == Some(true);
        let options = Self {
            container: query.text("container").to_owned(),
            follow: flag("follow"),
            skips_verification: flag("insecureSkipTLSVerifyBackend"),
            previous: flag("previous"),
            timestamps: flag("timestamps"),
            since_seconds: query.integer("sinceSeconds")?,
            since: since(query.text("sinceTime"))?,
            tail_lines: query.integer("tailLines")?,
            limit_bytes: query.integer("limitBytes")?,
        };
        let causes = options.problems(query.get("stream").is_some());
        match causes.is_empty() {
            true => Ok(options),
            false => {
                let kind = GroupKind::new("", "PodLogOptions");
                Err(Error::Invalid { kind, name: pod.to_owned(), causes })
            }
        }
    }

    fn problems(&self, has_stream: bool) -> Vec<Cause> {
        let positive = "must be greater than 0";
        let mut causes = Vec::new();
        if let Some(lines) = self.tail_lines.filter(|lines| *lines < 0) {
            causes.push(Cause::invalid("tailLines", lines, "must be greater than or equal to 0"));
        }
        if let Some(bytes) = self.limit_bytes.filter(|bytes| *bytes < 1) {
            causes.push(Cause::invalid("limitBytes", bytes, positive));
        }
        match (self.since_seconds, self.since) {
            (Some(_), Some(_)) => {
                let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
                causes.push(Cause::forbidden("", why));
            }
            (Some(seconds), None) if seconds < 1 => {
                causes.push(Cause::invalid("sinceSeconds", seconds, positive));
            }
            _ => {}
        }
        if has_stream {
            // The gate PodLogsQuerySplitStreams is alpha.
            causes.push(Cause::forbidden("stream", "may not be specified"));
        }
        causes
    }

    /// The query at the kubelet, sorted by name.
    pub fn for_kubelet(&self) -> String {
        let mut query = Serializer::new(String::new());
        let number = |number: Option<i64>| number.map(|number| number.to_string());
        let flag = |is_set: bool| is_set.then(|| "true".to_owned());
        for (name, value) in [
            ("follow", flag(self.follow)),
            ("limitBytes", number(self.limit_bytes)),
            ("previous", flag(self.previous)),
            ("sinceSeconds", number(self.since_seconds)),
            ("sinceTime", self.since.map(gotext::time)),
            ("tailLines", number(self.tail_lines)),
            ("timestamps", flag(self.timestamps)),
        ] {
            value.into_iter().for_each(|value| _ = query.append_pair(name, &value));
        }
        query.finish()
    }
}

/// A time of RFC 3339. Old clients send `null` for none.
fn since(text: &str) -> Result<Option<Timestamp>, Error> {
    if matches!(text, "" | "null") {
        return Ok(None);
    }
    parse_time(text, Fraction::Any).map(|time| Some(gotext::timestamp(time))).map_err(Error::BadRequest)
}
