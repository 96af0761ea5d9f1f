//! The body of a call.

use bytes::Bytes;
use hyper::header::HeaderValue;

/// A body that a hook is sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent<'a> {
    pub body: &'a Bytes,
    /// The trace that the hook takes part in.
    pub traceparent: Option<&'a HeaderValue>,
}

impl<'a> Sent<'a> {
    /// A body outside of traces.
    pub fn of(body: &'a Bytes) -> Self {
        Self { body, traceparent: None }
    }
}
