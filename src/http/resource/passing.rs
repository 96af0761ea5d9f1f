//! An answer that passes through the server: its body counts as a request without an end of its own.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::{Body, Bytes};
use http_body::{Frame, SizeHint};
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::StreamEnd;
use crate::metrics::LongRunning;

/// `G` is what counts the request as under way.
pub struct Passing<B, G> {
    body: B,
    /// Whether clients are told how long it is.
    shows_length: bool,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    end: StreamEnd,
    _active: G,
}

/// The body of an answer that passes through; it breaks off at `end`.
pub fn passing<B, G>(body: B, end: StreamEnd, active: G) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    G: Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    Body::new(Passing::new(body, true, end, active))
}

/// The same without its length.
pub fn streaming<B>(body: B, end: StreamEnd, active: LongRunning) -> Body
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    Body::new(Passing::new(body, false, end, active))
}

impl<B, G> Passing<B, G> {
    fn new(body: B, shows_length: bool, end: StreamEnd, active: G) -> Self {
        let ended = Box::pin(end.token.clone().cancelled_owned());
        Self { body, shows_length, ended, end, _active: active }
    }
}

impl<B, G> http_body::Body for Passing<B, G>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    G: Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        // Where it began to break off, the answer must not look whole.
        if self.ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(self.end.why().into())));
        }
        Pin::new(&mut self.body).poll_frame(context).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.shows_length { self.body.size_hint() } else { SizeHint::default() }
    }
}
