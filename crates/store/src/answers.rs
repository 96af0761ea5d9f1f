//! Answers of HTTP/1.1 as Go's client reads them: of webhooks and issuers, and of what is behind a proxy.

pub mod interim;
pub mod lenient;

use hyper::client::conn::http1;

/// The most headers of an answer.
const MOST_HEADERS: usize = 8192;
/// Bytes of the head of an answer.
const LARGEST_HEAD: usize = 1 << 20;

/// The reader of answers that Go's client reads, too.
pub fn client() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .max_headers(MOST_HEADERS)
        .max_buf_size(LARGEST_HEAD)
        .allow_spaces_after_header_name_in_responses(true)
        .allow_obsolete_multiline_headers_in_responses(true);
    builder
}
