//! Passes plaintext on in small slices, since rustls copies each slice behind the header of a record, so to an odd
//! address (see [`pieces`](crate::pieces)).

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::pieces::PIECE;

/// The most slices of a write: enough for four full records, which rustls accepts at a time, and for the bytes around them.
const MOST: usize = (64 << 10) / PIECE + 4;

/// A stream that writes in slices. Bytes that do not fit are left to the next write.
pub struct Sliced<S>(pub S);

/// The part of the buffers that fits, in slices.
struct Slices<'b> {
    slices: [IoSlice<'b>; MOST],
    used: usize,
}

impl<'b> Slices<'b> {
    fn of(buffers: impl Iterator<Item = &'b [u8]>) -> Self {
        let mut slices = Self { slices: [IoSlice::new(&[]); MOST], used: 0 };
        let pieces = buffers.flat_map(|buffer| buffer.chunks(PIECE));
        for (slot, piece) in slices.slices.iter_mut().zip(pieces) {
            *slot = IoSlice::new(piece);
            slices.used += 1;
        }
        slices
    }

    fn get(&self) -> &[IoSlice<'b>] {
        &self.slices[..self.used]
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Sliced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.len() <= PIECE {
            return Pin::new(&mut self.0).poll_write(context, bytes);
        }
        let slices = Slices::of(std::iter::once(bytes));
        Pin::new(&mut self.0).poll_write_vectored(context, slices.get())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if buffers.iter().all(|buffer| buffer.len() <= PIECE) {
            return Pin::new(&mut self.0).poll_write_vectored(context, buffers);
        }
        let slices = Slices::of(buffers.iter().map(|buffer| &**buffer));
        Pin::new(&mut self.0).poll_write_vectored(context, slices.get())
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Sliced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_in_order_and_in_slices() {
        let bytes: Vec<u8> = (0..3 * PIECE + 5).map(|at| (at % 251) as u8).collect();
        let (small, large) = bytes.split_at(7);
        let slices = Slices::of([small, &[], large].into_iter());
        let lengths: Vec<usize> = slices.get().iter().map(|slice| slice.len()).collect();
        assert_eq!(lengths, [7, PIECE, PIECE, PIECE - 2]);
        let joined: Vec<u8> = slices.get().iter().flat_map(|slice| slice.to_vec()).collect();
        assert_eq!(joined, bytes);
    }

    #[test]
    fn what_is_too_much_is_left() {
        let bytes = vec![0; MOST * PIECE + 1];
        let slices = Slices::of([&bytes[..1], &bytes].into_iter());
        let taken: usize = slices.get().iter().map(|slice| slice.len()).sum();
        assert_eq!(taken, 1 + (MOST - 1) * PIECE);
        assert_eq!(slices.get().len(), MOST);
    }
}
