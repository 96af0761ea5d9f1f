//! The tasks of HTTP/2 streams, each of which can be stopped without ending its connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::rt::Executor;
use pin_project_lite::pin_project;

use super::connection_state::Connection;
use super::turns::Turn;

/// Spawns the streams of one connection.
#[derive(Clone)]
pub struct Streams(Arc<Connection>);

impl Streams {
    pub fn of(connection: Arc<Connection>) -> Self {
        Self(connection)
    }
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        tokio::spawn(Stream { connection: self.0.clone(), turn: Turn::default(), future });
    }
}

pin_project! {
    /// If dropped before it ends, the stream is reset.
    struct Stream<F> {
        connection: Arc<Connection>,
        turn: Turn,
        #[pin]
        future: F,
    }
}

impl<F: Future> Future for Stream<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.connection.is_stopped() {
            return Poll::Ready(None);
        }
        this.connection.poll_in_turn(this.turn, context, |context| this.future.poll(context).map(Some))
    }
}
