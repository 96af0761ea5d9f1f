//! Messages as frames of a WebSocket, and the replies that stand between them.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use axum::BoxError;
use axum::body::Bytes;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::Stream;
use futures_util::task::AtomicWaker;

use super::frames::{BINARY, GOING_AWAY, NORMAL, PONG, TEXT, frame, goodbye};

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Text,
    Binary,
    /// Base64 in messages of text.
    Base64,
}

impl Form {
    fn frame(self, message: &[u8]) -> Bytes {
        match self {
            Self::Text => frame(TEXT, message),
            Self::Binary => frame(BINARY, message),
            Self::Base64 => frame(TEXT, STANDARD.encode(message).as_bytes()),
        }
    }
}

/// The replies that the server owes to its client between two messages.
#[derive(Default)]
pub struct Replies {
    due: Mutex<Due>,
    waker: AtomicWaker,
}

#[derive(Default)]
struct Due {
    /// The answer to the last ping; earlier ones need none.
    pong: Option<Bytes>,
    end: Option<u16>,
}

impl Replies {
    pub fn pong(&self, payload: &[u8]) {
        self.due().pong = Some(frame(PONG, payload));
        self.waker.wake();
    }

    pub fn end(&self, code: u16) {
        self.due().end.get_or_insert(code);
        self.waker.wake();
    }

    fn due(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The frames of an answer, the last of which says that it ends.
pub struct Messages<S> {
    /// `None` once the last frame was sent.
    source: Option<S>,
    form: Form,
    replies: Arc<Replies>,
}

impl<S> Messages<S> {
    pub fn new(source: S, form: Form, replies: Arc<Replies>) -> Self {
        Self { source: Some(source), form, replies }
    }

    fn end(&mut self, code: u16) -> Poll<Option<Result<Bytes, BoxError>>> {
        self.source = None;
        Poll::Ready(Some(Ok(goodbye(code))))
    }
}

impl<S: Stream<Item = Result<Bytes, BoxError>> + Unpin> Stream for Messages<S> {
    type Item = Result<Bytes, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let form = self.form;
        if self.source.is_none() {
            return Poll::Ready(None);
        }
        self.replies.waker.register(context.waker());
        let due = std::mem::take(&mut *self.replies.due());
        if let Some(code) = due.end {
            return self.end(code);
        }
        if let Some(pong) = due.pong {
            return Poll::Ready(Some(Ok(pong)));
        }
        let Some(source) = &mut self.source else { return Poll::Ready(None) };
        match ready!(Pin::new(source).poll_next(context)) {
            Some(Ok(message)) => Poll::Ready(Some(Ok(form.frame(&message)))),
            // What broke off must not look whole.
            Some(Err(_)) => self.end(GOING_AWAY),
            None => self.end(NORMAL),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _, stream};

    use super::super::frames::PROTOCOL_ERROR;
    use super::*;

    #[test]
    fn base64_is_text() {
        assert_eq!(&Form::Base64.frame(b"a")[..], b"\x81\x04YQ==");
    }

    #[test]
    fn replies_stand_between_messages() {
        let replies = Arc::new(Replies::default());
        let source = stream::iter([Ok(Bytes::from("a")), Ok("b".into())]).chain(stream::pending());
        let mut messages = Messages::new(source, Form::Text, replies.clone());
        let mut next =
            || messages.next().now_or_never().map(|frame| frame.map(|frame| frame.expect("a frame")));
        assert_eq!(next(), Some(Some(Bytes::from_static(&[0x81, 1, b'a']))));
        replies.pong(b"1");
        replies.pong(b"2");
        assert_eq!(next(), Some(Some(Bytes::from_static(&[0x8a, 1, b'2']))));
        assert_eq!(next(), Some(Some(Bytes::from_static(&[0x81, 1, b'b']))));
        assert_eq!(next(), None);
        replies.end(PROTOCOL_ERROR);
        replies.end(NORMAL);
        assert_eq!(next(), Some(Some(Bytes::from_static(&[0x88, 2, 3, 0xea]))));
        assert_eq!(next(), Some(None));
    }
}
