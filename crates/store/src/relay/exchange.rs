//! A request on a connection of its own, and its answer. The connection is driven by whoever waits for the answer or reads it,
//! so that no task runs for it, and ends with the answer's body.

use std::error::Error as StdError;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use crate::answers::client;
use crate::answers::interim::{Interim, TOO_MANY};
use crate::egress::Stream;
use crate::layered::Layered;
use crate::webhook::words;

type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>;

/// An answer whose body is still to be read.
pub type Answer = Response<Answering<Incoming>>;

/// Sends a request. Its path is that of the request line, and nothing is added to its headers.
pub async fn exchange<B>(stream: Stream, mut request: Request<B>) -> Result<Answer, String>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let interim = Interim::of(&mut request);
    let bounded = TokioIo::new(Layered { stream, layer: interim.clone() });
    let shaken = client().handshake(bounded).await;
    let (sender, connection): (SendRequest<B>, _) = shaken.map_err(|error| error.to_string())?;
    let mut driven = Driven(Some(Box::pin(connection.with_upgrades())));
    let mut answer = pin!(send(sender, request));
    let answer = poll_fn(|context| {
        driven.poll(context);
        match interim.are_too_many() {
            true => Poll::Ready(Err(TOO_MANY.to_owned())),
            false => answer.as_mut().poll(context).map_err(|error| words::broken(&error)),
        }
    });
    let answer = answer.await?;
    Ok(answer.map(|body| Answering { body, driven }))
}

async fn send<B: Body + 'static>(
    mut sender: SendRequest<B>,
    request: Request<B>,
) -> hyper::Result<Response<Incoming>> {
    sender.ready().await?;
    sender.send_request(request).await
}

/// A connection; `None` once it has ended.
pub struct Driven(Option<Driver>);

impl Driven {
    fn poll(&mut self, context: &mut Context<'_>) {
        let ended = self.0.as_mut().is_some_and(|driver| driver.as_mut().poll(context).is_ready());
        if ended {
            self.0 = None;
        }
    }

    /// Drives the connection until something has been found out on it.
    pub async fn until<T>(&mut self, what: impl Future<Output = T>) -> T {
        let mut what = pin!(what);
        poll_fn(|context| {
            self.poll(context);
            what.as_mut().poll(context)
        })
        .await
    }
}

/// The body of an answer, which drives its connection.
pub struct Answering<B> {
    body: B,
    driven: Driven,
}

impl<B> Answering<B> {
    pub fn into_parts(self) -> (B, Driven) {
        (self.body, self.driven)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Answering<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.driven.poll(context);
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
