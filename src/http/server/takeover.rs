//! Takeovers of connections, by answers that give them away (101): the bytes belong to somebody else then, but a connection
//! still counts as one with a request, and ends when it is dropped.

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use futures_util::future::{BoxFuture, poll_fn};

use super::connection_state::{Connection, Stage};
use super::requests::Requests;

/// The work to be done with the connection once the answer is sent: a part of the answer's extensions. Clones share it.
#[derive(Clone)]
pub struct Takeover(Arc<Mutex<Option<Work>>>);

/// The work, which gets the answer's body with all that others have wrapped around it.
type Work = Box<dyn FnOnce(Body) -> BoxFuture<'static, ()> + Send>;

/// The place for the work that is to be done with a connection, if there is any.
pub type Slot = Arc<Mutex<Option<BoxFuture<'static, ()>>>>;

impl Takeover {
    /// Work that knows nothing of the body, which ends when the work does.
    pub fn new(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self::sending(|body| async move {
            work.await;
            drop(body);
        })
    }

    /// Work that sends the body.
    pub fn sending<F>(work: impl FnOnce(Body) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self(Arc::new(Mutex::new(Some(Box::new(|body| Box::pin(work(body)))))))
    }

    /// The answer that gives its connection away (101), with these headers.
    pub fn response(self, headers: HeaderMap, body: Body) -> Response {
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *response.headers_mut() = headers;
        response.extensions_mut().insert(self);
        response
    }
}

/// Notes what an answer wants to be done with its connection. The answer's body ends when that does, so that whoever watches
/// its end sees when the request is over.
pub fn note(mut response: Response, request: Arc<Requests>, slot: &Slot) -> Response {
    let Some(Takeover(work)) = response.extensions_mut().remove() else { return response };
    let Some(work) = take(&work) else { return response };
    let (head, body) = response.into_parts();
    // The connection counts its requests by references but one, which is its service's. That is gone by then.
    let counted = (request.clone(), request);
    let whole = async move {
        work(body).await;
        drop(counted);
    };
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::pin(whole));
    Response::from_parts(head, Body::empty())
}

/// Does the work that was noted, until it ends, or the connection is dropped or stopped.
pub async fn run(slot: &Slot, connection: &Connection) {
    let Some(work) = take(slot) else { return };
    let mut work = pin!(work);
    let mut stage = Stage::Serving;
    poll_fn(|context| {
        while let Poll::Ready(next) = connection.poll_stage(context, stage) {
            stage = next;
            match stage {
                Stage::Leaving => connection.draining.cancel(),
                Stage::Dropped => return Poll::Ready(()),
                Stage::Serving | Stage::Going => {}
            }
        }
        if connection.is_stopped() { Poll::Ready(()) } else { work.as_mut().poll(context) }
    })
    .await;
}

fn take<T>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner).take()
}
