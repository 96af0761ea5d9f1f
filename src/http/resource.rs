//! Requests to resources that were let in: which verb, and the bytes in and out. The verbs themselves are in `api`.

mod act;
mod action;
mod computed;
pub(in crate::http) mod connect;
mod counted;
mod custom;
pub(in crate::http) mod forward;
pub(in crate::http) mod hops;
mod log;
mod page;
pub(in crate::http) mod passing;
mod past;
mod read;
pub(in crate::http) mod stream_end;
mod traced;
mod translation;
mod tunnel;
pub(in crate::http) mod upgrade;
mod write;

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use http_body::Body as _;
use tokio::time::Instant;

use self::action::Action;
use self::counted::{labels, note_deprecation};
use self::stream_end::StreamEnd;
use super::app::App;
use super::door::fair_share::Seated;
use super::door::identity::ActingUser;
use super::limits::Room;
use super::past::Past;
use super::request::body::Reading;
use super::request::path::ResourcePath;
use super::request::{self, accept, audit_record};
use super::response;
use super::response::compress::compress;
use super::response::encode::{self, Encoder};
use super::response::negotiate::{
    self, CUSTOM, Negotiated, Offer, RESOURCE, ROUTE_TYPES, Shape, WITHOUT_TABLE,
};
use super::response::warnings;
use super::server::delivery::{Terms, is_long};
use crate::api::Target;
use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::api::options::query::Query;
use crate::api::options::request_timeout;
use crate::api::request::{Hooks, Options, Request};
use crate::api::resource::Resource;
use crate::audit::Record;
use crate::auth::foreseen::Foreseen;
use crate::long_work::LONG;
use crate::metrics::{RequestKind, RequestMetrics, WebhookTime};
use crate::schema::names::internal_package;
use crate::schema::registry::Group;
use crate::schema::resource::{Origin, ResourceDefinition, Storage};
use crate::traces::Span;
use crate::user::{MASTERS, User};
use crate::warnings::Warnings;

/// The facts about a request that are known before its verb runs.
struct Context<'a> {
    app: &'a App,
    /// The resource as it is served while the request is answered, whatever generation comes next.
    resource: &'a Arc<Resource>,
    definition: &'a Arc<ResourceDefinition>,
    path: &'a ResourcePath,
    parts: &'a Parts,
    query: Query,
    user: Arc<User>,
    action: Action,
    /// The past state that is read; `None` for the present.
    past: Option<&'a Past>,
    pretty: bool,
    warnings: &'a Warnings,
    /// Whether the body is so large that other requests should not wait for what is made of it.
    is_long: AtomicBool,
    /// The room that the body takes.
    room: OnceLock<Room<'a>>,
    /// When the client gives up.
    deadline: OnceLock<Instant>,
    webhook_time: WebhookTime,
    /// The verb's part of a trace, if the request is sampled.
    span: Option<Span>,
    metrics: &'a RequestMetrics,
}

/// Answers a request to a resource, whatever comes of it.
pub async fn serve(app: &App, path: &ResourcePath, parts: &Parts, body: Body) -> Response {
    let served = app.api.catalog.served();
    match served.find(&path.resource) {
        Some(resource) if !resource.definition.is_custom() && !resource.definition.is_discoverable => {
            unknown(&served, path, parts)
        }
        Some(resource) if !resource.definition.is_custom() => {
            serve_found(app, resource, path, (parts, None), body).await.response()
        }
        _ => custom::serve(app, path, parts, body).await,
    }
}

/// Answers a request for a past state.
pub async fn serve_past(app: &App, past: &Past, path: &ResourcePath, parts: &Parts, body: Body) -> Response {
    match past.served.find(&path.resource) {
        Some(resource) if resource.definition.is_custom() || resource.definition.is_discoverable => {
            serve_found(app, resource, path, (parts, Some(past)), body).await.response()
        }
        _ => unknown(&past.served, path, parts),
    }
}

/// The result of a request in one generation of the served resources.
enum Outcome {
    Answered(Response),
    /// The generation did not let it pass; another one might. Nothing has been written.
    Refused(Response),
}

impl Outcome {
    fn response(self) -> Response {
        match self {
            Self::Answered(response) | Self::Refused(response) => response,
        }
    }
}

/// Answers a request to what a generation serves.
async fn serve_found(
    app: &App,
    resource: &Arc<Resource>,
    path: &ResourcePath,
    (parts, past): (&Parts, Option<&Past>),
    body: Body,
) -> Outcome {
    let started = Instant::now();
    let definition = &resource.definition;
    let (query, user) = (request::query(parts), request::user(parts));
    let action = match permitted(parts, path, &query, definition, past) {
        Ok(action) => action,
        // Upstream has no route for them.
        Err(Error::UnknownResource) if definition.is_custom() => {
            return Outcome::Answered(response::not_found());
        }
        Err(error) => return Outcome::Answered(response::failure(&error, parts)),
    };
    let metrics = app.metrics.request(&labels(action, parts, path, definition, &query));
    let kind = if action.is_reading() { RequestKind::ReadOnly } else { RequestKind::Mutating };
    let in_flight = (!action.is_long_running()).then(|| app.metrics.in_flight(kind));
    // Priority and Fairness has given seats to all that it does not exempt. Without it, masters pass.
    let is_free = app.door.flow_control.is_some() || user.is_in(MASTERS);
    if !is_free && in_flight.as_ref().is_some_and(|request| app.limits.in_flight.are_reached(kind, request)) {
        metrics.terminated(429);
        metrics.finished(429, started.elapsed(), Duration::ZERO);
        return Outcome::Answered(response::too_many_requests());
    }
    let warnings = Warnings::default();
    if let Some(text) = &resource.behavior.deprecation {
        warnings.add(text.as_str());
        note_deprecation(app, definition, path, parts);
    }
    let context = Context {
        app,
        resource,
        definition,
        path,
        parts,
        query,
        user,
        action,
        past,
        pretty: request::pretty(parts),
        warnings: &warnings,
        is_long: AtomicBool::new(false),
        room: OnceLock::new(),
        deadline: OnceLock::new(),
        webhook_time: WebhookTime::default(),
        span: traced::verb(action, parts, path),
        metrics: &metrics,
    };
    let running = action.is_long_running().then(|| metrics.long_running());
    let answer = match (action, running.clone()) {
        (Action::Watch, Some(running)) => Box::pin(context.watch(running)).await,
        (Action::Log, Some(running)) => Box::pin(context.log(running)).await.map(without_end),
        (Action::Connect(_), Some(running)) => {
            Box::pin(context.connect(body, running)).await.map(without_end)
        }
        _ => context.run(body).await,
    };
    let refused = answer.as_ref().is_err_and(|error| !error.leaves_open());
    let (mut response, until) = answer
        .map(|(response, until)| (response, Some(until)))
        .unwrap_or_else(|error| (response::failure(&error, parts), None));
    if let Some(until) = until.filter(|_| is_long(&response)) {
        let terms = Terms { until, in_flight: in_flight.map(Arc::new), metrics: metrics.clone() };
        response.extensions_mut().insert(terms);
    }
    warnings::put(response.headers_mut(), &warnings.take());
    if let Some(bytes) = response.body().size_hint().exact() {
        metrics.answered(bytes);
    }
    let code = response.status().as_u16();
    match running {
        Some(running) => running.answered(code),
        None => metrics.finished(code, started.elapsed(), context.webhook_time.total()),
    }
    if refused { Outcome::Refused(response) } else { Outcome::Answered(response) }
}

/// The action that a request asks for, unless it cannot be done in the past that it asks for.
fn permitted(
    parts: &Parts,
    path: &ResourcePath,
    query: &Query,
    definition: &ResourceDefinition,
    past: Option<&Past>,
) -> Result<Action, Error> {
    let action = Action::of(&parts.method, path, query, definition)?;
    past.map_or(Ok(()), |past| self::past::check(past, action, path, definition))?;
    Ok(action)
}

/// An answer that may take any time.
fn without_end(response: Response) -> (Response, Instant) {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    (response, Instant::now() + YEAR)
}

/// A resource nobody serves: a `Status` below a group that is built in and enabled, plain text elsewhere.
fn unknown(served: &Served, path: &ResourcePath, parts: &Parts) -> Response {
    let group = served.registry().group(path.resource.group());
    if group.is_some_and(Group::is_built_in) {
        return response::failure(&Error::UnknownResource, parts);
    }
    response::not_found()
}

impl Context<'_> {
    /// Every verb but watch, within the time a request has, and until when that is.
    async fn run(&self, body: Body) -> Result<(Response, Instant), Error> {
        self.admit()?;
        let until = Instant::now() + request_timeout(&self.query, self.app.limits.request_time)?;
        let until = *self.deadline.get_or_init(|| until);
        let work = pin!(async {
            match self.action {
                Action::Get if self.is_computed() => Box::pin(self.get_computed()).await,
                Action::List if self.is_computed() => Box::pin(self.list_computed()).await,
                Action::Get => self.get().await,
                Action::List => self.list().await,
                // In boxes, so that the futures of reads, which are small, have no room for them.
                Action::Create => Box::pin(self.create(body)).await,
                Action::Update => Box::pin(self.update(body)).await,
                Action::Patch => Box::pin(self.patch(body)).await,
                Action::Delete => Box::pin(self.delete(body)).await,
                Action::DeleteCollection => Box::pin(self.delete_collection(body)).await,
                Action::Watch | Action::Log | Action::Connect(_) => Err(Error::MethodNotAllowed),
            }
        });
        let work = self.app.lanes.drive(work, &self.is_long);
        let answer = tokio::time::timeout_at(until, work).await.unwrap_or_else(|_| Err(Error::deadline()))?;
        Ok((compress(&self.parts.headers, answer), until))
    }

    /// Reads the body. A request that waits for it has no seats meanwhile. What follows a large body is done where no other
    /// request waits for it.
    async fn read(&self, body: Body) -> Result<Bytes, Error> {
        let App { bodies, limits, .. } = self.app;
        let seated = self.parts.extensions.get::<Seated>();
        let budget = (!self.user.is_in(MASTERS)).then(|| (bodies, &*self.user.name));
        let reading = Reading::new(body, limits.request_body, budget);
        let (bytes, room) = reading.read(|| seated.into_iter().for_each(Seated::give_back)).await?;
        self.metrics.received(bytes.len());
        self.event("limitedReadBody succeeded");
        room.into_iter().for_each(|room| _ = self.room.set(room));
        if let Some(seated) = seated {
            seated.regain(self.parts, &self.user).await?;
        }
        if bytes.len() >= LONG {
            self.is_long.store(true, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
        Ok(bytes)
    }

    /// Holds up what would be stored before this server may write.
    fn admit(&self) -> Result<(), Error> {
        if self.action.is_reading() || self.is_virtual() {
            return Ok(());
        }
        self.app.gate.admit(&self.request(Options::None))
    }

    /// The request as verbs and admission see it.
    fn request<'a>(&'a self, options: impl Into<Options<'a>>) -> Request<'a> {
        let name = self.path.name.as_deref().unwrap_or_default();
        Request {
            user: &self.user,
            impersonator: self.parts.extensions.get::<ActingUser>().map_or("", |user| &*user.0.name),
            client: self.agent().and_then(|agent| agent.split_ascii_whitespace().next()).unwrap_or_default(),
            verb: self.action.as_verb(),
            target: Target { resource: self.resource, namespace: self.path.namespace_text(), name },
            subresource: self.path.subresource.as_deref().unwrap_or_default(),
            options: options.into(),
            warnings: self.warnings,
            authorizer: match self.past {
                Some(past) => &past.authorizer,
                None => &self.app.door.authorizer,
            },
            foreseen: self.parts.extensions.get::<Arc<Foreseen>>().map(|foreseen| &**foreseen),
            audit: self.record(),
            span: self.span.as_ref(),
            deadline: self.deadline.get().copied(),
            webhook_time: Some(&self.webhook_time),
            hooks: Hooks::See,
            decided_at: None,
        }
    }

    /// The audit record of the request, if a policy wants one.
    fn record(&self) -> Option<&Record> {
        audit_record(self.parts).map(|record| &**record)
    }

    fn is_virtual(&self) -> bool {
        self.definition.storage == Storage::Virtual
    }

    /// Reviews have no rows, nor has what is done to objects or to parts of them.
    fn has_table(&self) -> bool {
        (!self.is_virtual() || self.is_computed())
            && matches!(self.path.subresource.as_deref(), None | Some("status" | "scale"))
    }

    /// How to answer, after the checks that come before everything else (406).
    fn negotiate(&self, shape: Shape) -> Result<Negotiated, Error> {
        self.negotiate_of(ROUTE_TYPES, shape)
    }

    /// The variant of [`Context::negotiate`] for a route that has these types.
    fn negotiate_of(&self, types: &[&str], shape: Shape) -> Result<Negotiated, Error> {
        let accept = accept(&self.parts.headers);
        self.check_route(accept, types)?;
        let negotiated = negotiate::negotiate(accept, self.offers())?;
        negotiated.check_shape(shape, || self.go_type(shape))?;
        Ok(negotiated)
    }

    /// Checks what the router before built-in kinds checks; custom resources have none.
    fn check_route(&self, accept: Option<&str>, types: &[&str]) -> Result<(), Error> {
        match self.definition.origin {
            Origin::BuiltIn => negotiate::check_route(accept, types),
            Origin::Custom => Ok(()),
        }
    }

    fn offers(&self) -> &'static [Offer] {
        match self.definition.origin {
            Origin::Custom if self.is_scale() => RESOURCE,
            Origin::Custom => CUSTOM,
            Origin::BuiltIn if self.has_table() => RESOURCE,
            Origin::BuiltIn => WITHOUT_TABLE,
        }
    }

    fn encoder(&self, negotiated: &Negotiated) -> Result<Encoder, Error> {
        let pretty = self.pretty || negotiated.pretty;
        Encoder::new(self.resource.clone(), self.form_asked(negotiated), pretty)
    }

    fn form_asked<'f>(&'f self, negotiated: &'f Negotiated) -> encode::Asked<'f> {
        let clock = self.past.map_or(&self.app.api.runtime.clock, |past| &past.clock);
        encode::Asked { negotiated, include: self.query.get("includeObject"), clock }
    }

    fn go_type(&self, shape: Shape) -> String {
        let package = internal_package(self.path.resource.group());
        match shape {
            Shape::Single => format!("*{package}.{}", self.definition.kind_name()),
            Shape::List => format!("*{package}.{}", self.definition.list_kind),
        }
    }
}
