//! `POST /rowplane/sql`: a SELECT over everything that is stored, at one revision, with the rights of its caller
//! (docs/spec/time-and-sql.md, section 4).
//!
//! A statement runs on a thread of its own, of which there are few ([`Statements`]). Its tables are made of the served
//! resources ([`session`]), their rows are the cache's objects ([`objects`]) or rows of the store ([`past`]).
//!
//! [`Statements`]: super::limits::Statements

mod answer;
mod catalog;
mod cells;
mod columns;
mod objects;
mod past;
mod request;
mod rights;
mod session;
mod tables;
mod wanted;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use futures_util::stream;
use rowplane_sql::{Catalog, Statement, Watch, run};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc};

use self::answer::{Piece, Told, Writer};
use self::catalog::Tables;
use self::request::{Form, SqlRequest};
use self::session::{Limits, Notes, Session};
use super::app::App;
use super::door::fair_share::Seated;
use super::request::body::Reading;
use super::request::{audit_record, user};
use super::response;
use crate::api::error::Error;
use crate::user::MASTERS;

/// The path of statements.
pub const PATH: &str = "/rowplane/sql";
/// The largest request: a statement of 64 KiB, and parameters.
const MOST_BYTES: usize = 1 << 20;
/// Pieces of an answer that wait for their client.
const PIECES_AHEAD: usize = 2;

/// Answers a statement.
pub async fn serve(app: &Arc<App>, parts: &Parts, body: Body) -> Response {
    let answer = Box::pin(answer(app, parts, body)).await;
    answer.unwrap_or_else(|error| response::failure(&error, parts))
}

async fn answer(app: &Arc<App>, parts: &Parts, body: Body) -> Result<Response, Error> {
    if !app.statements.config.is_on {
        return Ok(response::not_found());
    }
    if parts.method != Method::POST {
        return Err(Error::MethodNotAllowed);
    }
    let form = Form::of(parts)?;
    let seated = parts.extensions.get::<Seated>();
    let user = user(parts);
    let budget = (!user.is_in(MASTERS)).then_some((&app.bodies, &*user.name));
    let reading = Reading::new(body, MOST_BYTES, budget);
    let (body, _room) = reading.read(|| seated.into_iter().for_each(Seated::give_back)).await?;
    let request = SqlRequest::read(parts, &body)?;
    note(parts, &request, &body);
    // Statements have a limit of their own, and their seats are not held while they wait for it.
    seated.into_iter().for_each(Seated::give_back);
    let deadline = Instant::now() + request.time(app.statements.config.timeout)?;
    let permit = app.statements.thread(deadline).await?;
    let state = app.api.cache.fresh_for_request().await?;
    let mut served = app.api.served_as_known().await;
    let told_as_of = request.as_of.clone();
    let as_of = match &request.as_of {
        Some(time) => Some(past::revision(app, time).await?),
        None => app.recording.as_ref().map(|recording| recording.revision),
    };
    if let Some(revision) = as_of {
        served = app.api.served_as_of(revision).await?;
    }
    let (sender, mut pieces) = mpsc::channel(PIECES_AHEAD);
    let session = Session {
        app: app.clone(),
        user,
        served,
        state,
        as_of,
        namespaces: request.namespaces.clone(),
        is_strict: request.strict,
        skips_broken: request.skip_broken,
        runtime: Handle::current(),
        deadline,
        notes: Notes::default(),
    };
    let revision = session.as_of.unwrap_or(session.state.revision);
    let told = Told { revision: revision.0.to_string(), as_of: told_as_of };
    let work = Work { session: Arc::new(session), request, form, told, answer: sender, _permit: permit };
    tokio::task::spawn_blocking(move || work.run());
    let first = match pieces.recv().await {
        Some(first) => first?,
        None => return Err(Error::Internal("a statement ended without an answer".to_owned())),
    };
    let rest = stream::unfold(pieces, |mut pieces| async move { Some((pieces.recv().await?, pieces)) });
    let all = futures_util::StreamExt::chain(stream::iter([Ok::<Bytes, Error>(first)]), rest);
    let mut response = Response::new(Body::from_stream(all));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
    Ok(response)
}

/// Records the statement where requests are audited.
fn note(parts: &Parts, request: &SqlRequest, body: &Bytes) {
    let Some(record) = audit_record(parts) else { return };
    record.annotate("rowplane.dev/sql", request.query.clone());
    record
        .requested_text(|| serde_json::from_slice::<serde::de::IgnoredAny>(body).ok().map(|_| body.clone()));
}

/// A statement with all that it needs on its thread.
struct Work {
    session: Arc<Session>,
    request: SqlRequest,
    form: Form,
    told: Told,
    answer: mpsc::Sender<Piece>,
    /// Given back when the thread is done.
    _permit: OwnedSemaphorePermit,
}

impl Work {
    fn run(self) {
        let Self { session, request, form, told, answer, _permit } = self;
        let began = Instant::now();
        let limits = Arc::new(Limits {
            deadline: session.deadline,
            answer: answer.clone(),
            scanned: AtomicU64::new(0),
        });
        let mut writer = Writer::new(form, told, answer, session.runtime.clone(), session.deadline);
        let catalog: Arc<dyn Catalog> = Arc::new(Tables(session.clone()));
        let watch: Arc<dyn Watch> = limits.clone();
        let statement = Statement {
            text: &request.query,
            parameters: request.parameters(),
            now: session.app.api.runtime.clock.timestamp(),
        };
        let done = run(&catalog, &statement, &watch, &mut writer);
        let took = began.elapsed();
        session.app.statements.metrics.ran(took, limits.scanned.load(Ordering::Relaxed));
        writer.end(done, took.as_millis(), &session.warnings());
    }
}
