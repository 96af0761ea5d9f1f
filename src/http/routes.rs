//! The routes of the server, behind its [door](super::door).

mod of_past;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;
use http_body::Body as _;
use tokio::time::timeout;

use super::app::App;
use super::ask;
use super::branches;
use super::changes;
use super::console;
use super::documents;
use super::documents::discovery::Extensions;
use super::documents::openapi::OpenApi;
use super::documents::publications::Publication;
use super::door::{Door, Stage, is_health};
use super::health::{self, HealthChecks};
use super::request::info::RequestInfo;
use super::request::path::{ApiPath, CHANGES, ResourcePath};
use super::request::{accept, query, user};
use super::response::compress::compress;
use super::response::negotiate::{ROUTE_TYPES, check_route};
use super::server::Responder;
use super::zpages::Page;
use super::{extension, past, resource, response, sql, test_endpoints};
use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::auth::service_accounts::issuer::IssuerDocuments;
use crate::cache::serving;
use crate::flow_control::FlowControl;
use crate::metrics::{RequestKind, RequestLabels, Scope, sorted};
use crate::schema::registry::Group;
use crate::tree::Text;
use crate::user::MASTERS;

/// Answers all requests of a cluster, each by its [`Route`].
///
/// Every request passes through here, so it is a single future in a single allocation; a stack of layers would allocate
/// a future, and copy the request, once per layer.
pub fn responder(app: Arc<App>, health: HealthChecks) -> Arc<dyn Responder> {
    Arc::new(Started { app, health: Arc::new(health::routes(Arc::new(health))) })
}

/// See [`responder`].
struct Started {
    app: Arc<App>,
    health: Arc<Router>,
}

impl Responder for Started {
    fn respond(self: Arc<Self>, mut request: Request) -> BoxFuture<'static, Response> {
        let branch = self.app.branches.find(&mut request);
        if let Some(branch) = branch.or_else(|| test_endpoints::find(&self.app, &mut request)) {
            return branch.respond(request);
        }
        Box::pin(async move {
            if let Some(recording) = &self.app.recording {
                recording.freeze(&mut request);
            }
            past::door::Door::open(&mut request);
            ask::Door::open(&mut request);
            let Self { app, health } = &*self;
            if app.has_console
                && let Some(mut response) = console::answer(&request)
            {
                app.door.secure(&mut response);
                return response;
            }
            let answer = async |info: &RequestInfo, parts: &Parts, body| {
                if let Some(door) = past::door::Door::of(parts) {
                    return Box::pin(of_past::serve(app, door, info, parts, body)).await;
                }
                if let Some(service) = app.api.extensions.at(&app.api.cache, parts.uri.path()) {
                    return Box::pin(extension::serve(app, &service, info, parts, body)).await;
                }
                match Route::of(info, parts) {
                    Route::Health => {
                        let began = Instant::now();
                        let response = health.clone().respond(Request::from_parts(parts.clone(), body)).await;
                        count_document(app, parts, &response, began);
                        response
                    }
                    Route::Resource(path) => resource::serve(app, path, parts, body).await,
                    Route::Sql => sql::serve(app, parts, body).await,
                    Route::Changes => {
                        let metrics = app.metrics.request(&document_labels("", Scope::None));
                        changes::serve(app, metrics, parts).await
                    }
                    Route::Search => Box::pin(ask::search::serve(app, None, parts)).await,
                    Route::Branches => Box::pin(branches::serve(app, parts, body)).await,
                    Route::Document(path) => serve_document(app, path, parts).await,
                }
            };
            let handler = async |info: &RequestInfo, parts: &Parts, body| match &app.controls {
                Some(controls) if controls.is_asked(parts) => {
                    let answered =
                        controls.around(info, parts, body, async |body| answer(info, parts, body).await);
                    Box::pin(answered).await
                }
                _ => answer(info, parts, body).await,
            };
            let mut answer = pin!(app.door.enter(Stage::Started, request, handler));
            match app.api.cache.arrival() {
                None => answer.await,
                // Polled where it stands: it is large.
                Some(arrival) => poll_fn(|context| serving(arrival, || answer.as_mut().poll(context))).await,
            }
        })
    }
}

/// Answers while a server is starting: health endpoints, and 503 for everything else, which is upstream's answer before
/// all of its handlers are installed.
pub struct Starting {
    door: Arc<Door>,
    health: Arc<Router>,
}

impl Starting {
    pub fn new(door: Arc<Door>, health: HealthChecks) -> Self {
        let routes = health::routes(Arc::new(health)).fallback(refuse_while_starting);
        Self { door, health: Arc::new(routes) }
    }
}

impl Responder for Starting {
    fn respond(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response> {
        Box::pin(async move {
            let handler = async |_: &RequestInfo, parts: &Parts, body| {
                self.health.clone().respond(Request::from_parts(parts.clone(), body)).await
            };
            self.door.enter(Stage::Starting, request, handler).await
        })
    }
}

/// The routes of a server that has stopped.
pub fn stopped_router() -> Router {
    Router::new().fallback(refuse_when_stopped)
}

async fn refuse_when_stopped(request: Request) -> Response {
    let (parts, _) = request.into_parts();
    response::failure(&Error::shutting_down(), &parts)
}

async fn refuse_while_starting(request: Request) -> Response {
    let (parts, _) = request.into_parts();
    response::failure(&Error::starting(), &parts)
}

/// The part of a cluster that answers a request; its cluster was found before ([`super::router`]).
enum Route<'a> {
    Health,
    Resource(&'a ResourcePath),
    Sql,
    Changes,
    Search,
    Branches,
    /// Discovery, OpenAPI, metrics and whatever else is no resource; `None` for other paths than those of the API.
    Document(Option<&'a ApiPath>),
}

impl<'a> Route<'a> {
    fn of(info: &'a RequestInfo, parts: &Parts) -> Self {
        match &info.route {
            _ if is_health(parts.uri.path()) => Self::Health,
            _ if branches::paths::has(parts.uri.path()) => Self::Branches,
            Some(ApiPath::Resource(path)) => Self::Resource(path),
            None if parts.uri.path() == sql::PATH => Self::Sql,
            None if parts.uri.path() == CHANGES => Self::Changes,
            None if ask::Door::is_search(parts) => Self::Search,
            other => Self::Document(other.as_ref()),
        }
    }
}

async fn serve_document(app: &App, path: Option<&ApiPath>, parts: &Parts) -> Response {
    let in_flight = app.metrics.in_flight(RequestKind::ReadOnly);
    let is_free = app.door.flow_control.is_some() || user(parts).is_in(MASTERS);
    if !is_free && app.limits.in_flight.are_reached(RequestKind::ReadOnly, &in_flight) {
        app.metrics.request(&document_labels("", Scope::None)).terminated(429);
        return response::too_many_requests();
    }
    let began = Instant::now();
    let answer = Box::pin(document(app, path, parts)).await;
    let response = answer.unwrap_or_else(|error| response::failure(&error, parts));
    count_document(app, parts, &response, began);
    response
}

fn document_labels(name: &'static str, scope: Scope) -> RequestLabels {
    let resource = Default::default();
    RequestLabels { verb: "GET", dry_run: "", resource, subresource: Text::new_static(name), scope }
}

/// Counts a request for one of the documents that upstream counts.
fn count_document(app: &App, parts: &Parts, response: &Response, began: Instant) {
    // Only aggregated discovery has a tag.
    let is_aggregated = response.headers().contains_key(header::ETAG);
    let (name, scope) = match parts.uri.path() {
        "/livez" => ("/livez", Scope::Unnamed),
        "/readyz" => ("/readyz", Scope::Unnamed),
        "/healthz" => ("/healthz", Scope::Unnamed),
        "/openapi/v3" => ("openapi/v3", Scope::Unnamed),
        path if path.starts_with("/openapi/v3/") => ("openapi/v3/", Scope::Unnamed),
        "/api" if is_aggregated => ("api", Scope::None),
        "/apis" if is_aggregated => ("apis", Scope::None),
        _ => return,
    };
    let metrics = app.metrics.request(&document_labels(name, scope));
    metrics.answered(response.body().size_hint().exact().unwrap_or_default());
    metrics.finished(response.status().as_u16(), began.elapsed(), Duration::ZERO);
}

/// Upstream's router knows these for GET alone. Its other documents are plain handlers, which answer HEAD, too.
const ROUTES_WITHOUT_HEAD: [&str; 4] =
    ["/version", "/version/", "/openid/v1/jwks", "/.well-known/openid-configuration"];

async fn document(app: &App, path: Option<&ApiPath>, parts: &Parts) -> Result<Response, Error> {
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Err(Error::MethodNotAllowed);
    }
    let served = app.api.served_as_known().await;
    let extensions = Extensions {
        services: app.api.extensions.newest(&app.api.cache),
        discovered: app.api.extensions.discovered.load_full(),
        openapi: app.api.extensions.openapi.load_full(),
    };
    let publication = app.publications.of(&served, extensions).await?;
    document_of(app, &served, &publication, path, parts).await
}

/// The answer to a GET or HEAD of a document of a generation.
async fn document_of(
    app: &App,
    served: &Served,
    publication: &Publication,
    path: Option<&ApiPath>,
    parts: &Parts,
) -> Result<Response, Error> {
    let headers = &parts.headers;
    if parts.method == Method::HEAD {
        let has_head = match path {
            Some(ApiPath::CoreVersions) => false,
            Some(ApiPath::GroupVersion(version)) => !is_built_in(served.registry().group(version.group())),
            _ => !ROUTES_WITHOUT_HEAD.contains(&parts.uri.path()),
        };
        if !has_head {
            return Err(Error::MethodNotAllowed);
        }
    }
    let documents = &publication.documents;
    let answer = match path {
        Some(ApiPath::CoreVersions) => check_route(accept(headers), ROUTE_TYPES)
            .and_then(|()| documents::discovery(&documents.api, parts)),
        Some(ApiPath::Groups) => documents::discovery(&documents.apis, parts),
        Some(ApiPath::Group { group }) => match documents.group(group) {
            Some(document) => documents::legacy(document, parts),
            None => Ok(response::not_found()),
        },
        Some(ApiPath::GroupVersion(version)) => match documents.resources(version) {
            Some(document) => documents::resources(document, parts),
            None if is_built_in(served.registry().group(version.group())) => Err(Error::UnknownResource),
            None => Ok(response::not_found()),
        },
        Some(ApiPath::Resource(_)) | None => return other_document(app, publication, parts).await,
    };
    answer.map(|response| compress(headers, response))
}

async fn other_document(app: &App, publication: &Publication, parts: &Parts) -> Result<Response, Error> {
    let headers = &parts.headers;
    let path = parts.uri.path();
    Ok(match path {
        "/" | "/index.html" => documents::plain(publication.documents.index()),
        "/version" | "/version/" => documents::plain(&publication.documents.version),
        "/metrics" => metrics(app).await,
        "/flagz" => zpage(app, Page::Flagz, parts)?,
        "/statusz" => zpage(app, Page::Statusz, parts)?,
        "/debug/api_priority_and_fairness/dump_priority_levels" => queues(app, FlowControl::dump_levels),
        "/debug/api_priority_and_fairness/dump_queues" => queues(app, FlowControl::dump_queues),
        "/debug/api_priority_and_fairness/dump_requests" => {
            let with_details = !query(parts).text("includeRequestDetails").is_empty();
            queues(app, |control| control.dump_requests(with_details))
        }
        "/.well-known/openid-configuration" | "/openid/v1/jwks" => match &app.issuer_documents {
            Some(documents) => issuer_document(documents, path),
            None => response::not_found(),
        },
        "/openapi/v2" => {
            let headers = headers.clone();
            openapi(publication, move |openapi| documents::openapi_v2(openapi, &headers)).await?
        }
        // Upstream's router has the index without the slash alone, and no text for what it does not have.
        "/openapi/v3/" => StatusCode::NOT_FOUND.into_response(),
        _ => match path.strip_prefix("/openapi/v3").filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) => {
                let path = rest.strip_prefix('/').unwrap_or_default().to_owned();
                let (query, headers) = (query(parts), headers.clone());
                openapi(publication, move |openapi| documents::openapi_v3(openapi, &path, &query, &headers))
                    .await?
            }
            None if is_below_a_group(app, path) => return Err(Error::UnknownResource),
            None => response::not_found(),
        },
    })
}

fn zpage(app: &App, page: Page, parts: &Parts) -> Result<Response, Error> {
    app.zpages.respond(page, parts, app.api.runtime.clock.timestamp())
}

/// How long `/metrics` waits for the database.
const DATABASE_TIME: Duration = Duration::from_secs(1);

/// The metrics in Prometheus' text format.
async fn metrics(app: &App) -> Response {
    if let Some(control) = &app.door.flow_control {
        control.observe();
    }
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    let mut text = app.metrics.render();
    app.metrics.render_objects(&mut text, &app.api.object_counts());
    let services = app.api.extensions.newest(&app.api.cache);
    let services = services.all.values().map(|service| (&*service.name, !service.condition.is_true()));
    app.metrics.render_api_services(&mut text, services);
    app.metrics.render_service_ranges(&mut text, &app.api.service_ranges());
    // A database that does not answer hides no other metric.
    if let Ok(Ok(Some(bytes))) = timeout(DATABASE_TIME, app.api.cache.backend().size()).await {
        app.metrics.render_size(&mut text, bytes);
    }
    ([(header::CONTENT_TYPE, kind)], sorted(&text)).into_response()
}

/// The state of the queues of Priority and Fairness, for whoever may look.
fn queues(app: &App, dump: impl FnOnce(&FlowControl) -> String) -> Response {
    match &app.door.flow_control {
        Some(control) => {
            let kind = HeaderValue::from_static("text/plain; charset=utf-8");
            ([(header::CONTENT_TYPE, kind)], dump(control)).into_response()
        }
        None => response::not_found(),
    }
}

/// A document by which others verify tokens of service accounts.
fn issuer_document(documents: &IssuerDocuments, path: &str) -> Response {
    let (kind, text) = match path {
        "/openid/v1/jwks" => ("application/jwk-set+json", documents.key_set()),
        _ => ("application/json", documents.configuration()),
    };
    let cached = format!("public, max-age={}", documents.max_age());
    let headers = [(header::CONTENT_TYPE, kind.to_owned()), (header::CACHE_CONTROL, cached)];
    (headers, text).into_response()
}

/// Answers with an OpenAPI document. The document may have to be made or unpacked first, which must not block other
/// requests.
async fn openapi(
    publication: &Publication,
    answer: impl FnOnce(&OpenApi) -> Response + Send + 'static,
) -> Result<Response, Error> {
    let documents = publication.openapi.clone();
    let made = tokio::task::spawn_blocking(move || answer(&documents)).await;
    made.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => Error::shutting_down(),
    })
}

/// Whether an unknown path is below a group's path, where upstream's router answers.
fn is_below_a_group(app: &App, path: &str) -> bool {
    let mut segments = path.split('/').skip(1);
    match (segments.next(), segments.next()) {
        (Some("api"), Some(_)) => true,
        (Some("apis"), Some(group)) if !group.is_empty() => {
            is_built_in(app.api.catalog.served().registry().group(group))
        }
        _ => false,
    }
}

/// Whether upstream's router knows the group: nothing else answers below those of custom resources.
fn is_built_in(group: Option<&Group>) -> bool {
    group.is_some_and(Group::is_built_in)
}
