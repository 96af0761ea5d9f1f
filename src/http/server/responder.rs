//! The answers to requests of all connections, which change while a server lives.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::extract::Request;
use axum::response::Response;
use futures_util::future::{BoxFuture, FutureExt as _};
use tower::ServiceExt as _;

/// Answers requests.
pub trait Responder: Send + Sync + 'static {
    fn respond(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response>;
}

impl Responder for Router {
    fn respond(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response> {
        let answered = Router::clone(&self).oneshot(request);
        answered.map(|Ok(response)| response).boxed()
    }
}

/// The current responder. It changes over time, also for connections that are open already: first the routes of a
/// starting server, then those of the application, and at last those of a stopped server. Clones share it.
#[derive(Clone)]
pub struct Routes(Arc<ArcSwap<Arc<dyn Responder>>>);

impl Routes {
    pub fn new(starting: impl Responder) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Arc::new(starting))))
    }

    /// Lets the application answer requests from now on.
    pub fn open(&self, started: Arc<dyn Responder>) {
        self.0.store(Arc::new(started));
    }

    /// Lets `stopped` answer requests from now on, and holds nothing of the application any more.
    pub fn close(&self, stopped: impl Responder) {
        self.0.store(Arc::new(Arc::new(stopped)));
    }

    /// The present responder.
    pub fn now(&self) -> Arc<dyn Responder> {
        Arc::clone(&self.0.load())
    }
}

impl Responder for Routes {
    fn respond(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response> {
        self.now().respond(request)
    }
}
