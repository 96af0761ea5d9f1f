//! A connection within a WebSocket: its bytes are what binary messages hold, wherever these begin and end (upstream's tunnel,
//! by which kubectl's port-forward goes).

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::frames::{BINARY, Frames, NORMAL, PONG, PROTOCOL_ERROR, Part, TEXT, frame, goodbye};

/// The most that a message holds, in bytes.
const MESSAGE: usize = 32 << 10;
/// The length of frames that wait to be sent, in bytes, from which on pings stay without an answer: a client that reads none of its
/// answers could have any number of them.
const MOST_DUE: usize = 2 * MESSAGE;

/// The server's end of a tunnel.
pub struct Tunnel<S> {
    frames: Frames<S>,
    /// Frames that are to be sent.
    due: Vec<u8>,
    sent: usize,
    /// The client has said goodbye, or what makes no sense.
    is_over: bool,
    has_said_goodbye: bool,
}

impl<S> Tunnel<S> {
    pub fn new(inner: S) -> Self {
        Self { frames: Frames::new(inner), due: Vec::new(), sent: 0, is_over: false, has_said_goodbye: false }
    }

    fn say_goodbye(&mut self, code: u16) {
        if !self.has_said_goodbye {
            self.due.extend_from_slice(&goodbye(code));
            self.has_said_goodbye = true;
        }
    }

    /// The client hears nothing more.
    fn end(&mut self, code: u16) {
        self.say_goodbye(code);
        self.is_over = true;
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Tunnel<S> {
    /// Sends the frames that are to be sent.
    fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.due.len() {
            match ready!(Pin::new(self.frames.get_mut()).poll_write(context, &self.due[self.sent..]))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                length => self.sent += length,
            }
        }
        self.due.clear();
        self.sent = 0;
        Pin::new(self.frames.get_mut()).poll_flush(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Tunnel<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.is_over && buffer.remaining() > 0 {
            match ready!(self.frames.poll_next(context, buffer.initialize_unfilled()))? {
                Part::Bytes(length) => {
                    buffer.advance(length);
                    break;
                }
                Part::Message(TEXT) | Part::Ping { is_long: true, .. } | Part::Malformed => {
                    self.end(PROTOCOL_ERROR)
                }
                Part::Message(_) | Part::End => continue,
                Part::Ping { payload, .. } => {
                    if !self.has_said_goodbye && self.due.len() < MOST_DUE {
                        self.due.extend_from_slice(&frame(PONG, &payload));
                    }
                }
                Part::Close => self.end(NORMAL),
            }
            // Answers need not wait for what is sent next. What cannot go now goes with that.
            if let Poll::Ready(Err(error)) = self.poll_due(context) {
                return Poll::Ready(Err(error));
            }
        }
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
        Pin::new(self.frames.get_mut()).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::super::frames::sent;
    use super::*;

    #[tokio::test]
    async fn bytes_come_out_of_messages_and_go_into_them() {
        for room in [1, 7, 1 << 20] {
            let (mut client, server) = duplex(room);
            let mut tunnel = Tunnel::new(server);
            let long = vec![b'x'; 70_000];
            let mut all = sent(0x02, b"abc");
            // The rest of a message that goes on, with a ping in it.
            all.extend([sent(0x89, b"12"), sent(0x80, b"de")].concat());
            all.extend([sent(0x8a, b""), sent(0x82, b""), sent(0x82, &long), sent(0x88, b"")].concat());
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
            let want = [frame(PONG, b"12"), goodbye(NORMAL)].concat();
            assert_eq!(listen.await.expect("no panic"), want, "{room}");
        }
        let (mut client, server) = duplex(1 << 20);
        let mut tunnel = Tunnel::new(server);
        tunnel.write_all(&vec![7; MESSAGE + 1]).await.expect("written");
        tunnel.shutdown().await.expect("ended");
        drop(tunnel);
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).await.expect("read");
        let messages = [frame(BINARY, &vec![7; MESSAGE]), frame(BINARY, &[7]), goodbye(NORMAL)];
        assert_eq!(heard, messages.concat());
    }

    #[tokio::test]
    async fn who_pings_and_does_not_read_takes_no_memory() {
        let (mut client, server) = duplex(1000);
        let mut tunnel = Tunnel::new(server);
        let pinged = tokio::spawn(async move {
            client.write_all(&sent(0x89, &[b'x'; 125]).repeat(2000)).await.expect("written");
            client.write_all(&sent(0x82, b"a")).await.expect("written");
            client
        });
        assert_eq!(tunnel.read_u8().await.expect("the byte behind the pings"), b'a');
        assert!((MOST_DUE..MOST_DUE + 127).contains(&tunnel.due.len()), "{}", tunnel.due.len());
        drop(pinged.await.expect("no panic"));
    }

    #[tokio::test]
    async fn what_makes_no_sense_ends_a_tunnel() {
        for wrong in [frame(BINARY, b"open").to_vec(), sent(0x81, b"text"), sent(0x89, &[0; 126])] {
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
        client.write_all(&sent(0x82, b"abc")[..8]).await.expect("written");
        drop(client);
        let broken = tunnel.read_to_end(&mut Vec::new()).await.expect_err("broken off");
        assert_eq!(broken.kind(), ErrorKind::UnexpectedEof);
    }
}
