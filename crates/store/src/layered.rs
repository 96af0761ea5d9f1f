//! Streams with a layer, which steps in where it has something to do and leaves the other calls to the stream.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The part of a [`Layered`] stream that steps in. By default, everything is the stream's.
pub trait Layer<S: AsyncRead + AsyncWrite + Unpin> {
    fn poll_read(
        &mut self,
        stream: Pin<&mut S>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        stream.poll_read(context, buffer)
    }

    fn poll_shutdown(&mut self, stream: Pin<&mut S>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        stream.poll_shutdown(context)
    }
}

/// A stream, read and written through a layer.
pub struct Layered<S, L> {
    pub stream: S,
    pub layer: L,
}

impl<S: AsyncRead + AsyncWrite + Unpin, L: Layer<S> + Unpin> AsyncRead for Layered<S, L> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, layer } = self.get_mut();
        layer.poll_read(Pin::new(stream), context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin, L: Layer<S> + Unpin> AsyncWrite for Layered<S, L> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, layer } = self.get_mut();
        layer.poll_shutdown(Pin::new(stream), context)
    }
}
