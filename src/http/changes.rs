//! `GET /rowplane/changes`: the changes of many kinds in one stream, in the order of their revisions, with who made
//! them (docs/spec/time-and-sql.md, section 7.1). Read from the table of changes, down to the floors of the resources.

mod feed;
mod format;
mod line;
mod request;
mod snapshot;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use futures_util::stream;
use tokio::time::Instant;

use self::feed::Feed;
use self::format::Format;
use self::request::ChangesRequest;
use self::snapshot::Snapshot;
use super::app::App;
use super::request::user;
use super::resource::stream_end::StreamEnd;
use super::response;
use super::response::status::Failure;
use super::server::delivery::{SLACK, Terms};
use crate::api::error::Error;
use crate::auth::revocation::Permit;
use crate::metrics::{LongRunning, RequestMetrics};
use crate::revision::Revision;
use crate::tree::json;

/// Answers with the stream. It is read as its client reads, and holds a page of changes at most.
pub async fn serve(app: &Arc<App>, metrics: Arc<RequestMetrics>, parts: &Parts) -> Response {
    let opened = match parts.method == Method::GET {
        true => Box::pin(open(app, metrics.long_running(), parts)).await,
        false => Err(Error::MethodNotAllowed),
    };
    let stream = match opened {
        Ok(stream) => stream,
        Err(error) => return response::failure(&error, parts),
    };
    let terms = Terms { until: stream.until + SLACK, in_flight: None, metrics };
    let pieces = stream::unfold(stream, |mut stream| async move {
        let piece = stream.next().await?;
        Some((Ok::<_, Infallible>(piece), stream))
    });
    let mut response = Response::new(Body::from_stream(pieces));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response.extensions_mut().insert(terms);
    response
}

/// A stream of changes that is being read.
struct Stream {
    /// `None` when it is over, or if there is none.
    snapshot: Option<Snapshot>,
    feed: Feed,
    format: Format,
    request: ChangesRequest,
    end: StreamEnd,
    permit: Option<Permit>,
    /// When the stream ends even if it is read.
    until: Instant,
    /// When the client is told how far the stream is, if nothing else is told.
    next_heartbeat: Instant,
    is_over: bool,
    _running: LongRunning,
}

async fn open(app: &Arc<App>, running: LongRunning, parts: &Parts) -> Result<Stream, Error> {
    let request = ChangesRequest::read(parts)?;
    let newest = app.api.cache.fresh_for_request().await?;
    let position = request.after.unwrap_or(newest.revision);
    if position > newest.revision {
        return Err(Error::FutureRevision { requested: position.0, current: newest.revision.0 });
    }
    let feed = Feed::open(app, user(parts), &request, position).await?;
    let format = Format::new(request.format, app, &newest);
    let snapshot = match request.has_snapshot {
        true => Some(feed.snapshot(&newest).await?),
        false => None,
    };
    let min = app.api.config.min_request_timeout;
    let time = request.timeout.unwrap_or_else(|| min.mul_f64(1.0 + app.api.runtime.random.share()));
    let now = Instant::now();
    Ok(Stream {
        snapshot,
        feed,
        format,
        end: StreamEnd::of(&app.door, parts),
        permit: parts.extensions.get::<Permit>().cloned(),
        until: now + time,
        next_heartbeat: now + request.heartbeat,
        is_over: false,
        _running: running,
        request,
    })
}

impl Stream {
    /// The next lines; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        match self.lines().await {
            Ok(Some(lines)) => {
                self.next_heartbeat = Instant::now() + self.request.heartbeat;
                Some(lines.into())
            }
            Ok(None) => None,
            Err(error) => {
                self.is_over = true;
                Some(format!("{}\n", json!({"error": Failure::from(&error).body})).into())
            }
        }
    }

    async fn lines(&mut self) -> Result<Option<String>, Error> {
        loop {
            let lines = match &mut self.snapshot {
                Some(snapshot) => match snapshot.next().await? {
                    Some(objects) => {
                        objects.iter().map(|line| self.format.line(line, &self.request)).collect()
                    }
                    None => {
                        self.snapshot = None;
                        self.heartbeat().await?
                    }
                },
                None if Instant::now() >= self.until || self.end.token.is_cancelled() => String::new(),
                None => {
                    let lines = self.feed.next().await?;
                    lines.iter().map(|line| self.format.line(line, &self.request)).collect()
                }
            };
            // Asked after the changes were found, so that what has revoked the permit before them is known.
            if let Some(permit) = &self.permit {
                permit.check().await?;
            }
            let is_late = Instant::now() >= self.until || self.end.token.is_cancelled();
            if !lines.is_empty() {
                return Ok(Some(lines));
            }
            if is_late || (!self.request.follows && self.snapshot.is_none() && self.feed.is_at_the_end()) {
                self.is_over = true;
                return Ok(Some(self.heartbeat().await?));
            }
            if self.snapshot.is_none() && Instant::now() >= self.next_heartbeat {
                return Ok(Some(self.heartbeat().await?));
            }
            if self.snapshot.is_none() && self.feed.is_at_the_end() {
                let wake = self.until.min(self.next_heartbeat);
                tokio::select! {
                    () = self.feed.advanced() => {}
                    () = tokio::time::sleep_until(wake) => {}
                    () = self.end.token.cancelled() => {}
                }
            } else {
                tokio::task::yield_now().await;
            }
        }
    }

    /// The line that tells how far the stream is: all changes up to there have been told.
    async fn heartbeat(&mut self) -> Result<String, Error> {
        let revision: Revision = self.feed.position();
        Ok(self.format.heartbeat(revision, self.feed.time().await?))
    }
}
