//! Messages in a body of JSON: one, or one after the other.

use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{self, StreamExt as _};
use http_body::Body as HttpBody;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tonic::Status;

use crate::wire::exchange::{Requests, Shape};
use crate::wire::json::{Invalid, Json, Object};

/// A body of which a part has been read.
struct Reader<B> {
    body: Pin<Box<B>>,
    read: BytesMut,
    has_ended: bool,
    shape: Shape,
    longest_message: usize,
}

/// The messages of a body. An error is the last one.
pub fn messages<B, Q>(body: B, shape: Shape, longest_message: usize) -> Requests<Q>
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
    Q: Json + Send + 'static,
{
    let reader =
        Reader { body: Box::pin(body), read: BytesMut::new(), has_ended: false, shape, longest_message };
    stream::unfold(Some(reader), async |reader| {
        let mut reader = reader?;
        match reader.next().await.transpose()? {
            Ok(value) => Some((parse(&value), Some(reader))),
            Err(status) => Some((Err(status), None)),
        }
    })
    .boxed()
}

fn parse<Q: Json>(value: &Value) -> Result<Q, Status> {
    let refused = |why: Invalid| Status::invalid_argument(why.to_string());
    let object = value.as_object().ok_or_else(|| Status::invalid_argument("the message is no object"))?;
    Q::read(object).map_err(refused)
}

impl<B> Reader<B>
where
    B: HttpBody<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    async fn next(&mut self) -> Result<Option<Value>, Status> {
        loop {
            // A number at the end of what was read may go on, and is refused later in any case.
            if self.shape == Shape::Streams || self.has_ended {
                let mut values = serde_json::Deserializer::from_slice(&self.read).into_iter::<Value>();
                match values.next() {
                    Some(Ok(value)) => {
                        let length = values.byte_offset();
                        let _ = self.read.split_to(length);
                        return Ok(Some(value));
                    }
                    Some(Err(error)) if !error.is_eof() || self.has_ended => {
                        return Err(Status::invalid_argument(format!("the body is no JSON: {error}")));
                    }
                    // A unary call without a body has an empty message.
                    None if self.has_ended && self.shape == Shape::Unary => {
                        return Ok(Some(Object::new().into()));
                    }
                    None if self.has_ended => return Ok(None),
                    Some(Err(_)) | None => {}
                }
            }
            match self.body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
                Some(Err(error)) => return Err(Status::cancelled(error.into().to_string())),
                None => self.has_ended = true,
            }
            if self.read.len() > self.longest_message {
                let (found, most) = (self.read.len(), self.longest_message);
                return Err(Status::resource_exhausted(format!(
                    "grpc: received message larger than max ({found} vs. {most})"
                )));
            }
        }
    }
}
