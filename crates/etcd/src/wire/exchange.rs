//! The protocol by which a method is called, and who calls it.

use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use futures_util::stream::{self, BoxStream, StreamExt as _};
use prost::Message;
use rowplane_x509::Certificate;
use tonic::body::Body;
use tonic::{Code, Status};

use super::json::Json;

/// The messages of a client, until it has sent all of them.
pub type Requests<Q> = BoxStream<'static, Result<Q, Status>>;
/// The answers to a client. An error is the last one.
pub type Answers<A> = BoxStream<'static, Result<A, Status>>;
pub type Response = http::Response<Body>;

/// A client, as its connection tells of it.
#[derive(Clone, Debug)]
pub struct Peer {
    pub scheme: &'static str,
    /// Its certificate, in DER.
    pub certificate: Option<Arc<[u8]>>,
}

/// A client, as its request tells of it.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    /// The token of Auth.Authenticate.
    pub token: Option<String>,
    /// Its certificate, in DER, whose common name is a user in gRPC only.
    pub certificate: Option<Arc<[u8]>>,
    /// The address by which it calls this server.
    pub authority: Option<String>,
    /// The scheme by which it does.
    pub scheme: &'static str,
}

impl Caller {
    /// The user whom its certificate names.
    pub fn common_name(&self) -> Option<String> {
        let certificate = Certificate::parse(self.certificate.as_deref()?).ok()?;
        Some(certificate.subject_name.common_name().to_owned()).filter(|name| !name.is_empty())
    }
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
