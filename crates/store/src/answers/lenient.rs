//! A stream whose peer may close it without TLS's goodbye, as many servers do, and Go's client allows. A body that says how long
//! it is, or comes in chunks, is still known to be cut.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::layered::{Layer, Layered};

pub type LenientStream<S> = Layered<S, Lenient>;

/// The layer to which a connection that was cut has ended.
pub struct Lenient;

impl Lenient {
    pub fn over<S>(stream: S) -> LenientStream<S> {
        Layered { stream, layer: Self }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Layer<S> for Lenient {
    fn poll_read(
        &mut self,
        stream: Pin<&mut S>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match stream.poll_read(context, buffer) {
            Poll::Ready(Err(error)) if error.kind() == ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            read => read,
        }
    }
}
