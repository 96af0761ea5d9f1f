//! Many watches on one HTTP/2 connection, whose events are counted and dropped.
//!
//! Written by hand, because a general client spends more on waking a task per watch and event than the server spends on
//! sending it, and both share the processors of one machine. The server sees the same as with any client that has as
//! many watches.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::Result;
use crate::client::{JSON, Protocol};
use crate::target::Target;
use crate::watches::Tally;

type Stream = tokio_rustls::client::TlsStream<tokio::net::TcpStream>;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEADER: usize = 9;
const MAX_WINDOW: u32 = (1 << 31) - 1;
const DEFAULT_WINDOW: u32 = 65_535;
/// How many bytes are read before the connection's window is opened again; no single stream comes near `MAX_WINDOW`.
const REOPEN_AFTER: u32 = 1 << 30;

mod frame {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const ACK: u8 = 1;
    pub const END_STREAM_AND_HEADERS: u8 = 5;
}

/// HPACK: entries of the static table.
mod hpack {
    pub const AUTHORITY: u8 = 1;
    pub const METHOD_GET: u8 = 0x82;
    pub const PATH: u8 = 4;
    pub const SCHEME_HTTPS: u8 = 0x87;
    pub const STATUS_200: u8 = 0x88;
    pub const ACCEPT: u8 = 19;
    pub const AUTHORIZATION: u8 = 23;
}

/// Opens `watches` watches of `path`. Returns once all are answered, with a future that counts events.
pub async fn open(
    target: &Target,
    path: &str,
    watches: usize,
    tally: Arc<Tally>,
) -> Result<impl Future<Output = ()> + use<>> {
    let mut stream = target.connect(Protocol::Http2).await?;
    stream.write_all(&opening(target, path, watches)?).await?;
    let mut tap = Tap { stream, reader: FrameReader::default(), answered: 0, tally };
    while tap.answered < watches {
        tap.step().await?;
    }
    Ok(async move {
        // If this ends early, the waiting side notices that no more events arrive.
        while let Ok(()) = tap.step().await {}
    })
}

struct Tap {
    stream: Stream,
    reader: FrameReader,
    answered: usize,
    tally: Arc<Tally>,
}

impl Tap {
    /// Reads once, and answers frames that need an answer.
    async fn step(&mut self) -> Result<()> {
        let mut buffer = [0; 1 << 16];
        let length = self.stream.read(&mut buffer).await?;
        if length == 0 {
            return Err("the connection was closed".into());
        }
        let seen = self.reader.read(&buffer[..length])?;
        self.answered += seen.answered;
        if seen.events > 0 {
            self.tally.add(seen.events);
        }
        if !seen.reply.is_empty() {
            self.stream.write_all(&seen.reply).await?;
            self.stream.flush().await?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Seen {
    events: u64,
    answered: usize,
    reply: Vec<u8>,
}

/// Splits the data into frames, which may start and end anywhere.
#[derive(Default)]
struct FrameReader {
    header: Vec<u8>,
    /// The payload of a frame that is not DATA.
    payload: Vec<u8>,
    missing: usize,
    /// Bytes of DATA since the connection's window was opened last.
    unacknowledged: u32,
}

impl FrameReader {
    fn read(&mut self, mut bytes: &[u8]) -> Result<Seen> {
        let mut seen = Seen::default();
        while !bytes.is_empty() {
            if self.header.len() < FRAME_HEADER {
                let (head, rest) = bytes.split_at(bytes.len().min(FRAME_HEADER - self.header.len()));
                self.header.extend_from_slice(head);
                bytes = rest;
                if self.header.len() < FRAME_HEADER {
                    break;
                }
                self.missing = usize::from(self.header[0]) << 16
                    | usize::from(self.header[1]) << 8
                    | usize::from(self.header[2]);
            }
            let (part, rest) = bytes.split_at(bytes.len().min(self.missing));
            bytes = rest;
            self.missing -= part.len();
            match self.header[3] {
                frame::DATA => {
                    seen.events += memchr::memchr_iter(b'\n', part).count() as u64;
                    self.unacknowledged += part.len() as u32;
                }
                _ => self.payload.extend_from_slice(part),
            }
            if self.missing == 0 {
                self.finish(&mut seen)?;
                self.header.clear();
                self.payload.clear();
            }
        }
        if self.unacknowledged > REOPEN_AFTER {
            write_frame(
                &mut seen.reply,
                frame::WINDOW_UPDATE,
                0,
                0,
                &std::mem::take(&mut self.unacknowledged).to_be_bytes(),
            );
        }
        Ok(seen)
    }

    fn finish(&mut self, seen: &mut Seen) -> Result<()> {
        let acknowledged = self.header[4] & frame::ACK != 0;
        match self.header[3] {
            frame::HEADERS => {
                // An update of the table's size (001xxxxx) may come before the status.
                let first = self.payload.iter().find(|&&byte| byte >> 5 != 1);
                if first != Some(&hpack::STATUS_200) {
                    return Err("a watch was not answered with 200".into());
                }
                seen.answered += 1;
            }
            frame::SETTINGS if !acknowledged => {
                write_frame(&mut seen.reply, frame::SETTINGS, frame::ACK, 0, &[]);
            }
            frame::PING if !acknowledged => {
                write_frame(&mut seen.reply, frame::PING, frame::ACK, 0, &self.payload);
            }
            frame::RST_STREAM | frame::GOAWAY => return Err("the server ended a watch".into()),
            _ => {}
        }
        Ok(())
    }
}

/// All bytes from the preface to the last request.
fn opening(target: &Target, path: &str, watches: usize) -> Result<Vec<u8>> {
    const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];
    let mut bytes = PREFACE.to_vec();
    let settings = [&INITIAL_WINDOW_SIZE[..], &MAX_WINDOW.to_be_bytes()].concat();
    write_frame(&mut bytes, frame::SETTINGS, 0, 0, &settings);
    write_frame(&mut bytes, frame::WINDOW_UPDATE, 0, 0, &(MAX_WINDOW - DEFAULT_WINDOW).to_be_bytes());

    let mut headers = vec![hpack::METHOD_GET, hpack::SCHEME_HTTPS];
    write_header(&mut headers, hpack::PATH, path);
    write_header(&mut headers, hpack::AUTHORITY, target.authority());
    write_header(&mut headers, hpack::ACCEPT, JSON);
    if let Some(authorization) = &target.authorization {
        write_header(&mut headers, hpack::AUTHORIZATION, authorization.to_str()?);
    }
    for watch in 0..watches as u32 {
        write_frame(&mut bytes, frame::HEADERS, frame::END_STREAM_AND_HEADERS, 2 * watch + 1, &headers);
    }
    Ok(bytes)
}

fn write_frame(to: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    to.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    to.extend_from_slice(&[kind, flags]);
    to.extend_from_slice(&stream.to_be_bytes());
    to.extend_from_slice(payload);
}

/// Writes a literal field that is not indexed, without Huffman coding.
fn write_header(to: &mut Vec<u8>, name: u8, value: &str) {
    write_integer(to, 4, name.into());
    write_integer(to, 7, value.len());
    to.extend_from_slice(value.as_bytes());
}

/// Writes an integer with a prefix of this many bits; the bits before it are 0 (RFC 7541, 5.1).
fn write_integer(to: &mut Vec<u8>, prefix: u32, value: usize) {
    let full = (1 << prefix) - 1;
    if value < full {
        return to.push(value as u8);
    }
    to.push(full as u8);
    let mut rest = value - full;
    while rest >= 128 {
        to.push((rest % 128) as u8 | 0x80);
        rest /= 128;
    }
    to.push(rest as u8);
}
