//! Refusals of heads: answers to what leads to no request.

use axum::http::StatusCode;

/// An answer to a head that leads to no request. The connection ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    /// The body of the answer behind its status.
    pub text: &'static str,
}

const fn refusal(status: StatusCode, text: &'static str) -> Refusal {
    Refusal { status, text }
}

pub const fn bad(text: &'static str) -> Refusal {
    refusal(StatusCode::BAD_REQUEST, text)
}

pub const TOO_LARGE: Refusal =
    refusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the head of a request is limited to 1 MiB");

pub const TOO_MANY: Refusal =
    refusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "no more than 24,000 names of headers can be read");

pub const UNFINISHED: Refusal = bad("the head of the request ends too early");

pub const LONG_NAME: Refusal =
    refusal(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the name of a header is limited to 65,535 bytes");

pub const LONG_PATH: Refusal =
    refusal(StatusCode::URI_TOO_LONG, "the path of a request is limited to 65,534 bytes");

pub const INVALID_NAME: Refusal = bad("invalid header name");
pub const ENCODING: Refusal = refusal(StatusCode::NOT_IMPLEMENTED, "Unsupported transfer encoding");
pub const VERSION: Refusal = refusal(StatusCode::HTTP_VERSION_NOT_SUPPORTED, "unsupported protocol version");
pub const EXPECTATION: Refusal = refusal(StatusCode::EXPECTATION_FAILED, "only 100-continue can be expected");
