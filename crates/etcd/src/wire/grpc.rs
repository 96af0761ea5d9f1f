//! Calls by gRPC.

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::StreamExt as _;
use http_body::Body as HttpBody;
use prost::Message;
use tonic::body::Body;
use tonic::server::{Grpc, StreamingService};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use super::exchange::{Answers, Caller, Exchange, Peer, Requests, Response, Shape};
use super::json::Json;

/// A call by gRPC.
pub struct GrpcCall<B> {
    pub request: http::Request<B>,
    pub peer: Peer,
    /// The longest message that is taken.
    pub longest_message: usize,
}

impl<B> Exchange for GrpcCall<B>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    fn exchange<Q, A, F>(
        self,
        _: Shape,
        answer: impl FnOnce(Caller, Requests<Q>) -> F + Send + 'static,
    ) -> BoxFuture<'static, Response>
    where
        Q: Message + Json + Default + 'static,
        A: Message + Json + Default + 'static,
        F: Future<Output = Result<Answers<A>, Status>> + Send + 'static,
    {
        let Self { request, peer, longest_message } = self;
        let caller = match caller(&request, peer) {
            Ok(caller) => caller,
            Err(refusal) => return async move { refusal.into_http() }.boxed(),
        };
        let method = Method(Some(Box::new(move |requests| answer(caller, requests).boxed())));
        async move {
            let mut grpc =
                Grpc::new(ProstCodec::<A, Q>::default()).max_decoding_message_size(longest_message);
            grpc.streaming(method, request).await
        }
        .boxed()
    }
}

/// The client, by the metadata of its call.
fn caller<B>(request: &http::Request<B>, peer: Peer) -> Result<Caller, Status> {
    let text = |name: &str| request.headers().get(name).map(|value| std::str::from_utf8(value.as_bytes()));
    if let Some(Err(_)) = text("client-api-version") {
        return Err(Status::invalid_argument("etcdserver: invalid client api version"));
    }
    let token = text("token").or_else(|| text("authorization")).and_then(Result::ok);
    let authority = request.uri().authority().map(|authority| authority.as_str().to_owned());
    Ok(Caller { token: token.map(bare), certificate: peer.certificate, authority, scheme: peer.scheme })
}

/// A token without the word before it.
pub fn bare(token: &str) -> String {
    token.strip_prefix("Bearer ").unwrap_or(token).to_owned()
}

type Answering<A> = BoxFuture<'static, Result<Answers<A>, Status>>;

type Answer<Q, A> = Box<dyn FnOnce(Requests<Q>) -> Answering<A> + Send>;

/// A method as tonic calls it, once.
struct Method<Q, A>(Option<Answer<Q, A>>);

impl<Q: Send + 'static, A: Send + 'static> StreamingService<Q> for Method<Q, A> {
    type Response = A;
    type ResponseStream = Answers<A>;
    type Future = BoxFuture<'static, Result<tonic::Response<Answers<A>>, Status>>;

    fn call(&mut self, request: Request<Streaming<Q>>) -> Self::Future {
        let requests = request.into_inner().map(|message| message.map_err(too_long)).boxed();
        match self.0.take() {
            Some(answer) => answer(requests).map(|answers| answers.map(tonic::Response::new)).boxed(),
            None => async { Err(Status::internal("a method is called once")) }.boxed(),
        }
    }
}

/// tonic's refusal of a message that is too long, in the words and with the code of Go's gRPC.
fn too_long(status: Status) -> Status {
    let numbers = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_ascii_digit())
            .filter(|digits| !digits.is_empty())
            .map(str::to_owned)
            .collect()
    };
    if status.code() == Code::OutOfRange
        && status.message().contains("length too large")
        && let [found, limit] = &numbers(status.message())[..]
    {
        let text = format!("grpc: received message larger than max ({found} vs. {limit})");
        return Status::resource_exhausted(text);
    }
    status
}

/// The answer to a call of a method that does not exist.
pub fn unknown_method(path: &str) -> http::Response<Body> {
    let (service, method) = path.trim_start_matches('/').split_once('/').unwrap_or((path, ""));
    Status::unimplemented(format!("unknown method {method} for service {service}")).into_http()
}
