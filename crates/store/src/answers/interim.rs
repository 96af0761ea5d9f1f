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

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::super::client;
    use super::*;
    use crate::layered::Layered;
    use bytes::Bytes;
    use http_body_util::Empty;
    use hyper_util::rt::TokioIo;

    const EARLY: &[u8] = b"HTTP/1.1 103 E\r\n\r\n";

    /// A peer of which there is always something to read once it was asked, and nothing else for 64 MB.
    struct Talkative {
        read: Arc<AtomicU32>,
        is_asked: bool,
        reader: Option<Waker>,
    }

    impl AsyncRead for Talkative {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if !self.is_asked {
                self.reader = Some(context.waker().clone());
                return Poll::Pending;
            }
            while self.read.load(Ordering::Relaxed) < 64_000_000 && buffer.remaining() >= EARLY.len() {
                buffer.put_slice(EARLY);
                self.read.fetch_add(EARLY.len() as u32, Ordering::Relaxed);
            }
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Talkative {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.is_asked = true;
            self.reader.take().into_iter().for_each(Waker::wake);
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn little_is_read_of_a_peer_that_sends_nothing_else() {
        let read = Arc::<AtomicU32>::default();
        let mut request = Request::new(Empty::<Bytes>::new());
        let interim = Interim::of(&mut request);
        let peer = Talkative { read: read.clone(), is_asked: false, reader: None };
        let bounded = TokioIo::new(Layered { stream: peer, layer: interim.clone() });
        let (mut sender, connection) = client().handshake(bounded).await.expect("a connection");
        let (answer, _) = tokio::join!(sender.send_request(request), connection);
        assert!(answer.is_err() && interim.are_too_many());
        let read = read.load(Ordering::Relaxed);
        assert!(read < 1 << 20, "{read} bytes were read");
    }
}
