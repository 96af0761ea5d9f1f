//! Messages of several channels in a WebSocket: the first byte of each names its channel, and another one closes channels
//! (`v5.channel.k8s.io`).

use std::io;

use axum::body::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::client::{MASKED, MOST_OF_CONTROL};
use super::messages::{BINARY, CLOSE, NORMAL, PING, PONG, PROTOCOL_ERROR, TEXT, frame};
use super::tunnel::{CONTINUED, RESERVED, unmask};

/// The byte in the place of a channel that closes a channel: the closed one follows it.
const CLOSES: u8 = 255;
const FINAL: u8 = 0x80;
/// How much of a message is read at once.
const PIECE: u64 = 16 << 10;

/// The messages of a client, piece by piece.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    Piece {
        channel: u8,
        bytes: Vec<u8>,
    },
    /// The channel in which nothing more comes.
    Closed(u8),
    Ping(Vec<u8>),
    /// The frame to be answered before the end.
    End(Bytes),
}

/// Reads what a client says.
pub struct Channels<R> {
    from: R,
    /// The length that is left of a message's frame, its mask, and whether it is the message's last frame.
    left: u64,
    mask: [u8; 4],
    is_final: bool,
    /// The message that has begun, if one has, and its channel if that has come.
    begun: Option<Option<u8>>,
    /// The payload of a message that closes a channel.
    closed: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Channels<R> {
    pub fn new(from: R) -> Self {
        Self { from, left: 0, mask: [0; 4], is_final: true, begun: None, closed: Vec::new() }
    }

    pub async fn next(&mut self) -> io::Result<Said> {
        loop {
            if self.left > 0 {
                if let Some(said) = self.piece().await? {
                    return Ok(said);
                }
            } else if self.is_final && self.begun.is_some() {
                if let Some(said) = self.end_of_message() {
                    return Ok(said);
                }
            } else if let Some(said) = self.frame().await? {
                return Ok(said);
            }
        }
    }

    async fn piece(&mut self) -> io::Result<Option<Said>> {
        let length = self.left.min(PIECE);
        let mut bytes = vec![0; length as usize];
        self.from.read_exact(&mut bytes).await?;
        unmask(&mut bytes, self.mask);
        self.mask.rotate_left(bytes.len() % 4);
        self.left -= length;
        let channel = match self.begun.flatten() {
            Some(channel) => channel,
            None => bytes.remove(0),
        };
        self.begun = Some(Some(channel));
        if channel == CLOSES {
            self.closed.extend(bytes.into_iter().take(2));
            return Ok((self.closed.len() > 1).then(|| goodbye(PROTOCOL_ERROR)));
        }
        Ok((!bytes.is_empty()).then_some(Said::Piece { channel, bytes }))
    }

    fn end_of_message(&mut self) -> Option<Said> {
        match (self.begun.take().flatten(), &*std::mem::take(&mut self.closed)) {
            (Some(CLOSES), [channel]) => Some(Said::Closed(*channel)),
            (Some(CLOSES), _) => Some(goodbye(PROTOCOL_ERROR)),
            _ => None,
        }
    }

    /// Reads the head of a frame, and all of one beside messages.
    async fn frame(&mut self) -> io::Result<Option<Said>> {
        let mut head = [0; 2];
        self.from.read_exact(&mut head).await?;
        let length = match head[1] & !MASKED {
            126 => self.from.read_u16().await?.into(),
            127 => self.from.read_u64().await?,
            length => length.into(),
        };
        if head[1] & MASKED == 0 || head[0] & RESERVED != 0 {
            return Ok(Some(goodbye(PROTOCOL_ERROR)));
        }
        let mut mask = [0; 4];
        self.from.read_exact(&mut mask).await?;
        match (head[0] & 0xf, self.begun) {
            (TEXT | BINARY, None) | (CONTINUED, Some(_)) => {
                self.begun = self.begun.or(Some(None));
                (self.left, self.mask, self.is_final) = (length, mask, head[0] & FINAL != 0);
            }
            (CLOSE, _) => return Ok(Some(goodbye(NORMAL))),
            (kind @ (PING | PONG), _) if length <= MOST_OF_CONTROL => {
                let mut payload = vec![0; length as usize];
                self.from.read_exact(&mut payload).await?;
                unmask(&mut payload, mask);
                return Ok((kind == PING).then_some(Said::Ping(payload)));
            }
            _ => return Ok(Some(goodbye(PROTOCOL_ERROR))),
        }
        Ok(None)
    }
}

/// A frame that ends a WebSocket.
fn goodbye(code: u16) -> Said {
    Said::End(frame(CLOSE, &code.to_be_bytes()))
}

pub fn normal_end() -> Bytes {
    frame(CLOSE, &NORMAL.to_be_bytes())
}

pub fn pong(payload: &[u8]) -> Bytes {
    frame(PONG, payload)
}

/// A message of a channel.
pub fn message(channel: u8, payload: &[u8]) -> Bytes {
    frame(BINARY, &[&[channel], payload].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(head: u8, payload: &[u8]) -> Vec<u8> {
        let mut whole = frame(head & 0xf, payload).to_vec();
        whole[0] = head;
        whole[1] |= MASKED;
        let at = whole.len() - payload.len();
        unmask(&mut whole[at..], [9, 8, 7, 6]);
        whole.splice(at..at, [9, 8, 7, 6]);
        whole
    }

    async fn all(said: Vec<u8>) -> Vec<Said> {
        let mut channels = Channels::new(&*said);
        let mut all = Vec::new();
        while let Ok(said) = channels.next().await {
            let is_end = matches!(said, Said::End(_));
            all.push(said);
            if is_end {
                break;
            }
        }
        all
    }

    #[tokio::test]
    async fn messages_are_read_piece_by_piece() {
        let long = [&[0], &vec![b'x'; 20_000][..]].concat();
        let said = [
            sent(0x82, b"\x00abc"),
            sent(0x82, b""),
            sent(0x81, b"\x04{}"),
            sent(0x02, b""),
            sent(0x89, b"p"),
            sent(0x00, b"\x00d"),
            sent(0x8a, b""),
            sent(0x80, b"e"),
            sent(0x82, &long),
            sent(0x82, &[CLOSES, 0]),
            sent(0x88, b""),
        ];
        let piece = |channel, bytes: &[u8]| Said::Piece { channel, bytes: bytes.to_vec() };
        let want = [
            piece(0, b"abc"),
            piece(4, b"{}"),
            Said::Ping(b"p".to_vec()),
            piece(0, b"d"),
            piece(0, b"e"),
            piece(0, &long[1..PIECE as usize]),
            piece(0, &long[PIECE as usize..]),
            Said::Closed(0),
            goodbye(NORMAL),
        ];
        assert_eq!(all(said.concat()).await, want);
    }

    #[tokio::test]
    async fn what_makes_no_sense_is_the_end() {
        for wrong in [
            sent(0x82, &[CLOSES]),
            sent(0x82, &[CLOSES, 0, 1]),
            sent(0x80, b"no beginning"),
            sent(0xc2, b"x"),
            frame(BINARY, b"open").to_vec(),
            sent(0x89, &[0; 126]),
            [sent(0x02, b"\x00a"), sent(0x82, b"\x00b")].concat(),
        ] {
            assert_eq!(all(wrong).await.last(), Some(&goodbye(PROTOCOL_ERROR)));
        }
    }
}
