//! HTTP/2 by hand, for what a client does that has not yet heard what the server says: libraries stop at once.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::support::client::patient;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;

pub const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// A connection that answers no pings until its end: until then the server waits for requests on their way.
pub struct Http2 {
    stream: TlsStream<TcpStream>,
    pings: Vec<Vec<u8>>,
}

pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

impl Http2 {
    pub async fn new(stream: TlsStream<TcpStream>) -> Self {
        let mut this = Self { stream, pings: Vec::new() };
        this.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.expect("write");
        // SETTINGS_HEADER_TABLE_SIZE 0: headers are spelled out each time.
        this.send(SETTINGS, 0, 0, &[0, 1, 0, 0, 0, 0]).await;
        this
    }

    pub async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
        let frame = [&length[1..], &[kind, flags], &stream.to_be_bytes()[..], payload].concat();
        self.stream.write_all(&frame).await.expect("write");
    }

    /// The next frame that is not of the connection's own business.
    pub async fn next(&mut self) -> Frame {
        loop {
            let mut head = [0; 9];
            patient("a frame", self.stream.read_exact(&mut head)).await.expect("a frame");
            let [a, b, c, kind, flags, stream @ ..] = head;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.stream.read_exact(&mut payload).await.expect("a whole frame");
            match kind {
                SETTINGS if flags & ACK == 0 => self.send(SETTINGS, ACK, 0, &[]).await,
                PING if flags & ACK == 0 => self.pings.push(payload),
                _ => return Frame { kind, flags, stream: u32::from_be_bytes(stream), payload },
            }
        }
    }

    /// Headers of a request that has a body.
    pub async fn begin(&mut self, stream: u32, method: &str, path: &str) {
        self.send(HEADERS, END_HEADERS, stream, &block(method, path)).await;
    }

    /// Asks, and does not wait for the answer.
    pub async fn ask(&mut self, stream: u32, path: &str) {
        self.send(HEADERS, END_HEADERS | END_STREAM, stream, &block("GET", path)).await;
    }

    pub async fn get(&mut self, stream: u32, path: &str) -> (Vec<u8>, Vec<u8>) {
        self.ask(stream, path).await;
        self.answer(stream).await
    }

    /// The header block and the body of an answer.
    pub async fn answer(&mut self, stream: u32) -> (Vec<u8>, Vec<u8>) {
        let (mut headers, mut body) = (Vec::new(), Vec::new());
        loop {
            let frame = self.next().await;
            match frame.kind {
                HEADERS if frame.stream == stream => headers.extend(frame.payload),
                DATA if frame.stream == stream => body.extend(frame.payload),
                _ => continue,
            }
            if frame.flags & END_STREAM != 0 {
                return (headers, body);
            }
        }
    }

    /// Nothing more is on its way; waits for the server to close.
    pub async fn end(mut self) {
        for ping in std::mem::take(&mut self.pings) {
            self.send(PING, ACK, 0, &ping).await;
        }
        let rest = patient("the end", self.stream.read_to_end(&mut Vec::new())).await;
        rest.expect("a clean end");
    }
}

/// Fields that no table knows.
fn block(method: &str, path: &str) -> Vec<u8> {
    let fields = [
        (":method", method),
        (":scheme", "https"),
        (":authority", "kubernetes"),
        (":path", path),
        ("content-type", "application/json"),
    ];
    let text = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
    fields.map(|(name, value)| [vec![0], text(name), text(value)].concat()).concat()
}
