//! A page that passes through a proxy: its links are led through the proxy, too (upstream's `proxy.Transport`). It is never
//! held whole: what has been looked at goes on.

mod links;

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::BoxError;
use axum::body::Bytes;
use axum::http::header;
use axum::http::{HeaderMap, HeaderValue};
use flate2::Compression;
use flate2::write::{DeflateDecoder, DeflateEncoder, GzEncoder, MultiGzDecoder};
use http_body::{Body, Frame};

use self::links::Links;

pub use self::links::Rewrite;

/// A page on its way.
pub struct Page<B> {
    body: B,
    /// `None` once the page has ended.
    content: Option<Content>,
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
        Self { body, content: Some(content) }
    }
}

impl Content {
    /// Takes a piece of the page. Returns what can go on.
    fn write(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        let done = match self {
            Self::Plain(links) => {
                links.write_all(piece)?;
                links.inner()
            }
            Self::Gzip(decoder) => {
                decoder.write_all(piece)?;
                decoder.get_mut().inner().get_mut()
            }
            Self::Deflate(decoder) => {
                decoder.write_all(piece)?;
                decoder.get_mut().inner().get_mut()
            }
        };
        Ok(std::mem::take(done))
    }

    /// What is left at the end of the page.
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
        loop {
            if self.content.is_none() {
                return Poll::Ready(None);
            }
            let next = ready!(Pin::new(&mut self.body).poll_frame(context));
            let Some(content) = &mut self.content else { return Poll::Ready(None) };
            let done = match next {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(piece) => content.write(&piece),
                    // Trailers are about the page as it was.
                    Err(_) => continue,
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
                None => self.content.take().map_or_else(|| Ok(Vec::new()), Content::finish),
            };
            match done {
                Ok(done) if done.is_empty() => {}
                Ok(done) => return Poll::Ready(Some(Ok(Frame::data(done.into())))),
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
        }
    }
}
