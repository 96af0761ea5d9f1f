//! A page that passes through a proxy: its links are led through the proxy, too (upstream's `proxy.Transport`). It is never
//! held whole: what has been looked at goes on. A small page may unpack to a thousand times its length, so the work is
//! measured by the text, and other requests get the thread in between.

mod links;

use std::io::{self, Write};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use axum::BoxError;
use axum::body::Bytes;
use axum::http::header;
use axum::http::{HeaderMap, HeaderValue};
use bytes::Buf as _;
use flate2::Compression;
use flate2::write::{DeflateDecoder, DeflateEncoder, GzEncoder, MultiGzDecoder};
use http_body::{Body, Frame};

use self::links::Links;

pub use self::links::Rewrite;

/// How many bytes of text are looked at before other requests get the thread: a few milliseconds' work.
const AT_ONCE: usize = 64 << 10;
/// How many bytes are given to the decoder or looked at in one step. flate2 unpacks about as many in one.
const STEP: usize = 32 << 10;
/// The least cost of a step, in bytes of text: a member of gzip may be empty.
const CHEAPEST_STEP: usize = 2 << 10;
/// The longest text that a compressed page may unpack to, in bytes.
const LONGEST_TEXT: u64 = 1 << 30;

/// A page on its way.
pub struct Page<B> {
    body: B,
    /// `None` once the page has ended.
    content: Option<Content>,
    /// The part of the last piece that was not looked at yet.
    rest: Bytes,
    /// The work since other requests had the thread, in bytes of text.
    worked: usize,
}

/// How pages are encoded whose links can be changed.
enum Content {
    Plain(Box<Links<Vec<u8>>>),
    Gzip(Box<MultiGzDecoder<Links<GzEncoder<Vec<u8>>>>>),
    Deflate(Box<DeflateDecoder<Links<DeflateEncoder<Vec<u8>>>>>),
}

/// The encoding of an answer with these headers, if it is a page whose links can be changed.
pub fn encoding_of_page(headers: &HeaderMap) -> Option<Encoding> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    if kind.split(';').next()?.trim() != "text/html" {
        return None;
    }
    match headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes) {
        None | Some(b"") => Some(Encoding::Plain),
        Some(b"gzip") => Some(Encoding::Gzip),
        Some(b"deflate") => Some(Encoding::Deflate),
        Some(_) => None,
    }
}

#[derive(Clone, Copy)]
pub enum Encoding {
    Plain,
    Gzip,
    Deflate,
}

impl<B> Page<B> {
    pub fn new(body: B, encoding: Encoding, rewrite: Rewrite) -> Self {
        let level = Compression::default();
        let content = match encoding {
            Encoding::Plain => Content::Plain(Box::new(Links::new(Vec::new(), rewrite))),
            Encoding::Gzip => {
                let links = Links::new(GzEncoder::new(Vec::new(), level), rewrite);
                Content::Gzip(Box::new(MultiGzDecoder::new(links)))
            }
            Encoding::Deflate => {
                let links = Links::new(DeflateEncoder::new(Vec::new(), level), rewrite);
                Content::Deflate(Box::new(DeflateDecoder::new(links)))
            }
        };
        Self { body, content: Some(content), rest: Bytes::new(), worked: 0 }
    }
}

impl Content {
    /// Takes the beginning of a piece of the page, and tells how much that is.
    fn step(&mut self, piece: &[u8]) -> io::Result<usize> {
        let piece = &piece[..piece.len().min(STEP)];
        let taken = match self {
            Self::Plain(links) => links.write(piece),
            Self::Gzip(decoder) => decoder.write(piece),
            Self::Deflate(decoder) => decoder.write(piece),
        }?;
        match self {
            _ if taken == 0 => Err(io::ErrorKind::WriteZero.into()),
            Self::Gzip(_) | Self::Deflate(_) if self.text() > LONGEST_TEXT => {
                Err(io::Error::other(format!("the page unpacks to more than {LONGEST_TEXT} bytes")))
            }
            _ => Ok(taken),
        }
    }

    /// The length of the text that was looked at, in bytes.
    fn text(&self) -> u64 {
        match self {
            Self::Plain(links) => links.text(),
            Self::Gzip(decoder) => decoder.get_ref().text(),
            Self::Deflate(decoder) => decoder.get_ref().text(),
        }
    }

    /// Takes what can go on.
    fn take(&mut self) -> Vec<u8> {
        std::mem::take(match self {
            Self::Plain(links) => links.inner(),
            Self::Gzip(decoder) => decoder.get_mut().inner().get_mut(),
            Self::Deflate(decoder) => decoder.get_mut().inner().get_mut(),
        })
    }

    /// The rest of the page, once nothing more comes.
    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Plain(links) => links.finish(),
            Self::Gzip(decoder) => decoder.finish()?.finish()?.finish(),
            Self::Deflate(decoder) => decoder.finish()?.finish()?.finish(),
        }
    }
}

impl<B> Body for Page<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { body, content, rest, worked } = &mut *self;
        loop {
            let Some(page) = content else { return Poll::Ready(None) };
            if *worked >= AT_ONCE {
                *worked = 0;
                // Wakes the task when the thread has run what was ready and has asked the system. A task that only wakes itself
                // would have its turn sixty times before the system is asked for new requests.
                let _ = pin!(tokio::task::yield_now()).poll(context);
                return Poll::Pending;
            }
            let done = if rest.is_empty() {
                match ready!(Pin::new(&mut *body).poll_frame(context)) {
                    Some(Ok(frame)) => {
                        // Trailers are about the page as it was.
                        *rest = frame.into_data().unwrap_or_default();
                        continue;
                    }
                    Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                    None => content.take().map_or_else(|| Ok(Vec::new()), Content::finish),
                }
            } else {
                let before = page.text();
                page.step(rest).map(|taken| {
                    rest.advance(taken);
                    *worked += CHEAPEST_STEP.max((page.text() - before) as usize);
                    let goes_on = !rest.is_empty() && *worked < AT_ONCE;
                    if goes_on { Vec::new() } else { page.take() }
                })
            };
            match done {
                Ok(done) if done.is_empty() => {}
                Ok(done) => return Poll::Ready(Some(Ok(Frame::data(done.into())))),
                Err(error) => {
                    *content = None;
                    return Poll::Ready(Some(Err(error.into())));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Waker;

    use flate2::read::GzDecoder;
    use http_body_util::Full;

    use super::*;

    const TAG: &str = "<a href=/x>";

    /// Passes a page in one piece on. Returns what comes, and how many links each poll has looked at.
    fn pass(page: &[u8], encoding: Encoding) -> (Vec<u8>, Vec<usize>) {
        let links = Arc::new(AtomicUsize::new(0));
        let counted = links.clone();
        let rewrite: Rewrite = Box::new(move |link| {
            counted.fetch_add(1, Ordering::Relaxed);
            link.to_owned()
        });
        let mut page = Page::new(Full::new(Bytes::copy_from_slice(page)), encoding, rewrite);
        let context = &mut Context::from_waker(Waker::noop());
        let (mut passed, mut polls) = (Vec::new(), Vec::new());
        loop {
            let polled = Pin::new(&mut page).poll_frame(context);
            polls.push(links.swap(0, Ordering::Relaxed));
            match polled {
                Poll::Pending => {}
                Poll::Ready(Some(frame)) => {
                    passed.extend_from_slice(&frame.expect("a piece").into_data().expect("data"));
                }
                Poll::Ready(None) => return (passed, polls),
            }
        }
    }

    /// Also if it comes in a single piece, which is a thousand times shorter.
    #[test]
    fn a_long_page_lets_other_requests_run() {
        let text = TAG.repeat((4 << 20) / TAG.len());
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(text.as_bytes()).expect("memory");
        let packed = packed.finish().expect("memory");
        assert!(packed.len() < 64 << 10);
        for (page, encoding) in [(text.as_bytes(), Encoding::Plain), (&packed, Encoding::Gzip)] {
            let (passed, polls) = pass(page, encoding);
            let most = (AT_ONCE + STEP) / TAG.len() + 1;
            assert!(polls.iter().all(|links| *links <= most), "{polls:?}");
            assert_eq!(polls.iter().sum::<usize>(), text.len() / TAG.len());
            let unpacked = match encoding {
                Encoding::Gzip => io::read_to_string(GzDecoder::new(&passed[..])).expect("gzip"),
                _ => String::from_utf8(passed).expect("text"),
            };
            assert!(unpacked == text);
        }
    }

    /// Each of them costs the memory of a new decoder.
    #[test]
    fn a_page_of_empty_members_lets_other_requests_run() {
        let empty = GzEncoder::new(Vec::new(), Compression::best()).finish().expect("memory");
        let (_, polls) = pass(&empty.repeat(1000), Encoding::Gzip);
        assert!(polls.len() > 1000 * CHEAPEST_STEP / AT_ONCE, "{}", polls.len());
    }
}
