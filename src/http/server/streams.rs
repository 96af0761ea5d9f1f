//! The tasks of HTTP/2 streams, each of which can be stopped without ending its connection.
//!
//! A request for one object usually is answered without any wait, in less time than it takes to give it to another thread
//! and to get the answer back (measured: on two processors, 45,000 became 71,000 a second). So the connection polls
//! the streams of such requests itself, a few each time that it is polled, and only those that wait get tasks of their own.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use axum::http::{Method, Request};
use hyper::rt::Executor;
use pin_project_lite::pin_project;

use super::connection_state::Connection;
use super::turns::Turn;

/// How many requests a connection answers itself in one poll. With more of them at once there is work for other threads.
const AT_ONCE: u32 = 16;

/// Runs the streams of one connection.
#[derive(Clone)]
pub struct Streams {
    connection: Arc<Connection>,
    next: Arc<Next>,
}

/// The stream that is run next, as far as it is known. Only the connection's task uses it.
#[derive(Default)]
struct Next {
    is_short: AtomicBool,
    /// How many streams may still be polled at once.
    left: AtomicU32,
}

impl Streams {
    /// Must be called on the connection's task.
    pub fn of(connection: Arc<Connection>) -> Self {
        tokio::task::try_id().into_iter().for_each(|task| connection.set_task_of_streams(task));
        Self { connection, next: Arc::default() }
    }

    /// The connection is going to be polled.
    pub fn begin(&self) {
        let left = if self.connection.stands_back() { 0 } else { AT_ONCE };
        self.next.left.store(left, Ordering::Relaxed);
    }

    /// The next stream is that of this request.
    pub fn announce<B>(&self, request: &Request<B>) {
        let is_short = request.method() == Method::GET && names_object(request.uri().path());
        self.next.is_short.store(is_short, Ordering::Relaxed);
    }

    fn polls_next(&self) -> bool {
        let Next { is_short, left } = &*self.next;
        let polls = is_short.swap(false, Ordering::Relaxed) && left.load(Ordering::Relaxed) > 0;
        if polls {
            left.fetch_sub(1, Ordering::Relaxed);
        }
        polls
    }
}

/// Whether a path looks like that of an object, and of no part of it.
fn names_object(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    let version = match parts.next() {
        Some("api") => parts.next(),
        Some("apis") => parts.nth(1),
        _ => None,
    };
    let (Some(_), Some(first)) = (version, parts.next()) else { return false };
    match parts.count() {
        1 => !matches!(first, "watch" | "proxy"),
        3 => first == "namespaces",
        _ => false,
    }
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        let connection = self.connection.clone();
        let stream = Stream { connection, turn: Turn::default(), future };
        if !self.polls_next() {
            self.connection.note_stream();
            tokio::spawn(stream);
            return;
        }
        let mut stream = Box::pin(stream);
        // The time of this poll counts as the connection's. Whatever the future waits for meets the task's waker below.
        let polled = stream.as_mut().project().future.poll(&mut Context::from_waker(Waker::noop()));
        if polled.is_pending() {
            self.connection.note_stream();
            tokio::spawn(stream);
        }
    }
}

pin_project! {
    /// The task of a stream. If it is dropped before it ends, the stream is reset.
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
        this.connection.note_stream();
        this.connection.poll_in_turn(this.turn, context, |context| this.future.poll(context).map(Some))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::sync::oneshot;

    use super::super::turns::Turns;
    use super::*;

    fn get() -> Request<()> {
        Request::get("/api/v1/nodes/n").body(()).expect("a request")
    }

    /// Runs the stream of a request that ends at its second poll. Answers whether it was polled at once, and the task that
    /// has ended it.
    async fn run(streams: &Streams, request: Request<()>) -> (bool, Option<tokio::task::Id>) {
        let (answer, end) = oneshot::channel();
        let mut answer = Some(answer);
        let mut polls = 0;
        let (tell, mut told) = oneshot::channel();
        let mut tell = Some(tell);
        streams.announce(&request);
        streams.execute(poll_fn(move |context| {
            polls += 1;
            if let Some(tell) = tell.take() {
                let _ = tell.send(());
            }
            if polls == 1 {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if let Some(answer) = answer.take() {
                let _ = answer.send(tokio::task::try_id());
            }
            Poll::Ready(())
        }));
        let was_polled = told.try_recv().is_ok();
        (was_polled, end.await.expect("it ends"))
    }

    #[tokio::test]
    async fn a_short_request_is_polled_at_once_and_gets_a_task_if_it_waits() {
        let connection = Connection::accepted_at(1, Arc::new(Turns::new(Default::default())), Arc::default());
        let streams = Streams::of(Arc::new(connection));
        let is_own_task = |id| id != tokio::task::try_id();
        let (was_polled, ended) = run(&streams, get()).await;
        assert!(!was_polled && is_own_task(ended), "the connection is not being polled");
        streams.begin();
        let (was_polled, ended) = run(&streams, get()).await;
        assert!(was_polled && is_own_task(ended));
        let create = Request::post("/api/v1/nodes/n").body(()).expect("a request");
        assert!(!run(&streams, create).await.0);
        for _ in 1..AT_ONCE {
            assert!(run(&streams, get()).await.0);
        }
        assert!(!run(&streams, get()).await.0, "the others are for other threads");
        streams.begin();
        assert!(run(&streams, get()).await.0);
    }

    #[test]
    fn requests_for_one_object_are_short() {
        for path in [
            "/api/v1/nodes/n",
            "/api/v1/namespaces/n",
            "/api/v1/namespaces/n/pods/p",
            "/apis/apps/v1/namespaces/n/deployments/d",
            "/apis/example.com/v1/widgets/w",
        ] {
            assert!(names_object(path), "{path}");
        }
        for path in [
            "",
            "/",
            "/api/v1",
            "/api/v1/pods",
            "/apis/apps/v1",
            "/apis/apps/v1/deployments",
            "/api/v1/namespaces/n/pods",
            "/api/v1/namespaces/n/pods/p/log",
            "/api/v1/nodes/n/proxy/x",
            "/api/v1/watch/pods",
            "/openapi/v2/a/b",
        ] {
            assert!(!names_object(path), "{path}");
        }
    }
}
