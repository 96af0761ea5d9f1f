//! Tests of `answers::interim`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::Empty;
use hyper::Request;
use hyper_util::rt::TokioIo;
use rowplane_store::answers::client;
use rowplane_store::answers::interim::Interim;
use rowplane_store::layered::Layered;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

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
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
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
