//! Requests through the door to the past: the API as it was, read-only.
//!
//! The [door](door::Door) is opened before the server asks who may do what; the time is looked up in the store behind
//! that. What answers is the same as for the present, with another state, generation and clock.

pub mod door;
pub mod history;
mod read_only;
pub mod when;

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::Response;
use jiff::Timestamp;

use self::door::{AS_OF, Door, View};
use self::read_only::ReadOnly;
pub use self::read_only::{LOOK_BACK, looks_back};
use self::when::When;
use super::app::App;
use super::documents;
use super::documents::discovery::version;
use super::documents::document::Document;
use super::request::audit_record;
use super::request::info::RequestInfo;
use super::request::path::{ApiPath, ResourcePath};
use super::resource::action::Action;
use super::{resource, response};
use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::api::verbs::past::time;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::schema::resource::{ResourceDefinition, Storage};
use crate::wall_clock::WallClock;

/// The kinds whose creation reads: they ask who the user is and what he may do.
const SELF_REVIEWS: [&str; 3] = ["selfsubjectreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews"];

/// The past state that a request sees.
pub struct Past {
    pub when: When,
    pub revision: Revision,
    /// The resources that were served then.
    pub served: Arc<Served>,
    /// The clock by which Tables show ages.
    pub clock: WallClock,
    pub authorizer: ReadOnly,
}

/// Answers a request that was let in through a door.
pub async fn serve(app: &App, door: &Door, info: &RequestInfo, parts: &Parts, body: Body) -> Response {
    let began = Instant::now();
    let response = match door.view() {
        View::History => history::serve(app, info, parts).await,
        View::State(when) => state(app, when, info, parts, body).await,
    };
    app.metrics.past_answered(info.verb(), response.status().as_u16(), began.elapsed());
    response
}

async fn state(
    app: &App,
    when: &Result<When, String>,
    info: &RequestInfo,
    parts: &Parts,
    body: Body,
) -> Response {
    match look_back(app, when, parts).await {
        Ok((past, header)) => {
            let mut response = answer(app, &past, info, parts, body).await;
            response.headers_mut().insert(AS_OF, header);
            response
        }
        Err(error) => response::failure(&error, parts),
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
    };
    Ok((past, header))
}

async fn answer(app: &App, past: &Past, info: &RequestInfo, parts: &Parts, body: Body) -> Response {
    let answered = match &info.route {
        Some(ApiPath::Resource(path)) => {
            return resource::serve_past(app, past, path, parts, body).await;
        }
        route => document(app, past, route.as_ref(), parts).await,
    };
    answered.unwrap_or_else(|error| response::failure(&error, parts))
}

/// Discovery, OpenAPI and the version; everything else that is no resource is of the present.
async fn document(app: &App, past: &Past, path: Option<&ApiPath>, parts: &Parts) -> Result<Response, Error> {
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Err(Error::MethodNotAllowed);
    }
    let text = parts.uri.path();
    if matches!(text, "/version" | "/version/") {
        let mut document = version::document();
        document["gitVersion"] = format!("{}+asof.{}", version::release(), past.when.compact()).into();
        return Ok(documents::plain(&Document::compact(&document)));
    }
    let is_openapi = text == "/openapi/v2" || text == "/openapi/v3" || text.starts_with("/openapi/v3/");
    if path.is_none() && !is_openapi && !matches!(text, "/" | "/index.html") {
        return Ok(response::plain_error(StatusCode::NOT_FOUND, "404 page not found"));
    }
    let publication = app.publications.of_past(&past.served).await?;
    super::routes::document_of(app, &past.served, &publication, path, parts).await
}

impl Past {
    /// Refuses what would change the past, or would reach the present.
    pub fn check(
        &self,
        action: Action,
        path: &ResourcePath,
        definition: &ResourceDefinition,
    ) -> Result<(), Error> {
        let is_review = action == Action::Create
            && path.subresource.is_none()
            && SELF_REVIEWS.contains(&&*definition.plural);
        let is_read = match action {
            Action::Get | Action::List | Action::Watch => definition.storage != Storage::Virtual,
            _ => false,
        };
        match is_review || is_read {
            true => Ok(()),
            false => Err(self.refuse(definition.group_resource(), path.name.as_deref().unwrap_or_default())),
        }
    }

    fn refuse(&self, resource: GroupResource, name: &str) -> Error {
        let reason = format!("this is the cluster as of {}, which cannot be changed", self.when);
        Error::Forbidden { resource, name: name.to_owned(), reason }
    }
}
