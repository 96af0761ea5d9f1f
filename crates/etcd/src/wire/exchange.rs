//! The protocol by which a method is called, and who calls it.

use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use prost::Message;
use tonic::body::Body;
use tonic::{Code, Status};

use super::json::Json;

/// The messages of a client, until it has sent all of them.
pub type Requests<Q> = BoxStream<'static, Result<Q, Status>>;
/// The answers to a client. An error is the last one.
pub type Answers<A> = BoxStream<'static, Result<A, Status>>;
pub type Response = http::Response<Body>;

/// What is known of a client besides its message.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The token of Auth.Authenticate.
    pub token: Option<String>,
    /// The common name of its certificate, which names a user in gRPC only.
    pub common_name: Option<String>,
    /// The address by which it calls this server.
    pub authority: Option<String>,
}

/// How many messages a method takes and gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Unary,
    Streams,
}

/// A call whose messages have not been read.
pub trait Exchange: Sized + Send + 'static {
    /// Reads messages as they are asked for, and sends what `answer` makes of them.
    fn exchange<Q, A, F>(
        self,
        shape: Shape,
        answer: impl FnOnce(Caller, Requests<Q>) -> F + Send + 'static,
    ) -> BoxFuture<'static, Response>
    where
        Q: Message + Json + Default + 'static,
        A: Message + Json + Default + 'static,
        F: Future<Output = Result<Answers<A>, Status>> + Send + 'static;

    /// One message, one answer.
    fn unary<Q, A, F>(
        self,
        answer: impl FnOnce(Caller, Q) -> F + Send + 'static,
    ) -> BoxFuture<'static, Response>
    where
        Q: Message + Json + Default + 'static,
        A: Message + Json + Default + 'static,
        F: Future<Output = Result<A, Status>> + Send + 'static,
    {
        self.exchange(Shape::Unary, async move |caller, requests| {
            let response = answer(caller, only(requests).await?).await?;
            Ok(stream::once(ready(Ok(response))).boxed())
        })
    }

    /// One message, many answers.
    fn answers<Q, A, F>(
        self,
        answer: impl FnOnce(Caller, Q) -> F + Send + 'static,
    ) -> BoxFuture<'static, Response>
    where
        Q: Message + Json + Default + 'static,
        A: Message + Json + Default + 'static,
        F: Future<Output = Result<Answers<A>, Status>> + Send + 'static,
    {
        self.exchange(Shape::Streams, async move |caller, requests| {
            answer(caller, only(requests).await?).await
        })
    }
}

/// The message of a method that takes one.
async fn only<Q>(mut requests: Requests<Q>) -> Result<Q, Status> {
    requests.next().await.unwrap_or_else(|| Err(Status::new(Code::Internal, "a message is missing")))
}
