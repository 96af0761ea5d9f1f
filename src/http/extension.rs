//! Requests that an extension server answers (kube-aggregator's `proxyHandler`): they are passed on with the user in headers, and
//! the answer is passed back as it comes.

mod answer;
mod target;
mod upgrade;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use tokio::time::{Instant, timeout_at};

use self::target::Target;
use super::app::App;
use super::door::fair_share::Seated;
use super::request::info::RequestInfo;
use super::request::path::ApiPath;
use super::request::{query, user};
use super::resource::connect::wants_upgrade;
use super::resource::stream_end::check_permit;
use super::response;
use super::server::delivery::{Terms, is_long};
use crate::api::error::Error;
use crate::api::extensions::NoRoute;
use crate::api::followers::api_services::{ApiService, Remote};
use crate::api::options::request_timeout;
use crate::controllers::extension_openapi;
use crate::metrics::{RequestKind, RequestLabels, Scope};
use crate::schema::names::Gvr;
use crate::user::MASTERS;

/// The time that a request for the resources of a group version has: clients ask for them before everything else.
const DISCOVERY_TIME: Duration = Duration::from_secs(5);

/// Why a request was not answered by the extension server.
enum Refusal {
    /// The reason is the condition of the APIService, or only logged.
    Unavailable(String),
    /// The settings of the APIService cannot be used.
    Unusable(String),
    Unreachable(String),
    Redirected,
    /// A refusal of this server's own.
    Own(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Own(error)
    }
}

impl From<NoRoute> for Refusal {
    fn from(error: NoRoute) -> Self {
        match error {
            NoRoute::Unusable(why) => Self::Unusable(why),
            NoRoute::Unresolved(why) => Self::Unavailable(why),
        }
    }
}

/// A request for an extension server.
struct Passed<'a> {
    app: &'a App,
    service: &'a ApiService,
    remote: &'a Remote,
    info: &'a RequestInfo,
    parts: &'a Parts,
}

/// Has the extension server of an APIService answer a request.
pub async fn serve(
    app: &App,
    service: &ApiService,
    info: &RequestInfo,
    parts: &Parts,
    body: Body,
) -> Response {
    let Some(remote) = service.remote.as_deref() else { return response::not_found() };
    let kind = match parts.method {
        Method::GET | Method::HEAD => RequestKind::ReadOnly,
        _ => RequestKind::Mutating,
    };
    let passed = Passed { app, service, remote, info, parts };
    let in_flight = (!info.is_long_running()).then(|| app.metrics.in_flight(kind));
    let is_free = app.door.flow_control.is_some() || user(parts).is_in(MASTERS);
    if !is_free && in_flight.as_ref().is_some_and(|request| app.limits.in_flight.are_reached(kind, request)) {
        return response::too_many_requests();
    }
    match passed.answer(body).await {
        Ok((mut response, until)) => {
            if let Some(until) = until.filter(|_| is_long(&response)) {
                let metrics = app.metrics.request(&passed.labels());
                let terms = Terms { until, in_flight: in_flight.map(Arc::new), metrics };
                response.extensions_mut().insert(terms);
            }
            response
        }
        Err(refusal) => passed.refuse(refusal),
    }
}

impl Passed<'_> {
    /// The answer, and until when it has to be read; a watch may be read for ever.
    async fn answer(&self, body: Body) -> Result<(Response, Option<Instant>), Refusal> {
        // No commit confirms a permission here.
        self.app.door.confirm_now(self.parts, self.info).await?;
        check_permit(self.parts).await?;
        let ApiService { name, condition, .. } = self.service;
        if !condition.is_true() {
            let why = format!("APIService {name}: {}: {}", condition.reason, condition.message);
            return Err(Refusal::Unavailable(why));
        }
        let route = self.app.api.extension_route(self.remote).inspect_err(|error| {
            tracing::warn!(apiservice = &*self.service.name, error = error.why(), "no way to its server");
        })?;
        let is_document = self.parts.uri.path().starts_with("/openapi/");
        let user = if is_document { Arc::new(extension_openapi::fetcher()) } else { user(self.parts) };
        let target = Target { route, parts: self.parts, user };
        if self.info.is_long_running() {
            // The extension server has limits of its own, and a watch would hold its seats for ever.
            self.parts.extensions.get::<Seated>().into_iter().for_each(Seated::give_back);
        }
        if wants_upgrade(&self.parts.headers) {
            return Ok((self.upgrade(&target).await?, None));
        }
        if self.info.is_long_running() {
            return Ok((self.forward(&target, body).await?, None));
        }
        let time = request_timeout(&query(self.parts), self.app.limits.request_time)?;
        let until = Instant::now() + time;
        match &self.info.route {
            Some(ApiPath::GroupVersion(_)) if time > DISCOVERY_TIME => {
                let until = Instant::now() + DISCOVERY_TIME;
                let late = |_| Refusal::Unreachable(unreachable("context deadline exceeded"));
                let answer = timeout_at(until, self.forward(&target, body)).await.map_err(late)??;
                Ok((answer, Some(until)))
            }
            _ => {
                let late = |_| Refusal::Own(Error::deadline());
                let answer = timeout_at(until, self.forward(&target, body)).await.map_err(late)??;
                Ok((answer, Some(until)))
            }
        }
    }

    fn refuse(&self, refusal: Refusal) -> Response {
        let (status, why) = match refusal {
            Refusal::Own(error) => return response::failure(&error, self.parts),
            Refusal::Unavailable(why) => {
                (StatusCode::SERVICE_UNAVAILABLE, format!("service unavailable\n{why}"))
            }
            Refusal::Unusable(why) => (StatusCode::INTERNAL_SERVER_ERROR, why),
            Refusal::Unreachable(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
            Refusal::Redirected => return answer::redirected(),
        };
        self.app.metrics.request(&self.labels()).terminated(status.as_u16());
        response::plain_error(status, &why)
    }

    /// The labels of metrics. Names of resources are the client's words here, and therefore left out.
    fn labels(&self) -> RequestLabels {
        let verb = match self.info.verb() {
            "get" => "GET",
            "list" => "LIST",
            "watch" => "WATCH",
            "create" | "post" => "POST",
            "update" | "put" => "PUT",
            "patch" => "PATCH",
            "delete" | "deletecollection" => "DELETE",
            _ => "CONNECT",
        };
        let resource = Gvr { group_version: self.service.version.clone(), plural: Default::default() };
        let scope = Scope::Aggregated;
        RequestLabels { verb, dry_run: "", resource, subresource: Default::default(), scope }
    }
}

fn unreachable(why: &str) -> String {
    format!("error trying to reach service: {why}")
}
