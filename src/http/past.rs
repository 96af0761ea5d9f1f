//! Requests through the door to the past: the API as it was, read-only.
//!
//! The [door](door::Door) is opened before the server asks who may do what; the time is looked up in the store behind
//! that. What answers is the same as for the present, with another state, generation and clock.

pub mod door;
pub mod history;
mod read_only;
mod recording;
pub mod when;

use std::sync::Arc;

use axum::http::HeaderValue;
use axum::http::request::Parts;
use axum::response::Response;
use jiff::Timestamp;

use self::door::{Door, View};
use self::read_only::ReadOnly;
pub use self::read_only::{LOOK_BACK, looks_back};
pub use self::recording::Recording;
use self::when::When;
use super::app::App;
use super::request::audit_record;
use super::request::info::RequestInfo;
use super::response;
use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::api::verbs::past::time;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::wall_clock::WallClock;

/// The past state that a request sees.
pub struct Past {
    pub when: When,
    pub revision: Revision,
    /// The resources that were served then.
    pub served: Arc<Served>,
    /// The clock by which Tables show ages.
    pub clock: WallClock,
    pub authorizer: ReadOnly,
    /// The file that is served, if it is a recording.
    pub recording: Option<Recording>,
}

/// The outcome of a look through a door.
pub enum Seen {
    Answered(Response),
    /// A state, and the header that names it.
    State(Box<Past>, HeaderValue),
}

/// Looks through the door by which a request was let in.
pub async fn look(app: &App, door: &Door, info: &RequestInfo, parts: &Parts) -> Seen {
    let looked = match door.view() {
        View::History => return Seen::Answered(history::serve(app, info, parts).await),
        View::State(when) => look_back(app, when, parts).await,
    };
    match looked {
        Ok((past, header)) => Seen::State(Box::new(past), header),
        Err(error) => Seen::Answered(response::failure(&error, parts)),
    }
}

/// The state that the door leads to, and the header that names it.
async fn look_back(
    app: &App,
    when: &Result<When, String>,
    parts: &Parts,
) -> Result<(Past, HeaderValue), Error> {
    let when = when.clone().map_err(Error::BadRequest)?;
    let moment = match when {
        When::Time(time) => app.api.moment_at(time.as_millisecond()).await?,
        When::Revision(revision) => app.api.moment_of(revision).await?,
    };
    let committed = Timestamp::from_millisecond(moment.committed_ms).unwrap_or_default();
    let text = format!("{}; revision={}", time(moment.committed_ms), moment.revision);
    if let Some(record) = audit_record(parts) {
        record.annotate("rowplane.dev/as-of", text.clone());
    }
    let header = HeaderValue::try_from(text).map_err(|error| Error::Internal(error.to_string()))?;
    let until = match when {
        When::Time(time) => time,
        When::Revision(_) => committed,
    };
    let past = Past {
        when,
        revision: moment.revision,
        served: app.api.served_as_of(moment.revision).await?,
        clock: WallClock::new(move || until.into()),
        authorizer: ReadOnly::new(app.door.authorizer.clone(), when),
        recording: app.recording.clone(),
    };
    Ok((past, header))
}

impl Past {
    /// The refusal of a request that would change the past, or would reach the present.
    pub fn refuse(&self, resource: GroupResource, name: &str) -> Error {
        let reason = match &self.recording {
            Some(Recording { file, .. }) => format!("this is the recording {file}, which cannot be changed"),
            None => format!("this is the cluster as of {}, which cannot be changed", self.when),
        };
        Error::Forbidden { resource, name: name.to_owned(), reason }
    }
}
