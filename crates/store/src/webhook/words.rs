//! Errors of a call, in the words of Go's `net/http` and of client-go.

use std::error::Error as _;
use std::io;

use bytes::Bytes;

use super::CallError;
use super::link::Response;
use crate::tree::Value;
use crate::x509::alerts;

/// A connection that ended before the answer.
pub fn broken(error: &hyper::Error) -> String {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(alert) = cause.downcast_ref().and_then(alerts::received) {
            return alert;
        }
        match cause.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::UnexpectedEof) => return "EOF".to_owned(),
            Some(io::ErrorKind::ConnectionReset) => return "read: connection reset by peer".to_owned(),
            _ => source = cause.source(),
        }
    }
    if error.is_incomplete_message() { "EOF".to_owned() } else { error.to_string() }
}

/// The body of a success, or what client-go says of any other status.
pub fn judge(Response { status, content_type, body, .. }: Response) -> Result<Bytes, CallError> {
    if (200..=206).contains(&status) {
        if body.is_empty() {
            let why =
                format!("0-length response with status code: {status} and content type: {content_type}");
            return Err(CallError(why));
        }
        return Ok(body);
    }
    let told = serde_json::from_slice::<Value>(&body).ok().filter(|value| value["kind"] == "Status");
    if let Some(message) = told.as_ref().and_then(|value| value["message"].as_str()) {
        return Err(CallError(message.to_owned()));
    }
    let text = String::from_utf8_lossy(&body[..body.len().min(2048)]).trim().to_owned();
    Err(CallError(match status {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => "unknown".to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        415 => "the server was unable to respond with a content type that the client supports".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later".to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request"
            .to_owned(),
        500.. => format!("an error on the server ({text:?}) has prevented the request from succeeding"),
        _ => format!("the server responded with the status code {status} but did not return more information"),
    }))
}
