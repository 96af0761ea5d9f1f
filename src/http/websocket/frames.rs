//! The frames of a WebSocket (RFC 6455, 5): those of a client are read in pieces, so that none is held whole, however long it is.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::Bytes;
use futures_util::future::poll_fn;
use tokio::io::{AsyncRead, ReadBuf};

const FINAL: u8 = 0x80;
/// Bits that only extensions set, which are not offered.
const RESERVED: u8 = 0x70;
const MASKED: u8 = 0x80;

const CONTINUED: u8 = 0;
pub const TEXT: u8 = 1;
pub const BINARY: u8 = 2;
pub const CLOSE: u8 = 8;
pub const PING: u8 = 9;
pub const PONG: u8 = 10;

/// Codes of an end.
pub const NORMAL: u16 = 1000;
pub const GOING_AWAY: u16 = 1001;
pub const PROTOCOL_ERROR: u16 = 1002;

/// The most that a frame beside messages may hold, in bytes.
const MOST_OF_CONTROL: usize = 125;

/// A whole message of the server, or what it sends beside messages.
pub fn frame(kind: u8, payload: &[u8]) -> Bytes {
    let mut frame = Vec::with_capacity(payload.len() + 10);
    frame.push(FINAL | kind);
    match payload.len() {
        length @ 0..=125 => frame.push(length as u8),
        length @ 126..=0xffff => {
            frame.push(126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
        length => {
            frame.push(127);
            frame.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame.into()
}

/// The last frame of the server.
pub fn goodbye(code: u16) -> Bytes {
    frame(CLOSE, &code.to_be_bytes())
}

/// A part of what a client sends.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// A message of this kind begins.
    Message(u8),
    /// So many of its bytes are at the start of the buffer; none if the buffer is empty.
    Bytes(usize),
    /// The message has ended.
    End,
    /// A ping, or the beginning of one that holds more than it may. The rest of it follows as bytes.
    Ping { payload: Vec<u8>, is_long: bool },
    /// The client says goodbye. Nothing more can be read.
    Close,
    /// The client has broken the protocol. Nothing more can be read.
    Malformed,
}

/// Reads what a client sends.
pub struct Frames<R> {
    from: R,
    /// The head of a frame, and what a frame beside messages holds, as far as they have come.
    head: Vec<u8>,
    /// The length that is left of a frame, and its mask.
    left: u64,
    mask: [u8; 4],
    is_in_message: bool,
    /// Whether the frame is the last one of its message.
    is_last: bool,
}

/// Masks bytes, or unmasks them.
fn mask_bytes(bytes: &mut [u8], mask: [u8; 4]) {
    let (words, rest) = bytes.as_chunks_mut::<4>();
    for word in words {
        *word = std::array::from_fn(|at| word[at] ^ mask[at]);
    }
    rest.iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
}

impl<R> Frames<R> {
    pub fn new(from: R) -> Self {
        Self { from, head: Vec::new(), left: 0, mask: [0; 4], is_in_message: false, is_last: false }
    }

    /// How many bytes are left of the frame that is read, which are less than the message may have.
    pub fn left(&self) -> u64 {
        self.left
    }

    pub fn get_mut(&mut self) -> &mut R {
        &mut self.from
    }
}

impl<R: AsyncRead + Unpin> Frames<R> {
    /// The next part. No more bytes are read of a message than the buffer takes.
    pub async fn next(&mut self, buffer: &mut [u8]) -> io::Result<Part> {
        poll_fn(|context| self.poll_next(context, buffer)).await
    }

    /// The same for a caller that polls.
    pub fn poll_next(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Part>> {
        loop {
            if self.left > 0 {
                return self.poll_bytes(context, buffer);
            }
            if self.is_last {
                (self.is_in_message, self.is_last) = (false, false);
                return Poll::Ready(Ok(Part::End));
            }
            if let Some(part) = ready!(self.poll_frame(context))? {
                return Poll::Ready(Ok(part));
            }
        }
    }

    fn poll_bytes(&mut self, context: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<Part>> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = ready!(poll_some(&mut self.from, context, &mut buffer[..most]))?;
        mask_bytes(&mut buffer[..read], self.mask);
        self.mask.rotate_left(read % 4);
        self.left -= read as u64;
        Poll::Ready(Ok(Part::Bytes(read)))
    }

    /// Reads the head of a frame, and what a frame beside messages holds.
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Part>>> {
        ready!(self.poll_head(context, 2))?;
        let (first, second) = (self.head[0], self.head[1]);
        if first & RESERVED != 0 || second & MASKED == 0 {
            return Poll::Ready(Ok(Some(Part::Malformed)));
        }
        // A long length has bytes of its own, and the mask is the last of a head.
        let head = match second & !MASKED {
            ..126 => 6,
            126 => 8,
            _ => 14,
        };
        ready!(self.poll_head(context, head))?;
        let length = match second & !MASKED {
            short @ ..126 => u64::from(short),
            _ => self.head[2..head - 4].iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
        };
        self.mask.copy_from_slice(&self.head[head - 4..head]);
        let part = match first & !FINAL {
            kind @ (TEXT | BINARY) if !self.is_in_message => Some(Part::Message(kind)),
            CONTINUED if self.is_in_message => None,
            CLOSE => Some(Part::Close),
            kind @ (PING | PONG) => {
                let most = usize::try_from(length).unwrap_or(usize::MAX).min(MOST_OF_CONTROL);
                ready!(self.poll_head(context, head + most))?;
                let mut payload = self.head.split_off(head);
                self.head.clear();
                mask_bytes(&mut payload, self.mask);
                self.mask.rotate_left(most % 4);
                self.left = length - most as u64;
                let is_long = self.left > 0;
                return Poll::Ready(Ok(match kind {
                    PING => Some(Part::Ping { payload, is_long }),
                    _ if is_long => Some(Part::Malformed),
                    _ => None,
                }));
            }
            _ => Some(Part::Malformed),
        };
        self.head.clear();
        self.left = length;
        self.is_in_message = true;
        self.is_last = first & FINAL != 0;
        Poll::Ready(Ok(part))
    }

    /// Reads until the head has so many bytes.
    fn poll_head(&mut self, context: &mut Context<'_>, length: usize) -> Poll<io::Result<()>> {
        while self.head.len() < length {
            let mut room = [0; 14 + MOST_OF_CONTROL];
            let missing = length - self.head.len();
            let read = ready!(poll_some(&mut self.from, context, &mut room[..missing]))?;
            self.head.extend_from_slice(&room[..read]);
        }
        Poll::Ready(Ok(()))
    }
}

/// Reads one byte or more, unless the buffer is empty.
fn poll_some(
    from: &mut (impl AsyncRead + Unpin),
    context: &mut Context<'_>,
    buffer: &mut [u8],
) -> Poll<io::Result<usize>> {
    let mut buffer = ReadBuf::new(buffer);
    ready!(Pin::new(from).poll_read(context, &mut buffer))?;
    match buffer.filled().len() {
        0 if buffer.capacity() > 0 => Poll::Ready(Err(ErrorKind::UnexpectedEof.into())),
        read => Poll::Ready(Ok(read)),
    }
}

/// A frame as a client sends it.
#[cfg(test)]
pub fn sent(first: u8, payload: &[u8]) -> Vec<u8> {
    const MASK: [u8; 4] = [9, 8, 7, 6];
    let mut whole = frame(first, payload).to_vec();
    let at = whole.len() - payload.len();
    (whole[0], whole[1]) = (first, whole[1] | MASKED);
    mask_bytes(&mut whole[at..], MASK);
    whole.splice(at..at, MASK);
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_three_forms() {
        for (length, head) in [
            (0, &[0x82, 0][..]),
            (125, &[0x82, 125]),
            (126, &[0x82, 126, 0, 126]),
            (0xffff, &[0x82, 126, 0xff, 0xff]),
            (0x1_0000, &[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let frame = frame(BINARY, &vec![7; length]);
            assert_eq!((&frame[..head.len()], frame.len()), (head, head.len() + length));
        }
    }

    /// However the bytes arrive, and however much of them fits into the buffer.
    #[tokio::test]
    async fn messages_are_read_piece_by_piece() {
        let long = vec![b'x'; 70_000];
        let said = [
            sent(0x02, b"ab"),
            sent(0x89, b"p"),
            sent(0x00, b""),
            sent(0x8a, b"q"),
            sent(0x80, b"cde"),
            sent(0x81, b""),
            sent(0x82, &long),
            sent(0x89, &[b'y'; 130]),
            sent(0x88, b""),
        ]
        .concat();
        for (room, fits) in [(1, 1), (7, 3), (1 << 20, 1 << 20)] {
            let (mut client, server) = tokio::io::duplex(room);
            let said = said.clone();
            tokio::spawn(async move { tokio::io::AsyncWriteExt::write_all(&mut client, &said).await });
            let (mut frames, mut buffer) = (Frames::new(server), vec![0; fits]);
            let (mut bytes, mut rest) = (Vec::new(), Vec::new());
            loop {
                match frames.next(&mut buffer).await.expect("a part") {
                    Part::Bytes(length) => bytes.extend_from_slice(&buffer[..length]),
                    Part::Close => break,
                    part => rest.push((part, bytes.len())),
                }
            }
            let ping = |payload: &[u8], is_long| Part::Ping { payload: payload.to_vec(), is_long };
            let want = [
                (Part::Message(BINARY), 0),
                (ping(b"p", false), 2),
                (Part::End, 5),
                (Part::Message(TEXT), 5),
                (Part::End, 5),
                (Part::Message(BINARY), 5),
                (Part::End, 70_005),
                (ping(&[b'y'; 125], true), 70_005),
            ];
            assert_eq!(rest, want, "{room}");
            assert!(bytes == [b"abcde", &*long, b"yyyyy"].concat(), "{room}");
        }
    }

    #[tokio::test]
    async fn what_breaks_the_protocol_is_told() {
        for wrong in [
            frame(BINARY, b"a").to_vec(),
            sent(0x80, b"no beginning"),
            sent(0xc2, b"x"),
            sent(0x83, b"x"),
            sent(0x8b, b"x"),
            sent(0x8a, &[0; 126]),
            [sent(0x02, b""), sent(0x82, b"")].concat(),
        ] {
            let mut frames = Frames::new(&*wrong);
            let mut part = frames.next(&mut []).await;
            if part.as_ref().is_ok_and(|part| *part == Part::Message(BINARY)) {
                part = frames.next(&mut []).await;
            }
            assert_eq!(part.expect("a part"), Part::Malformed, "{wrong:x?}");
        }
        let cut = &sent(0x82, b"abc")[..8];
        let mut frames = Frames::new(cut);
        let mut buffer = [0; 10];
        assert_eq!(frames.next(&mut buffer).await.expect("a part"), Part::Message(BINARY));
        assert_eq!(frames.next(&mut buffer).await.expect("a part"), Part::Bytes(2));
        assert_eq!(frames.next(&mut buffer).await.expect_err("cut").kind(), ErrorKind::UnexpectedEof);
    }
}
