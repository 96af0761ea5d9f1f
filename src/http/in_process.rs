//! Requests without a connection: from the program in which the server is embedded, directly to the routes.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::{Body, Bytes};
use axum::http::Request;
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio_util::task::TaskTracker;

use super::response::holding::holding;
use super::server::delivery::Terms;
use super::server::{Routes, panicked};
use crate::user::User;

/// A client of a server in the same process: a [`tower::Service`] that makes its requests as one user.
///
/// Cheap to clone. After the server has stopped, its requests are answered with 503. Paths are those of the API; the
/// host in a request's URI is ignored.
#[derive(Clone)]
pub struct InProcess {
    routes: Routes,
    caller: Caller,
    under_way: TaskTracker,
}

/// The user of an in-process request, stored in the request's extensions.
#[derive(Clone, Debug)]
pub struct Caller(pub Arc<User>);

impl InProcess {
    /// `under_way` counts requests that have not been answered completely.
    pub fn new(routes: Routes, user: User, under_way: TaskTracker) -> Self {
        Self { routes, caller: Caller(Arc::new(user.authenticated())), under_way }
    }
}

impl<B> tower::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.answer(request.map(Body::new))
    }
}

impl InProcess {
    /// Answers a request with a body of one type, so that the routes are compiled in this crate and not again in each program
    /// that calls them.
    fn answer(&self, mut request: Request<Body>) -> BoxFuture<'static, Result<Response, Infallible>> {
        let (responder, under_way) = (self.routes.now(), self.under_way.token());
        request.extensions_mut().insert(self.caller.clone());
        async move {
            let answer = AssertUnwindSafe(responder.respond(request)).catch_unwind().await;
            let Ok(mut response) = answer else { return Ok(panicked()) };
            let terms = response.extensions_mut().remove::<Terms>();
            // It counts as a running request until its body is dropped.
            Ok(response.map(|body| holding(body, (terms, under_way))))
        }
        .boxed()
    }
}
