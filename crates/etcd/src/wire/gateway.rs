//! Calls by HTTP/1.1 with JSON, as etcd's gateway takes them.

mod body;
mod paths;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream::{self, StreamExt as _};
use http::{HeaderValue, StatusCode, header};
use http_body::{Body as HttpBody, Frame};
use http_body_util::StreamBody;
use prost::Message;
use serde_json::{Value, json};
use tonic::body::Body;
use tonic::{Code, Status};

use super::exchange::{Answers, Caller, Exchange, Peer, Requests, Response, Shape};
use super::grpc::bare;
use super::json::{Item, Json};

pub use self::paths::method;

/// A call by JSON.
pub struct JsonCall<B> {
    pub request: http::Request<B>,
    pub peer: Peer,
    /// The longest message that is taken, in bytes of JSON.
    pub longest_message: usize,
}

impl<B> Exchange for JsonCall<B>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    fn exchange<Q, A, F>(
        self,
        shape: Shape,
        answer: impl FnOnce(Caller, Requests<Q>) -> F + Send + 'static,
    ) -> BoxFuture<'static, Response>
    where
        Q: Message + Json + Default + 'static,
        A: Message + Json + Default + 'static,
        F: Future<Output = Result<Answers<A>, Status>> + Send + 'static,
    {
        let Self { request, peer, longest_message } = self;
        let headers = request.headers();
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let caller = Caller {
            token: text(header::AUTHORIZATION).map(bare),
            // Certificates are no users here.
            certificate: None,
            authority: text(header::HOST).map(str::to_owned),
            scheme: peer.scheme,
        };
        let mut requests = body::messages(request.into_body(), shape, longest_message);
        async move {
            if shape == Shape::Streams {
                match requests.next().await {
                    Some(Err(status)) => return failed(&status),
                    first => requests = stream::iter(first).chain(requests).boxed(),
                }
            }
            match (shape, answer(caller, requests).await) {
                (_, Err(status)) => failed(&status),
                (Shape::Unary, Ok(mut answers)) => match answers.next().await {
                    Some(Ok(message)) => respond(StatusCode::OK, whole(message.to_value(&[]).to_string())),
                    Some(Err(status)) => failed(&status),
                    None => failed(&Status::internal("there is no answer")),
                },
                (Shape::Streams, Ok(answers)) => respond(StatusCode::OK, lines(answers)),
            }
        }
        .boxed()
    }
}

/// A line for each answer, the last one perhaps with an error.
fn lines<A: Json + 'static>(answers: Answers<A>) -> Body {
    let lines = answers.map(|answer| {
        let value = match answer {
            Ok(message) => json!({"result": message.to_value(&[])}),
            Err(status) => json!({"error": error(&status)}),
        };
        Ok::<_, Status>(Frame::data(Bytes::from(format!("{value}\n"))))
    });
    Body::new(StreamBody::new(lines))
}

fn whole(text: String) -> Body {
    let frame = Ok::<_, Status>(Frame::data(Bytes::from(text)));
    Body::new(StreamBody::new(stream::iter([frame])))
}

fn respond(code: StatusCode, body: Body) -> Response {
    let mut response = http::Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The answer of a call that failed before anything was sent.
pub fn failed(status: &Status) -> Response {
    respond(http_status(status.code()), whole(error(status).to_string()))
}

/// An error; clients of before 3.6 read its text from another field.
fn error(status: &Status) -> Value {
    let text = status.message();
    json!({"code": status.code() as i32, "message": text, "details": [], "error": text})
}

fn http_status(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        // Nginx' code of a request that its client has given up.
        Code::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
