//! Reads bodies: their size and media type. [`crate::api::input::decode`] decodes their content.

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::header_text;
use crate::api::error::Error;
use crate::codec::media_type::MediaType;
use crate::http::response::negotiate::body_type;

/// Reads a body of at most `limit` bytes.
pub async fn read(body: Body, limit: usize) -> Result<Bytes, Error> {
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Error::TooLarge { limit }),
        Err(error) => Err(Error::BadRequest(format!("the request body could not be read: {error}"))),
    }
}

/// The media type of the body.
pub fn media_type(headers: &HeaderMap) -> Result<MediaType, Error> {
    body_type(
        header_text(headers, header::CONTENT_TYPE),
        &[MediaType::Json, MediaType::Yaml, MediaType::Protobuf],
    )
}
