//! A connection within a WebSocket: its bytes are what binary messages hold, wherever these begin and end (upstream's tunnel,
//! by which kubectl's port-forward goes).

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::client::{MASKED, MOST_OF_CONTROL};
use super::messages::{BINARY, CLOSE, NORMAL, PING, PONG, PROTOCOL_ERROR, frame};

pub const CONTINUED: u8 = 0;
/// Bits that only extensions set, which are not offered.
pub const RESERVED: u8 = 0x70;
/// The most that a message holds.
const MESSAGE: usize = 32 << 10;

/// The server's end of a tunnel.
pub struct Tunnel<S> {
    inner: S,
    /// The head of a frame, and what a frame beside messages holds, as far as they have come.
    head: Vec<u8>,
    /// The length that is left of a message's frame, and its mask.
    left: u64,
    mask: [u8; 4],
    /// Frames that are to be sent.
    due: Vec<u8>,
    sent: usize,
    /// The client has said goodbye, or what makes no sense.
    is_over: bool,
    has_said_goodbye: bool,
}

/// The head of a frame, with the length of its payload.
struct Head {
    kind: u8,
    length: u64,
    mask: [u8; 4],
}

impl<S> Tunnel<S> {
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            head: Vec::new(),
            left: 0,
            mask: [0; 4],
            due: Vec::new(),
            sent: 0,
            is_over: false,
            has_said_goodbye: false,
        }
    }

    fn say_goodbye(&mut self, code: u16) {
        if !self.has_said_goodbye {
            self.due.extend_from_slice(&frame(CLOSE, &code.to_be_bytes()));
            self.has_said_goodbye = true;
        }
    }

    /// The client hears nothing more.
    fn end(&mut self, code: u16) {
        self.say_goodbye(code);
        self.is_over = true;
    }
}

/// How many bytes a head has that begins so.
fn length_of_head(head: &[u8]) -> usize {
    match head {
        [_, length, ..] => match length & !MASKED {
            126 => 8,
            127 => 14,
            _ => 6,
        },
        _ => 2,
    }
}

impl Head {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (head, _) = bytes.split_at_checked(length_of_head(bytes))?;
        let (head, mask) = head.split_last_chunk::<4>()?;
        let length = match head {
            [_, short] => u64::from(short & !MASKED),
            [_, _, long @ ..] => long.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
            _ => return None,
        };
        let is_right = head[0] & RESERVED == 0 && head[1] & MASKED != 0;
        is_right.then_some(Self { kind: head[0] & 0xf, length, mask: *mask })
    }
}

pub fn unmask(bytes: &mut [u8], mask: [u8; 4]) {
    bytes.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
}

impl<S: AsyncRead + AsyncWrite + Unpin> Tunnel<S> {
    /// Reads until the head has so many bytes.
    fn poll_head(&mut self, context: &mut Context<'_>, length: usize) -> Poll<io::Result<()>> {
        let mut room = [0; 256];
        while self.head.len() < length {
            let missing = (length - self.head.len()).min(room.len());
            let mut buffer = ReadBuf::new(&mut room[..missing]);
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer))?;
            if buffer.filled().is_empty() {
                return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
            }
            self.head.extend_from_slice(buffer.filled());
        }
        Poll::Ready(Ok(()))
    }

    /// Comes to the next frame of a message, or to the end.
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.left == 0 && !self.is_over {
            ready!(self.poll_head(context, 2))?;
            let length = length_of_head(&self.head);
            ready!(self.poll_head(context, length))?;
            match Head::read(&self.head) {
                Some(Head { kind: BINARY | CONTINUED, length, mask }) => {
                    (self.left, self.mask) = (length, mask)
                }
                Some(Head { kind: CLOSE, .. }) => self.end(NORMAL),
                Some(head) if matches!(head.kind, PING | PONG) && head.length <= MOST_OF_CONTROL => {
                    let whole = length + usize::try_from(head.length).unwrap_or_default();
                    ready!(self.poll_head(context, whole))?;
                    let payload = &mut self.head[length..];
                    unmask(payload, head.mask);
                    if head.kind == PING && !self.has_said_goodbye {
                        self.due.extend_from_slice(&frame(PONG, payload));
                    }
                }
                _ => self.end(PROTOCOL_ERROR),
            }
            self.head.clear();
            // Answers need not wait for what is sent next. What cannot go now goes with that.
            if let Poll::Ready(Err(error)) = self.poll_due(context) {
                return Poll::Ready(Err(error));
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the frames that are to be sent.
    fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.due.len() {
            match ready!(Pin::new(&mut self.inner).poll_write(context, &self.due[self.sent..]))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                length => self.sent += length,
            }
        }
        self.due.clear();
        self.sent = 0;
        Pin::new(&mut self.inner).poll_flush(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Tunnel<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_frame(context))?;
        if self.is_over || buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.remaining());
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
        ready!(Pin::new(&mut self.inner).poll_read(context, &mut part))?;
        let length = part.filled().len();
        if length == 0 {
            return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
        }
        unmask(part.filled_mut(), self.mask);
        buffer.advance(length);
        self.left -= length as u64;
        self.mask.rotate_left(length % 4);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Tunnel<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_due(context))?;
        if self.has_said_goodbye {
            return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
        }
        let message = &bytes[..bytes.len().min(MESSAGE)];
        self.due.extend_from_slice(&frame(BINARY, message));
        if let Poll::Ready(Err(error)) = self.poll_due(context) {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(message.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_due(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.say_goodbye(NORMAL);
        ready!(self.poll_due(context))?;
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    /// A frame of a client.
    fn sent(kind: u8, payload: &[u8]) -> Vec<u8> {
        let mut whole = frame(kind, payload).to_vec();
        let at = whole.len() - payload.len();
        whole[1] |= MASKED;
        unmask(&mut whole[at..], [1, 2, 3, 4]);
        whole.splice(at..at, [1, 2, 3, 4]);
        whole
    }

    #[tokio::test]
    async fn bytes_come_out_of_messages_and_go_into_them() {
        for room in [1, 7, 1 << 20] {
            let (mut client, server) = duplex(room);
            let mut tunnel = Tunnel::new(server);
            let long = vec![b'x'; 70_000];
            let mut all = sent(BINARY, b"abc");
            // The rest of a message that goes on, with a ping in it.
            all[0] &= 0x7f;
            all.extend(sent(PING, b"12"));
            all.extend(sent(CONTINUED, b"de"));
            all.extend([sent(PONG, b""), sent(BINARY, b""), sent(BINARY, &long)].concat());
            all.extend(sent(CLOSE, b""));
            let talk = tokio::spawn(async move {
                client.write_all(&all).await.expect("written");
                client
            });
            let mut found = Vec::new();
            let read = tokio::spawn(async move {
                tunnel.read_to_end(&mut found).await.expect("read");
                (tunnel, found)
            });
            let mut client = talk.await.expect("no panic");
            let listen = tokio::spawn(async move {
                let mut heard = Vec::new();
                client.read_to_end(&mut heard).await.expect("read");
                heard
            });
            let (mut tunnel, found) = read.await.expect("no panic");
            assert_eq!((&found[..5], found.len()), (&b"abcde"[..], 70_005), "{room}");
            tunnel.shutdown().await.expect("ended");
            drop(tunnel);
            let want = [frame(PONG, b"12"), frame(CLOSE, &NORMAL.to_be_bytes())].concat();
            assert_eq!(listen.await.expect("no panic"), want, "{room}");
        }
        let (mut client, server) = duplex(1 << 20);
        let mut tunnel = Tunnel::new(server);
        tunnel.write_all(&vec![7; MESSAGE + 1]).await.expect("written");
        tunnel.shutdown().await.expect("ended");
        drop(tunnel);
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).await.expect("read");
        let messages = [frame(BINARY, &vec![7; MESSAGE]), frame(BINARY, &[7]), frame(CLOSE, &[3, 0xe8])];
        assert_eq!(heard, messages.concat());
    }

    #[tokio::test]
    async fn what_makes_no_sense_ends_a_tunnel() {
        let mut reserved = sent(BINARY, b"a");
        reserved[0] |= 0x40;
        for wrong in [frame(BINARY, b"open").to_vec(), sent(1, b"text"), sent(PING, &[0; 126]), reserved] {
            let (mut client, server) = duplex(1000);
            let mut tunnel = Tunnel::new(server);
            client.write_all(&wrong).await.expect("written");
            client.write_all(&[0; 20]).await.expect("written");
            assert_eq!(tunnel.read(&mut [0; 10]).await.expect("an end"), 0);
            let mut heard = [0; 4];
            client.read_exact(&mut heard).await.expect("a goodbye");
            assert_eq!(heard, [0x88, 2, 3, 0xea]);
        }
        let (mut client, server) = duplex(1000);
        let mut tunnel = Tunnel::new(server);
        client.write_all(&sent(BINARY, b"abc")[..8]).await.expect("written");
        drop(client);
        let broken = tunnel.read_to_end(&mut Vec::new()).await.expect_err("broken off");
        assert_eq!(broken.kind(), ErrorKind::UnexpectedEof);
    }
}
