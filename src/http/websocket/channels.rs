//! Messages of several channels in a WebSocket: the first byte of each names its channel, and another one closes channels
//! (`v5.channel.k8s.io`).

use std::io;

use axum::body::Bytes;
use tokio::io::AsyncRead;

use super::frames::{self, BINARY, Frames, NORMAL, PONG, PROTOCOL_ERROR, Part, frame};

/// The byte in the place of a channel that closes a channel: the closed one follows it.
const CLOSES: u8 = 255;
/// How much of a message is read at once, in bytes.
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
    frames: Frames<R>,
    /// The channel of the message, if it has come.
    channel: Option<u8>,
    /// The payload of a message that closes a channel.
    closed: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Channels<R> {
    pub fn new(from: R) -> Self {
        Self { frames: Frames::new(from), channel: None, closed: Vec::new() }
    }

    pub async fn next(&mut self) -> io::Result<Said> {
        loop {
            // Whoever says nothing for hours holds no buffer.
            let mut piece = vec![0; self.frames.left().min(PIECE) as usize];
            let said = match self.frames.next(&mut piece).await? {
                Part::Message(_) | Part::Bytes(0) => None,
                Part::Bytes(length) => {
                    piece.truncate(length);
                    self.said(piece)
                }
                Part::End => self.end_of_message(),
                Part::Ping { payload, is_long: false } => Some(Said::Ping(payload)),
                Part::Close => Some(goodbye(NORMAL)),
                Part::Ping { is_long: true, .. } | Part::Malformed => Some(goodbye(PROTOCOL_ERROR)),
            };
            if let Some(said) = said {
                return Ok(said);
            }
        }
    }

    /// The meaning of some bytes of a message.
    fn said(&mut self, mut bytes: Vec<u8>) -> Option<Said> {
        let channel = *self.channel.get_or_insert_with(|| bytes.remove(0));
        if channel == CLOSES {
            self.closed.extend(bytes.into_iter().take(2));
            return (self.closed.len() > 1).then(|| goodbye(PROTOCOL_ERROR));
        }
        (!bytes.is_empty()).then_some(Said::Piece { channel, bytes })
    }

    fn end_of_message(&mut self) -> Option<Said> {
        match (self.channel.take(), &*std::mem::take(&mut self.closed)) {
            (Some(CLOSES), [channel]) => Some(Said::Closed(*channel)),
            (Some(CLOSES), _) => Some(goodbye(PROTOCOL_ERROR)),
            _ => None,
        }
    }
}

fn goodbye(code: u16) -> Said {
    Said::End(frames::goodbye(code))
}

pub fn normal_end() -> Bytes {
    frames::goodbye(NORMAL)
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
    use super::frames::sent;
    use super::*;

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
            frame(BINARY, b"open").to_vec(),
            sent(0x89, &[0; 126]),
        ] {
            assert_eq!(all(wrong).await.last(), Some(&goodbye(PROTOCOL_ERROR)));
        }
    }
}
