//! Options of requests: the query, or the body of a DELETE, as types that cannot be inconsistent.

pub mod ask;
pub mod continue_token;
pub mod delete;
pub mod list;
pub mod query;
pub mod selector;
pub mod strictness;
pub mod watch;
pub mod write;

use std::time::Duration;

use crate::causes::Cause;
use crate::error::Error;
use crate::gotext;
use crate::revision::Revision;

use query::Query;

/// How fresh the state must be that a GET or the start of a watch reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAt {
    /// A state that contains every write that was answered before the request arrived.
    Latest,
    /// Any state.
    Any,
    /// A state at this revision or a newer one.
    AtLeast(Revision),
}

impl ReadAt {
    /// Parses the parameter `resourceVersion`.
    pub(crate) fn parse(version: &str) -> Result<Self, Error> {
        match version {
            "" => Ok(Self::Latest),
            text => Ok(match parse_revision(text)? {
                Revision(0) => Self::Any,
                revision => Self::AtLeast(revision),
            }),
        }
    }
}

/// Whether the request only pretends to change something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DryRun {
    Yes,
    #[default]
    No,
}

impl DryRun {
    /// Validates the values of `dryRun`: any number of `All`.
    pub(crate) fn validate(values: &[&str], causes: &mut Vec<Cause>) -> Self {
        if values.iter().any(|value| *value != "All") {
            let value = gotext::json(&crate::tree::json!(values));
            causes.push(Cause::not_supported("dryRun", value, &["All"]));
        }
        if values.is_empty() { Self::No } else { Self::Yes }
    }
}

/// Options of a GET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GetOptions {
    pub at: ReadAt,
}

impl GetOptions {
    pub fn parse(query: &Query) -> Result<Self, Error> {
        if !query.text("export").is_empty() && query.flag("export") == Some(true) {
            let gone = "the export parameter, deprecated since v1.14, is no longer supported";
            return Err(Error::bad_request(gone));
        }
        Ok(Self { at: ReadAt::parse(query.text("resourceVersion"))? })
    }
}

/// How long a request may take: `timeout` can shorten `default`, but never extend it. Watches ignore it.
pub fn request_timeout(query: &Query, default: Duration) -> Result<Duration, Error> {
    let text = query.text("timeout");
    if text.is_empty() {
        return Ok(default);
    }
    let wanted = gotext::parse_duration(text)
        .map_err(|why| Error::BadRequest(format!("invalid timeout specified in the request URL - {why}")))?;
    Ok(if wanted.is_zero() { default } else { wanted.min(default) })
}

/// Parses a non-empty `resourceVersion`.
fn parse_revision(text: &str) -> Result<Revision, Error> {
    gotext::parse_uint(text).map(Revision).map_err(|why| {
        let value = gotext::quote(text);
        Error::BadRequest(format!("invalid resource version: resourceVersion: Invalid value: {value}: {why}"))
    })
}
