//! A body that can be read more than once, and that nobody reads before somebody wants it.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};

use axum::body::Body;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};

pub struct Repeatable(Arc<Mutex<Source>>);

struct Source {
    body: Body,
    length: SizeHint,
    /// The chunks that have been read.
    read: Vec<Bytes>,
    has_ended: bool,
}

impl Repeatable {
    pub fn new(body: Body) -> Self {
        let length = body.size_hint();
        Self(Arc::new(Mutex::new(Source { body, length, read: Vec::new(), has_ended: false })))
    }

    /// The body from its beginning. One is read at a time.
    pub fn body(&self) -> Body {
        Body::new(Reading { source: self.0.clone(), at: 0 })
    }
}

/// The body as one reader sees it.
struct Reading {
    source: Arc<Mutex<Source>>,
    /// How much of what has been read this reader has seen.
    at: usize,
}

impl Reading {
    fn source(&self) -> MutexGuard<'_, Source> {
        self.source.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl http_body::Body for Reading {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut guard = self.source();
        let source = &mut *guard;
        while self.at == source.read.len() && !source.has_ended {
            match ready!(Pin::new(&mut source.body).poll_frame(context)) {
                Some(Ok(frame)) => source.read.extend(frame.into_data()),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => source.has_ended = true,
            }
        }
        let next = source.read.get(self.at).cloned();
        drop(guard);
        self.at += usize::from(next.is_some());
        Poll::Ready(next.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        let source = self.source();
        self.at == source.read.len() && (source.has_ended || source.body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let source = self.source();
        if self.at == 0 { source.length } else { SizeHint::default() }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn each_reader_gets_all_of_it() {
        let pieces = ["a", "b", "c"].map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece)));
        let body = Repeatable::new(Body::from_stream(futures_util::stream::iter(pieces)));
        let mut first = body.body();
        assert_eq!(
            first.frame().await.expect("a piece").expect("readable").into_data().ok(),
            Some("a".into())
        );
        drop(first);
        for _ in 0..2 {
            assert_eq!(body.body().collect().await.expect("readable").to_bytes(), "abc");
        }
        let body = Repeatable::new(Body::from("abc"));
        assert_eq!(body.body().size_hint().exact(), Some(3));
        assert_eq!(body.body().collect().await.expect("readable").to_bytes(), "abc");
    }
}
