//! The routes of the server, and what applies to every request: authentication, headers, metrics.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Version, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use futures_util::future::BoxFuture;

use super::app::{App, Door};
use super::audited;
use super::compress::compress;
use super::documents;
use super::health::{self, HealthChecks};
use super::in_process::Caller;
use super::negotiate::{ROUTE_TYPES, check_route};
use super::openapi::OpenApi;
use super::publications::Publication;
use super::request::{AUDIT_ID, accept, new_audit_id, query, user};
use super::request_info::RequestInfo;
use super::request_path::{ApiPath, parse, segments};
use super::server::{ConnectionInfo, Responder};
use super::{resource, response};
use crate::api::error::Error;
use crate::auth::authn::is_open_path;
use crate::auth::authorizer::Attributes;
use crate::metrics::{RequestKind, RequestLabels, Scope};
use crate::schema::registry::Group;
use crate::schema::resource::Origin;
use crate::user::User;

/// Answers all requests of a server: health endpoints by their router, everything else by [`serve`].
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
    fn respond(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response> {
        Box::pin(async move {
            let received = jiff::Timestamp::now();
            let (mut parts, body) = request.into_parts();
            let door = &self.app.door;
            if door.audit.is_some() {
                audited::ensure_id(&mut parts.headers);
            }
            let audit_id = audit_id(&parts.headers);
            let info = match RequestInfo::of(&parts.method, &parts.uri) {
                Ok(info) => info,
                Err(error) => return response::failure(&error, &parts),
            };
            let admitted = admitted(door, &mut parts);
            let user = user(&parts);
            let mut answering = audited::Answering::of(&info);
            if let Some(audit) = &door.audit {
                if admitted.is_err() {
                    answering = audited::Answering::Unauthenticated;
                    audited::begin_unauthenticated(audit, &mut parts, &info, received);
                } else if audited::begin(audit, &mut parts, &info, &user, received).await.is_err() {
                    return finish(audited::refused(&parts), audit_id);
                }
            }
            let record = audited::record(&parts).cloned();
            let work = async {
                if let Err(error) = admitted {
                    return response::failure(&error, &parts);
                }
                let mut admitted = None;
                if let Some(control) = &door.flow_control {
                    match super::fair_share::admit(control, &mut parts, &info, &user, door.request_time).await
                    {
                        Ok(seat) => admitted = seat,
                        Err(response) => return response,
                    }
                }
                if let Some(record) = audited::record(&parts) {
                    record.annotate("authorization.k8s.io/decision", "allow");
                    record.annotate("authorization.k8s.io/reason", "");
                }
                let response = match is_health(parts.uri.path()) {
                    true => self.health.clone().respond(Request::from_parts(parts, body)).await,
                    false => serve(&self.app, parts, body).await,
                };
                match admitted {
                    Some(admitted) => admitted.finish(response),
                    None => response,
                }
            };
            let response = match record {
                Some(record) => audited::answer(record, answering, received, work).await,
                None => work.await,
            };
            finish(response, audit_id)
        })
    }
}

/// The routes of a server that is starting: health endpoints, and 503 for everything else, which is upstream's answer
/// before all of its handlers are installed.
pub fn starting_router(door: Arc<Door>, health: HealthChecks) -> Router {
    let routes = health::routes(Arc::new(health)).fallback(refuse_while_starting);
    routes.layer(middleware::from_fn_with_state(door, admit))
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

/// Passes a request on to its route if [`admitted`] lets it.
async fn admit(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let audit_id = audit_id(&parts.headers);
    let response = match admitted(&door, &mut parts) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(error) => response::failure(&error, &parts),
    };
    finish(response, audit_id)
}

/// The audit id that the client sent.
fn audit_id(headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(AUDIT_ID).filter(|id| !id.is_empty()).cloned()
}

/// Sets the headers of every response: an audit id, and no caching unless the handler allows it.
fn finish(mut response: Response, audit_id: Option<HeaderValue>) -> Response {
    let headers = response.headers_mut();
    // A failure that was logged has an audit id already.
    if !headers.contains_key(AUDIT_ID)
        && let Some(audit_id) = audit_id.or_else(new_audit_id)
    {
        headers.insert(AUDIT_ID, audit_id);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
    response
}

/// Authenticates the request and stores the user in its extensions.
fn admitted(door: &Door, parts: &mut Parts) -> Result<(), Error> {
    let path = parts.uri.path();
    let open = is_open_path(path);
    if door.shutdown.is_cancelled() && !open {
        return Err(Error::shutting_down());
    }
    let user = match authenticated(door, parts)? {
        Some(user) => user,
        None if open => Arc::new(User::anonymous()),
        None => return Err(Error::Unauthorized),
    };
    if !is_health(path) && impersonates(&parts.headers) {
        return Err(Error::impersonation());
    }
    // Health endpoints are routes of their own, so access to their single checks is authorized here.
    if is_health(path) && !open {
        authorize_path(door, &user, parts)?;
    }
    parts.extensions.insert(user);
    Ok(())
}

/// The user of the credentials. A connection on which no credential was ever shown has lower limits, and if it speaks
/// HTTP/2, which can be abused for floods, is closed after its first request (upstream's
/// `UnauthenticatedHTTP2DOSMitigation`).
fn authenticated(door: &Door, parts: &Parts) -> Result<Option<Arc<User>>, Error> {
    if let Some(Caller(user)) = parts.extensions.get() {
        return Ok(Some(user.clone()));
    }
    let connection = parts.extensions.get::<Arc<ConnectionInfo>>();
    let certificate = connection.and_then(|connection| connection.user());
    let authorization = parts.headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let user = door.authenticator.authenticate(certificate, authorization);
    let Some(connection) = connection else { return Ok(user?) };
    if matches!(user, Ok(Some(_))) {
        if !connection.authenticate() {
            connection.go_away();
            return Err(Error::too_many("connections"));
        }
        let chance = door.goaway_chance;
        if chance > 0.0 && parts.version == Version::HTTP_2 && rand::random_bool(chance) {
            connection.go_away();
        }
        return Ok(user?);
    }
    if parts.version == Version::HTTP_2 {
        connection.go_away();
    }
    if connection.is_crowded() { Err(Error::too_many("requests without a credential")) } else { Ok(user?) }
}

/// Whether the request has impersonation headers. Upstream would act as the user that they name, so the request must
/// not be carried out with the rights of its sender.
fn impersonates(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with("impersonate-"))
}

fn authorize_path(door: &Door, user: &User, parts: &Parts) -> Result<(), Error> {
    let verb = parts.method.as_str().to_lowercase();
    Ok(door.authorizer.authorize(&Attributes::of_path(user, &verb, parts.uri.path()))?)
}

/// Whether the path is a health endpoint or one of its checks.
fn is_health(path: &str) -> bool {
    let rest = ["/livez", "/readyz", "/healthz"].iter().find_map(|endpoint| path.strip_prefix(endpoint));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Answers every request except those for health.
async fn serve(app: &App, parts: Parts, body: Body) -> Response {
    let segments = segments(parts.uri.path()).unwrap_or_default();
    match parse(&segments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Some(ApiPath::Resource(path)) => resource::serve(app, path, parts, body).await,
        other => {
            let in_flight = app.metrics.in_flight(RequestKind::ReadOnly);
            if app.limits.in_flight.are_reached(RequestKind::ReadOnly, &in_flight) {
                app.metrics.request(&document_labels()).terminated(429);
                return response::too_many_requests();
            }
            document(app, other, &parts).await.unwrap_or_else(|error| response::failure(&error, &parts))
        }
    }
}

fn document_labels() -> RequestLabels {
    let (resource, subresource) = Default::default();
    RequestLabels { verb: "GET", resource, subresource, scope: Scope::None }
}

async fn document(app: &App, path: Option<ApiPath>, parts: &Parts) -> Result<Response, Error> {
    if !is_open_path(parts.uri.path()) {
        authorize_path(&app.door, &user(parts), parts)?;
    }
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Err(Error::MethodNotAllowed);
    }
    let headers = &parts.headers;
    let served = app.api.served_everywhere().await?;
    let publication = app.publications.of(&served).await?;
    let documents = &publication.documents;
    let answer = match path {
        Some(ApiPath::CoreVersions) => check_route(accept(headers), ROUTE_TYPES)
            .and_then(|()| documents::discovery(&documents.api, parts)),
        Some(ApiPath::Groups) => documents::discovery(&documents.apis, parts),
        Some(ApiPath::Group { group }) => match documents.group(&group) {
            Some(document) => documents::legacy(document, parts),
            None => Ok(response::not_found()),
        },
        Some(ApiPath::GroupVersion(version)) => match documents.resources(&version) {
            Some(document) => documents::resources(document, parts),
            None if is_built_in(served.registry().group(version.group())) => Err(Error::UnknownResource),
            None => Ok(response::not_found()),
        },
        Some(ApiPath::Resource(_)) | None => return other_document(app, &publication, parts).await,
    };
    answer.map(|response| compress(headers, response))
}

async fn other_document(app: &App, publication: &Publication, parts: &Parts) -> Result<Response, Error> {
    let headers = &parts.headers;
    let path = parts.uri.path();
    Ok(match path {
        "/" | "/index.html" => documents::plain(publication.documents.index()),
        "/version" | "/version/" => documents::plain(&publication.documents.version),
        "/metrics" => metrics(app),
        "/openapi/v2" => {
            let headers = headers.clone();
            openapi(publication, move |openapi| documents::openapi_v2(openapi, &headers)).await?
        }
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

/// The metrics in Prometheus' text format.
fn metrics(app: &App) -> Response {
    if let Some(control) = &app.door.flow_control {
        control.observe();
    }
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], app.metrics.render()).into_response()
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
        (Some("apis"), Some(group)) => is_built_in(app.api.catalog.served().registry().group(group)),
        _ => false,
    }
}

/// Whether upstream's router knows the group: nothing else answers below those of custom resources.
fn is_built_in(group: Option<&Group>) -> bool {
    group.is_some_and(|group| group.origin == Origin::BuiltIn)
}
