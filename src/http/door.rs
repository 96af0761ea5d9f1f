//! The order of one request (docs/spec/auth.md): what it asks for, who asks, whether he may, and only then its handler.

pub(in crate::http) mod audited;
pub mod cors;
pub(in crate::http) mod fair_share;
pub mod identity;
mod permission;
mod reauthorization;
mod trace;

use std::future::poll_fn;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::Response;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use self::audited::{Answering, Begun, Watched};
use self::cors::Cors;
use self::fair_share::Admitted;
use super::in_process::Caller;
use super::request::info::RequestInfo;
use super::request::{AUDIT_ID, new_audit_id, raw_query};
use super::response;
use super::response::{Unlogged, warnings};
use super::server::ConnectionInfo;
use super::tls::ClientTrust;
use crate::api::error::Error;
use crate::audit::{Audit, Lost};
use crate::auth::authn::{Authenticated, Authenticator, By, Credential, Notes};
use crate::auth::authorizer::{Authorization, is_public_path};
use crate::auth::impersonation::{self, Impersonator};
use crate::auth::revocation::Revocations;
use crate::auth::service_accounts::Unproven;
use crate::flow_control::FlowControl;
use crate::metrics::{Filter, Metrics};
use crate::random::Random;
use crate::traces::Tracer;
use crate::user::User;
use crate::wall_clock::WallClock;

/// The steps between a connection and the handlers, also while the server starts.
pub struct Door {
    pub authenticator: Authenticator,
    pub authorizer: Authorization,
    pub impersonator: Arc<Impersonator>,
    /// The long-running requests, which end with the credential or the right that let them in.
    pub revocations: Revocations,
    /// The CAs of client certificates; `None` if nobody can show one.
    pub client_trust: Option<ClientTrust>,
    /// The name of the cluster among those behind the listener; `None` if it is the only one.
    pub cluster: Option<Arc<str>>,
    /// `None` if nothing is recorded.
    pub audit: Option<Arc<Audit>>,
    /// `None` if no request is traced.
    pub tracer: Option<Tracer>,
    /// `None` if only the number of requests is limited.
    pub flow_control: Option<Arc<FlowControl>>,
    /// How long a request may take.
    pub request_time: Duration,
    /// The share of HTTP/2 requests after which the connection is told to close, so that clients behind one address
    /// spread over all replicas.
    pub goaway_chance: f64,
    /// The `Strict-Transport-Security` that browsers are told on every answer.
    pub strict_transport_security: Option<HeaderValue>,
    /// `None` if no page of another origin may ask anything.
    pub cors: Option<Arc<Cors>>,
    pub metrics: Arc<Metrics>,
    pub clock: WallClock,
    pub random: Random,
    /// The number of APIServices of extension servers, to which requests may be passed on.
    pub remote_services: Arc<AtomicUsize>,
    /// Cancelled when the server starts to drain.
    pub shutdown: CancellationToken,
    /// Cancelled when the server or the listener of its process starts to drain; `None` without a process.
    pub listener_shutdown: Option<CancellationToken>,
}

/// How much of the server is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Health endpoints alone answer. Nothing else is authorized, since roles are not known yet and nobody is served.
    Starting,
    Started,
}

/// The credentials that a client has shown.
struct Shows {
    credential: Credential,
    /// Set if the credential was accepted by what this server knows, and others may know better.
    unproven: Option<Unproven>,
}

/// The request that is to be permitted, and the stage of the server that it meets.
#[derive(Clone, Copy)]
struct Asks<'a> {
    stage: Stage,
    info: &'a RequestInfo,
    /// Whether the request may be let in by what this server knows: a write, whose commit tells whether that was right.
    may_foresee: bool,
}

impl Door {
    /// Lets a request in to its handler, or refuses it. The handler finds the user in the extensions of the head.
    ///
    /// All steps share what stands here, by reference: what an async function is given stands in its future twice, and
    /// the future of each request is allocated and moved.
    pub async fn enter(
        &self,
        stage: Stage,
        request: Request,
        handler: impl AsyncFnOnce(&RequestInfo, &Parts, Body) -> Response,
    ) -> Response {
        let received = self.clock.timestamp();
        let (mut parts, body) = request.into_parts();
        let audit_id = audit_id(&parts.headers).or_else(|| new_audit_id(&self.random));
        self.pass_audit_id(&mut parts, audit_id.as_ref());
        let mut notes = Notes::default();
        let origin = self.cors.as_ref().and_then(|cors| cors.origin(&parts.headers));
        let is_preflight = origin.is_some() && parts.method == Method::OPTIONS;
        let mut response = match self.info(&parts) {
            Ok(_) if is_preflight => match self.account_unknown(&parts) {
                Ok(()) => cors::allowed(),
                Err(error) => response::failure(&error, &parts),
            },
            Ok(info) => {
                let may_foresee = stage == Stage::Started && info.is_plain_write();
                let speaks_for_itself = !impersonation::is_requested(&parts.headers);
                let by = if may_foresee && speaks_for_itself { By::Known } else { By::Newest };
                let (user, shown) = match self.authenticate(&mut parts, by, &mut notes).await {
                    Ok(Authenticated { user, unproven, credential, .. }) => {
                        (Ok(user), Shows { credential, unproven })
                    }
                    Err(error) => (Err(error), Shows { credential: Credential::Anonymous, unproven: None }),
                };
                let answering = match &user {
                    Ok(_) => Answering::of(&info),
                    Err(_) => Answering::Unauthenticated,
                };
                let span = self.trace(&mut parts, &info, user.as_ref().ok(), audit_id.as_ref());
                let auditing = self.audit.as_ref().map(|_| Instant::now());
                let Begun { record, storing } =
                    self.record(&mut parts, &info, &user, received, audit_id.as_ref(), &notes);
                let stored = match storing {
                    Some(storing) => storing.await,
                    None => Ok(()),
                };
                let answered = match stored {
                    Ok(()) => {
                        if user.is_ok() {
                            let took = auditing.map_or(Duration::ZERO, |began| began.elapsed());
                            self.metrics.attempts.passed(Filter::Audit, took);
                        }
                        let answered = {
                            let mut watched = Watched::new(record.clone(), answering);
                            let asks = Asks { stage, info: &info, may_foresee };
                            let mut answer = pin!(self.answer(asks, user, shown, &mut parts, body, handler));
                            poll_fn(|context| watched.poll(answer.as_mut(), context)).await
                        };
                        let (answered, storing) = match record {
                            Some(record) => audited::complete(record, answering, received, answered),
                            None => (answered, None),
                        };
                        if let Some(storing) = storing {
                            let _ = storing.await;
                        }
                        answered.unwrap_or_else(|panic| resume_unwind(panic))
                    }
                    Err(Lost) => {
                        self.audit.iter().for_each(|audit| audit.rejected());
                        audited::refused(&parts)
                    }
                };
                span.iter().for_each(|span| span.answered(answered.status().as_u16()));
                answered
            }
            Err(error) => {
                let error = self.account_unknown(&parts).err().unwrap_or(error);
                response::failure(&error, &parts)
            }
        };
        if let Some(origin) = origin {
            cors::tell(response.headers_mut(), origin);
        }
        self.finish(&mut response, &notes, audit_id);
        response
    }

    /// Shows the audit id to extension servers, if there are any.
    fn pass_audit_id(&self, parts: &mut Parts, audit_id: Option<&HeaderValue>) {
        if let Some(audit_id) = audit_id
            && self.remote_services.load(Ordering::Relaxed) > 0
        {
            parts.headers.entry(AUDIT_ID).or_insert_with(|| audit_id.clone());
        }
    }

    /// Sets the headers of every response: warnings, an audit id, and no caching unless the handler allows it.
    fn finish(&self, response: &mut Response, notes: &Notes, audit_id: Option<HeaderValue>) {
        if !notes.warnings().is_empty() {
            let texts: Vec<String> = notes.warnings().iter().map(|text| (*text).to_owned()).collect();
            warnings::put(response.headers_mut(), &texts);
        }
        if let Some(audit_id) = audit_id {
            if let Some(Unlogged { method, path, error }) = response.extensions_mut().remove() {
                let audit_id = String::from_utf8_lossy(audit_id.as_bytes());
                tracing::warn!(%audit_id, %method, path, error, "the datastore failed a request");
            }
            response.headers_mut().entry(AUDIT_ID).or_insert(audit_id);
        }
        self.secure(response);
        let headers = response.headers_mut();
        headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
    }

    /// Tells browsers to use no other scheme than HTTPS, if the server is so configured.
    pub fn secure(&self, response: &mut Response) {
        if let Some(value) = &self.strict_transport_security {
            response.headers_mut().insert(header::STRICT_TRANSPORT_SECURITY, value.clone());
        }
    }

    /// The verb and subject of the request; an error if its URL is unclear, or if the server drains and can say so in no other way.
    fn info(&self, parts: &Parts) -> Result<RequestInfo, Error> {
        let info = RequestInfo::of_query(&parts.method, &parts.uri, raw_query(parts))?;
        self.refuse_when_over(parts)?;
        Ok(info)
    }

    /// Begins the record of the request, if an audit policy wants one.
    fn record(
        &self,
        parts: &mut Parts,
        info: &RequestInfo,
        user: &Result<Arc<User>, Error>,
        received: Timestamp,
        audit_id: Option<&HeaderValue>,
        notes: &Notes,
    ) -> Begun {
        let Some(audit) = &self.audit else { return Begun::default() };
        audited::begin(audit, parts, info, user.as_ref().ok(), notes, audit_id, received)
    }

    /// The steps behind authentication: impersonation, flow control, authorization, and the handler.
    async fn answer(
        &self,
        asks: Asks<'_>,
        user: Result<Arc<User>, Error>,
        shown: Shows,
        parts: &mut Parts,
        body: Body,
        handler: impl AsyncFnOnce(&RequestInfo, &Parts, Body) -> Response,
    ) -> Response {
        let Asks { stage, info, .. } = asks;
        let who = match user {
            Ok(user) => self.impersonate(user, info, parts).await,
            Err(error) => Err(error),
        };
        let who = match who {
            Ok(who) => who,
            Err(error) => return response::failure(&error, parts),
        };
        let user = who.user.clone();
        let seats = match self.seats(stage, parts, info, &user).await {
            Ok(seats) => seats,
            Err(refusal) => return refusal,
        };
        if let Some(connection) = parts.extensions.get::<Arc<ConnectionInfo>>() {
            connection.count_to(self.cluster.as_deref(), &user);
        }
        let (asker, uri) = (user.clone(), parts.uri.clone());
        let mut work = pin!(async {
            let foreseen = match self.permit(asks, parts, &user, shown.unproven).await {
                Ok(foreseen) => foreseen,
                Err(error) => return response::failure(&error, parts),
            };
            if stage == Stage::Started && info.is_long_running() {
                let permit = self.long_running(parts, who, shown.credential);
                parts.extensions.insert(permit);
            }
            parts.extensions.insert(user);
            if let Some(foreseen) = &foreseen {
                parts.extensions.insert(foreseen.clone());
            }
            let response = handler(info, parts, body).await;
            match foreseen {
                Some(foreseen) if foreseen.is_open() => {
                    Box::pin(self.confirm(&foreseen, response, parts, info, &asker)).await
                }
                _ => response,
            }
        });
        let mut has_waited = false;
        let response = poll_fn(|context| {
            let polled = work.as_mut().poll(context);
            if polled.is_pending()
                && !std::mem::replace(&mut has_waited, true)
                && let Some(seats) = &seats
            {
                seats.describe(&info.attributes(&asker), uri.path());
            }
            polled
        })
        .await;
        match seats {
            Some(seats) => seats.finish(response),
            None => response,
        }
    }

    /// Waits for the request's share of the server.
    async fn seats(
        &self,
        stage: Stage,
        parts: &mut Parts,
        info: &RequestInfo,
        user: &User,
    ) -> Result<Option<Admitted>, Response> {
        match &self.flow_control {
            Some(control) if stage == Stage::Started => {
                let began = Instant::now();
                let admitted = fair_share::admit(control, parts, info, user, self.request_time).await?;
                self.metrics.attempts.passed(Filter::PriorityAndFairness, began.elapsed());
                Ok(admitted)
            }
            _ => Ok(None),
        }
    }

    /// A server that drains serves every connection that stands, and tells its peer to go elsewhere; whoever asks in
    /// process, or on a connection that other clusters have, too, can be told by an answer only.
    fn refuse_when_over(&self, parts: &Parts) -> Result<(), Error> {
        let has_connection = self.cluster.is_none() && parts.extensions.get::<Caller>().is_none();
        let is_over = !has_connection && self.shutdown.is_cancelled();
        match is_over && !is_public_path(parts.uri.path()) {
            true => Err(Error::shutting_down()),
            false => Ok(()),
        }
    }
}

/// Whether the path is a health endpoint or one of its checks.
pub fn is_health(path: &str) -> bool {
    let rest = ["/livez", "/readyz", "/healthz"].iter().find_map(|endpoint| path.strip_prefix(endpoint));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The audit id that the client sent.
fn audit_id(headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(AUDIT_ID).filter(|id| !id.is_empty()).cloned()
}
