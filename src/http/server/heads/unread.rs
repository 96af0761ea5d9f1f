//! Bodies of requests that are answered before they were read. A connection that is closed with unread bytes is reset, and
//! the client may lose the answer, so what is left is read away, within bounds.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::runtime::Handle;

/// The rest of a body after which a connection goes on, in bytes (upstream's).
const KEPT: u64 = 256 << 10;
/// The most bytes of a body, or behind it, that are read for nobody.
pub const MOST: u64 = 64 << 20;

/// Whether the connection has to end after the answer.
#[derive(Clone, Debug, Default)]
pub struct Ends(Arc<AtomicBool>);

impl Ends {
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A body as its handler reads it.
pub struct Kept {
    body: Option<Incoming>,
    /// Whether the client sends it only when it is asked for.
    is_awaited: bool,
    ends: Ends,
}

/// The body of a request, what is left of which is read away after its handler has dropped it.
pub fn kept(body: Incoming, expects: bool, ends: &Ends) -> Body {
    match body.is_end_stream() {
        true => Body::new(body),
        false => Body::new(Kept { body: Some(body), is_awaited: expects, ends: ends.clone() }),
    }
}

impl http_body::Body for Kept {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.is_awaited = false;
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        if matches!(frame, Some(Err(_))) {
            self.ends.set();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) else { return };
        if self.is_awaited {
            return self.ends.set();
        }
        if body.size_hint().exact().is_some_and(|left| left > KEPT) {
            self.ends.set();
        }
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(read_away(body));
        }
    }
}

async fn read_away(mut body: Incoming) {
    let mut left = MOST;
    while let Some(Ok(frame)) = body.frame().await {
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        match left.checked_sub(length) {
            Some(rest) => left = rest,
            None => return,
        }
    }
}
