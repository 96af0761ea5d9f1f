//! A cluster that shares its listener with others.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use futures_util::future::BoxFuture;
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, Span};

use crate::http::response::holding::holding;
use crate::http::server::{Responder, Routes};

/// Answers for a cluster among others: counts its requests, so that it can end without its connections, and names it in the
/// lines of the log.
pub struct Resident {
    pub routes: Routes,
    /// Counts requests that have not been answered completely.
    pub under_way: TaskTracker,
    /// Names the cluster.
    pub span: Span,
}

impl Responder for Resident {
    fn respond(self: Arc<Self>, request: Request) -> BoxFuture<'static, Response> {
        let (responder, under_way) = (self.routes.now(), self.under_way.token());
        let answer = async move {
            let response = responder.respond(request).await;
            response.map(|body| holding(body, under_way))
        };
        Box::pin(answer.instrument(self.span.clone()))
    }
}
