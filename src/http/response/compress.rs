//! gzip for large answers, by upstream's rule (apiserver `deferredResponseWriter`): the client accepts gzip and the
//! body has more than 128 KiB. Lists are compressed while they are streamed. Of watches, only those that start with a
//! list are compressed.

use std::io::{self, Write};

use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{StreamExt, stream};
use http_body::Body as _;

/// The largest body that is not compressed.
const THRESHOLD: u64 = 128 << 10;

/// How many bytes are compressed before other requests get the thread: about a millisecond's work.
const AT_ONCE: usize = 128 << 10;

/// Compresses the body of an answer to a request with these headers, if the body is large enough. A body of unknown
/// length counts as large: lists are streamed only if their first chunk exceeds the threshold.
pub fn compress(request: &HeaderMap, mut response: Response) -> Response {
    let large = response.body().size_hint().exact().is_none_or(|length| length > THRESHOLD);
    if !large || !names_gzip(request) || response.headers().contains_key(header::CONTENT_ENCODING) {
        return response;
    }
    let body = std::mem::take(response.body_mut());
    *response.body_mut() = gzip(body);
    mark(&mut response);
    response
}

/// Compresses the stream of a watch, whatever its size. Each chunk becomes a gzip member of its own, so that no data is
/// held back while the watch waits (KEP-3157, feature gate `WatchListCompression`).
pub fn compress_stream(request: &HeaderMap, mut response: Response) -> Response {
    if !names_gzip(request) {
        return response;
    }
    let body = std::mem::take(response.body_mut());
    let members = body.into_data_stream().then(async |chunk| member(&chunk.map_err(io::Error::other)?).await);
    *response.body_mut() = Body::from_stream(members);
    mark(&mut response);
    response
}

async fn member(chunk: &[u8]) -> io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(chunk.len() / 4), Compression::fast());
    for (at, piece) in chunk.chunks(AT_ONCE).enumerate() {
        if at > 0 {
            tokio::task::yield_now().await;
        }
        encoder.write_all(piece)?;
    }
    // Go's reader returns the data of a member's last block only when it has seen the start of the next member.
    encoder.flush()?;
    encoder.finish().map(Bytes::from)
}

fn mark(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    headers.remove(header::CONTENT_LENGTH);
}

/// Whether the header contains the bare word `gzip`. Upstream understands neither `*` nor weights.
fn names_gzip(request: &HeaderMap) -> bool {
    let accepted = request.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.unwrap_or_default().split(',').any(|element| element.trim() == "gzip")
}

fn gzip(body: Body) -> Body {
    let encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let packing = Packing { body: body.into_data_stream(), rest: Bytes::new(), encoder };
    Body::from_stream(stream::unfold(Some(packing), step))
}

/// A body that is being compressed.
struct Packing {
    body: BodyDataStream,
    /// The rest of the last chunk.
    rest: Bytes,
    encoder: GzEncoder<Vec<u8>>,
}

impl Packing {
    /// Compresses the next piece. Returns false after the last one.
    async fn pack(&mut self) -> io::Result<bool> {
        if self.rest.is_empty() {
            match self.body.next().await {
                Some(chunk) => self.rest = chunk.map_err(io::Error::other)?,
                None => return Ok(false),
            }
        } else {
            tokio::task::yield_now().await;
        }
        let piece = self.rest.split_to(self.rest.len().min(AT_ONCE));
        self.encoder.write_all(&piece)?;
        Ok(true)
    }
}

/// Reads until there are compressed bytes to send; `None` after the end of the member.
async fn step(state: Option<Packing>) -> Option<(io::Result<Bytes>, Option<Packing>)> {
    let mut packing = state?;
    loop {
        match packing.pack().await {
            Err(error) => return Some((Err(error), None)),
            Ok(false) => return Some((packing.encoder.finish().map(Bytes::from), None)),
            Ok(true) if packing.encoder.get_ref().is_empty() => tokio::task::yield_now().await,
            Ok(true) => {
                let packed = std::mem::take(packing.encoder.get_mut());
                return Some((Ok(packed.into()), Some(packing)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::MultiGzDecoder;
    use http_body_util::BodyExt;

    use super::*;

    fn answer(length: usize, accept: &'static str) -> Response {
        let mut request = HeaderMap::new();
        request.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(accept));
        compress(&request, Response::new(Body::from(vec![b'x'; length])))
    }

    /// Assertion 62 of `docs/spec/wire.md`.
    #[tokio::test]
    async fn wire_62_more_than_128_kib_are_compressed_for_who_says_gzip() {
        let plain = [(131_072, "gzip"), (131_073, "gzip;q=1.0"), (131_073, "*"), (131_073, "deflate")];
        for (length, accept) in plain {
            let response = answer(length, accept);
            assert_eq!(response.headers().get(header::CONTENT_ENCODING), None, "{length} {accept}");
            assert_eq!(response.body().size_hint().exact(), Some(length as u64));
        }
        let response = answer(131_073, "br, gzip");
        assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
        assert_eq!(response.headers()[header::VARY], "Accept-Encoding");
        let packed = response.into_body().collect().await.expect("a body").to_bytes();
        let mut body = Vec::new();
        MultiGzDecoder::new(&packed[..]).read_to_end(&mut body).expect("gzip");
        assert_eq!(body, vec![b'x'; 131_073]);
    }

    #[tokio::test]
    async fn a_chunk_of_a_watch_can_be_read_before_its_member_ends() {
        const END: usize = 2 + 8;
        let member = member(b"an event").await.expect("packed");
        let mut events = [0; 8];
        MultiGzDecoder::new(&member[..member.len() - END]).read_exact(&mut events).expect("all of it");
        assert_eq!(&events, b"an event");
    }

    /// Other tasks run after each piece, however long the body is.
    #[tokio::test]
    async fn compressing_gives_way() {
        const PIECES: usize = 64;
        let mut request = HeaderMap::new();
        request.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let whole = || Response::new(Body::from(vec![b'x'; PIECES * AT_ONCE]));
        for response in [compress(&request, whole()), compress_stream(&request, whole())] {
            let mut body = Box::pin(response.into_body().collect());
            let mut waits = 0;
            while futures_util::FutureExt::now_or_never(body.as_mut()).is_none() {
                waits += 1;
            }
            assert!(waits >= PIECES - 1, "{waits}");
        }
    }

    #[tokio::test]
    async fn a_body_that_breaks_off_is_not_finished() {
        let chunks = [Ok(Bytes::from(vec![b'x'; 200_000])), Err(io::Error::other("gone"))];
        let mut request = HeaderMap::new();
        request.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let response = compress(&request, Response::new(Body::from_stream(stream::iter(chunks))));
        assert_eq!(response.headers()[header::CONTENT_ENCODING], "gzip");
        assert!(response.into_body().collect().await.is_err());
    }
}
