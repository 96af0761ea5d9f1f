//! Answers as Go's client reads them: of webhooks and issuers, and of what is behind a proxy.

pub mod interim;
pub mod lenient;

use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// The most headers of an answer.
const MOST_HEADERS: usize = 8192;
/// Bytes of the head of an answer.
const LARGEST_HEAD: usize = 1 << 20;

/// The silence after which a connection of HTTP/2 is pinged, and the time of its answer, as client-go has them.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// The client of HTTP/1.1.
pub fn client() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .max_headers(MOST_HEADERS)
        .max_buf_size(LARGEST_HEAD)
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true);
    builder
}

/// The client of HTTP/2, which pings a silent connection.
pub fn client_http2() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_header_list_size(LARGEST_HEAD as u32);
    builder
}
