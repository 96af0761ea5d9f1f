//! The protocol of a request: gRPC by its content type, or JSON by its path.

use bytes::Bytes;
use http::header;
use http_body::Body as HttpBody;
use tonic::Status;

use super::exchange::{Peer, Response};
use super::gateway::{self, JsonCall};
use super::grpc::{GrpcCall, unknown_method};
use super::methods;
use super::server::Server;

/// The bytes of a message beyond the longest request: its frame, and other fields.
const OVERHEAD: usize = 512 << 10;

impl Server {
    /// Answers a request by gRPC, or by JSON if its path is one of the gateway. Its body is read while it is answered.
    pub async fn answer<B>(&self, request: http::Request<B>, peer: Peer) -> Response
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    {
        let path = request.uri().path().to_owned();
        let longest_message = self.options().longest_request + OVERHEAD;
        if let Some(method) = gateway::method(&path) {
            if request.method() != http::Method::POST {
                return gateway::failed(&Status::unimplemented("Method Not Allowed"));
            }
            // Base64 is a third longer.
            let call = JsonCall { request, peer, longest_message: longest_message / 3 * 4 };
            return match methods::call(self, &method, call) {
                Ok(answer) => answer.await,
                Err(_) => gateway::failed(&Status::unimplemented("Not Implemented")),
            };
        }
        let call = GrpcCall { request, peer, longest_message };
        match methods::call(self, path.trim_start_matches('/'), call) {
            Ok(answer) => answer.await,
            Err(_) => unknown_method(&path),
        }
    }
}

/// Whether a request is one of etcd's API: by gRPC, or of the gateway.
pub fn is_call<B>(request: &http::Request<B>) -> bool {
    let of_type = request.headers().get(header::CONTENT_TYPE).map(|value| value.as_bytes());
    let is_grpc = of_type.is_some_and(|of_type| of_type.starts_with(b"application/grpc"));
    is_grpc || gateway::method(request.uri().path()).is_some()
}
