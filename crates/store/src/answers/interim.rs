//! Answers before an answer (1xx), of which a server may send any number.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use hyper::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::layered::Layer;

/// How many of them are read, as Go did before it counted their bytes.
const MOST: u32 = 5;

/// The error of too many interim answers.
pub const TOO_MANY: &str = "net/http: too many 1xx informational responses";

/// A count of the answers before the answer to one request.
#[derive(Clone, Debug)]
pub struct Interim(Arc<AtomicU32>);

impl Interim {
    /// Counts those to this request.
    pub fn of<B>(request: &mut Request<B>) -> Self {
        let count = Arc::<AtomicU32>::default();
        let counted = count.clone();
        hyper::ext::on_informational(request, move |_| _ = counted.fetch_add(1, Ordering::Relaxed));
        Self(count)
    }

    pub fn are_too_many(&self) -> bool {
        self.0.load(Ordering::Relaxed) > MOST
    }
}

/// The layer of a connection of which nothing more is read once there were too many. hyper reads them one after the other, as
/// long as there are some to read.
impl<S: AsyncRead + AsyncWrite + Unpin> Layer<S> for Interim {
    fn poll_read(
        &mut self,
        stream: Pin<&mut S>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.are_too_many() {
            true => Poll::Ready(Err(io::Error::other(TOO_MANY))),
            false => stream.poll_read(context, buffer),
        }
    }
}
