//! Long responses that are being sent.
//!
//! hyper asks a body for its next piece only when it can send it. A body whose reader stalls is not polled and cannot
//! notice the time; the sweep does that. It stops the task of the response, which resets the stream (in HTTP/1.1: ends
//! the connection) and drops everything that the body holds, such as a state or a database cursor.

mod progress;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::BoxError;
use axum::body::{Body, Bytes};
use axum::response::Response;
use http_body::{Body as _, Frame, SizeHint};
use tokio::time::Instant;

pub use self::progress::Delivery;
use super::requests::Requests;
use super::unsent::{Outgoing, SharedBody, counted};
use crate::metrics::{InFlight, RequestMetrics};

/// A complete response of at most this size is passed to the protocol at once, and not supervised.
const SHORT: u64 = 64 << 10;
/// The length beyond which pieces are passed on in parts, so that a stalled reader has at most this much pending.
const PART: usize = 256 << 10;
/// The additional time that a watch has to end by itself.
pub const SLACK: Duration = Duration::from_secs(5);

/// The conditions for sending a long response. Stored in the response's extensions.
#[derive(Clone)]
pub struct Terms {
    /// When the response is reset, even if its reader makes progress.
    pub until: Instant,
    /// The request counts as in flight until the response is sent.
    pub in_flight: Option<Arc<InFlight>>,
    pub metrics: Arc<RequestMetrics>,
}

/// Whether [`Terms`] apply to the response.
pub fn is_long(response: &Response) -> bool {
    response.body().size_hint().exact().is_none_or(|length| length > SHORT)
}

/// Counts what a response holds, and supervises it if it is long. Must be called on the task that sends it.
pub async fn deliver(mut response: Response, request: Arc<Requests>) -> axum::http::Response<Outgoing> {
    let is_shared = response.extensions_mut().remove::<SharedBody>().is_some();
    let is_long = is_long(&response);
    let terms = response.extensions_mut().remove::<Terms>();
    let (head, body) = response.into_parts();
    let length = body.size_hint().exact().and_then(|length| usize::try_from(length).ok());
    let count = |piece: Bytes| if is_shared { piece } else { counted(piece, &request.connection) };
    let body = Outgoing::of(body, count);
    request.connections.bound_unsent();
    if !is_long {
        return axum::http::Response::from_parts(head, body);
    }
    let task = poll_fn(|context| match tokio::task::try_id() {
        // A stream that the connection polls itself gets a task of its own, since it has to wait here.
        Some(id) if request.connection.polls_streams_on(id) => Poll::Pending,
        id => Poll::Ready(id.map(|id| (id, context.waker().clone()))),
    })
    .await;
    let held = length.filter(|_| body.is_whole() && !is_shared).unwrap_or_default();
    let left = terms.as_ref().map(|terms| terms.until.saturating_duration_since(Instant::now()));
    let left = left.map_or(u64::MAX / 2, |left| request.connections.ticks(left));
    let until = request.connections.now().saturating_add(left);
    let metrics = terms.as_ref().map(|terms| terms.metrics.clone());
    let delivery = Arc::new(Delivery::new(until, metrics, task, held));
    request.connection.add_delivery(delivery.clone());
    let is_counted = body.is_whole() || is_shared;
    let sent = length.is_none().then_some(0);
    let body = Delivered { body, rest: Bytes::new(), delivery, request, is_counted, terms, sent };
    axum::http::Response::from_parts(head, Body::new(body).into())
}

/// A body that reports its progress to its [`Delivery`].
struct Delivered {
    body: Outgoing,
    /// The rest of a long piece.
    rest: Bytes,
    delivery: Arc<Delivery>,
    request: Arc<Requests>,
    /// Whether its bytes count already, or need not.
    is_counted: bool,
    terms: Option<Terms>,
    /// The bytes that were sent of an answer whose length nobody knew.
    sent: Option<u64>,
}

impl Delivered {
    /// A piece of an answer whose length is unknown. If it is known, its bytes count already, or are shared.
    fn counted(&self, piece: Bytes) -> Bytes {
        if self.is_counted {
            return piece;
        }
        self.delivery.hold(piece.len());
        let piece = counted(piece, &self.request.connection);
        self.request.connections.bound_unsent();
        piece
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            match frame.into_data() {
                Ok(data) if data.len() > PART => self.rest = self.counted(data),
                Ok(data) => return Poll::Ready(Some(Ok(Frame::data(self.counted(data))))),
                Err(other) => return Poll::Ready(Some(Ok(other))),
            }
        }
        let length = self.rest.len().min(PART);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }
}

impl http_body::Body for Delivered {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.delivery.asked();
        let piece = self.poll_piece(context);
        if piece.is_ready() {
            self.delivery.handed_over(self.request.connections.now());
        }
        if let (Some(sent), Poll::Ready(Some(Ok(frame)))) = (&mut self.sent, &piece) {
            *sent += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        piece.map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.rest.is_empty() { self.body.size_hint() } else { SizeHint::default() }
    }
}

impl Drop for Delivered {
    fn drop(&mut self) {
        self.request.connection.remove_delivery(&self.delivery);
        if let (Some(sent), Some(terms)) = (self.sent, &self.terms) {
            terms.metrics.answered(sent);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::super::Limits;
    use super::super::connections::Connections;
    use super::*;

    /// Its task is stopped when it makes no progress, and the connection's must not be.
    #[tokio::test]
    async fn a_long_response_has_a_task_of_its_own_also_if_its_connection_polls_it() {
        let connection = tokio::spawn(async {
            let connections = Connections::new(Limits::default(), Arc::default(), Default::default());
            let entry = connections.admit([127, 0, 0, 1].into());
            let connection = entry.connection().clone();
            let requests = Requests::of(connection.clone(), connections);
            connection.set_task_of_streams(tokio::task::id());
            let by_connection = || Context::from_waker(Waker::noop());
            let response = |length: u64| Response::new(Body::from(vec![0; length as usize]));
            let mut short = Box::pin(deliver(response(SHORT), requests.clone()));
            assert!(short.as_mut().poll(&mut by_connection()).is_ready());
            let mut long = Box::pin(deliver(response(SHORT + 1), requests));
            assert!(long.as_mut().poll(&mut by_connection()).is_pending());
            let stopped = connection.clone();
            let own = tokio::spawn(async move {
                let response = long.await;
                stopped.reset_stalled(u64::MAX, 0, |_| {});
                (response, stopped.is_stopped())
            });
            let (_response, is_stopped) = own.await.expect("no panic");
            assert!(is_stopped && !connection.is_stopped());
        });
        connection.await.expect("no panic");
    }
}
