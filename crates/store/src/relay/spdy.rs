//! The part of SPDY/3.1 that a client needs to open streams to a kubelet: kubelets before 1.36 speak nothing else for
//! all that kubectl asks.

use std::io::{self, ErrorKind};

use flate2::{Compress, Compression, FlushCompress, Status};
use tokio::io::{AsyncRead, AsyncReadExt as _};

const CONTROL: u32 = 1 << 31;
const VERSION: u32 = 3;
const OPEN: u32 = 1;
const REPLY: u32 = 2;
const RESET: u32 = 3;
const PING: u32 = 6;
const GO_AWAY: u32 = 7;
const HEADERS: u32 = 8;
/// The flag of a stream's last frame.
const LAST: u32 = 1;
/// A kubelet sends no longer frames.
const LONGEST: u32 = 1 << 20;

/// The words that both ends of SPDY know, each behind its length, and what follows them.
const WORDS: [&str; 64] = [
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
];
const LAST_WORD: &str = "origin";
const REST: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 \
    Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not \
    Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov \
    Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, \
    GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,\
    publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

/// A text behind its length.
fn put(block: &mut Vec<u8>, text: &str) {
    block.extend_from_slice(&(text.len() as u32).to_be_bytes());
    block.extend_from_slice(text.as_bytes());
}

fn dictionary() -> Vec<u8> {
    let mut dictionary = Vec::new();
    WORDS.iter().chain([&LAST_WORD]).for_each(|word| put(&mut dictionary, word));
    dictionary.extend_from_slice(REST.as_bytes());
    dictionary
}

/// Opens streams. Their headers are compressed as one text.
pub struct Opener {
    compressor: Compress,
    next: u32,
}

impl Opener {
    pub fn new() -> Result<Self, String> {
        let mut compressor = Compress::new(Compression::default(), true);
        compressor.set_dictionary(&dictionary()).map_err(|error| error.to_string())?;
        Ok(Self { compressor, next: 1 })
    }

    /// The number of a new stream with this header, and the frame that opens it.
    pub fn open(&mut self, name: &str, value: &str) -> Result<(u32, Vec<u8>), String> {
        let mut block = 1_u32.to_be_bytes().to_vec();
        put(&mut block, name);
        put(&mut block, value);
        let mut packed = Vec::with_capacity(block.len() + 1024);
        let before = self.compressor.total_in();
        let status = self.compressor.compress_vec(&block, &mut packed, FlushCompress::Sync);
        let taken = self.compressor.total_in() - before;
        if !matches!(status, Ok(Status::Ok))
            || taken != block.len() as u64
            || packed.len() == packed.capacity()
        {
            return Err("the headers of a stream cannot be compressed".to_owned());
        }
        let stream = self.next;
        self.next += 2;
        // No other stream, and no priority.
        let payload = [&stream.to_be_bytes()[..], &[0; 6], &packed].concat();
        Ok((stream, control(OPEN, &payload)))
    }
}

fn control(kind: u32, payload: &[u8]) -> Vec<u8> {
    let head = [CONTROL | VERSION << 16 | kind, payload.len() as u32];
    [&head[0].to_be_bytes()[..], &head[1].to_be_bytes(), payload].concat()
}

pub fn data(stream: u32, payload: &[u8], is_last: bool) -> Vec<u8> {
    let flags = if is_last { LAST << 24 } else { 0 };
    [&stream.to_be_bytes()[..], &(flags | payload.len() as u32).to_be_bytes(), payload].concat()
}

pub fn ping(number: u32) -> Vec<u8> {
    control(PING, &number.to_be_bytes())
}

/// A frame from a server.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    Data {
        stream: u32,
        payload: Vec<u8>,
        is_last: bool,
    },
    /// The stream has ended before its last frame.
    Reset {
        stream: u32,
    },
    Ping(u32),
    GoAway,
    Other,
}

/// Reads a frame.
pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Frame> {
    let (kind, length) = (from.read_u32().await?, from.read_u32().await?);
    let (is_last, length) = (length >> 24 & LAST != 0, length & 0x00ff_ffff);
    if length > LONGEST {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut payload = vec![0; length as usize];
    from.read_exact(&mut payload).await?;
    if kind & CONTROL == 0 {
        return Ok(Frame::Data { stream: kind, payload, is_last });
    }
    let first = payload.first_chunk().map(|first| u32::from_be_bytes(*first));
    let number = first.ok_or(ErrorKind::InvalidData)?;
    Ok(match kind & 0xffff {
        RESET => Frame::Reset { stream: number },
        PING => Frame::Ping(number),
        GO_AWAY => Frame::GoAway,
        REPLY | HEADERS if is_last => Frame::Data { stream: number, payload: Vec::new(), is_last },
        _ => Frame::Other,
    })
}

#[cfg(test)]
mod tests {
    use flate2::{Decompress, FlushDecompress};

    use super::*;

    #[test]
    fn the_dictionary_is_spdy_s() {
        let dictionary = dictionary();
        let mut compressor = Compress::new(Compression::default(), true);
        let checksum = compressor.set_dictionary(&dictionary).expect("set");
        assert_eq!((dictionary.len(), checksum), (1423, 3_821_447_106));
    }

    #[tokio::test]
    async fn streams_are_opened_and_read() {
        let mut opener = Opener::new().expect("a dictionary");
        let mut decompressor = Decompress::new(true);
        let mut has_dictionary = false;
        for (number, kind) in [(1, "error"), (3, "stdin"), (5, "stdout")] {
            let (stream, frame) = opener.open("streamtype", kind).expect("opened");
            assert_eq!(stream, number);
            assert_eq!(&frame[..4], &[0x80, 3, 0, 1]);
            assert_eq!(frame[4..8], (frame.len() as u32 - 8).to_be_bytes());
            assert_eq!(&frame[8..18], &[0, 0, 0, number as u8, 0, 0, 0, 0, 0, 0]);
            let (mut packed, mut block) = (&frame[18..], Vec::with_capacity(1000));
            if !has_dictionary {
                let before = decompressor.total_in();
                decompressor
                    .decompress_vec(packed, &mut block, FlushDecompress::Sync)
                    .expect_err("asks for it");
                packed = &packed[usize::try_from(decompressor.total_in() - before).expect("short")..];
                decompressor.set_dictionary(&dictionary()).expect("set");
                has_dictionary = true;
            }
            decompressor.decompress_vec(packed, &mut block, FlushDecompress::Sync).expect("text");
            let mut want = vec![0, 0, 0, 1];
            put(&mut want, "streamtype");
            put(&mut want, kind);
            assert_eq!(block, want);
        }
        let mut said = [data(1, b"abc", false), data(1, b"", true), ping(2)].concat();
        said.extend(control(RESET, &[0, 0, 0, 5, 0, 0, 0, 1]));
        said.extend(control(REPLY, &[0, 0, 0, 3]));
        said.extend(control(GO_AWAY, &[0; 8]));
        let mut said = &*said;
        let mut next = async || read(&mut said).await.expect("a frame");
        assert_eq!(next().await, Frame::Data { stream: 1, payload: b"abc".to_vec(), is_last: false });
        assert_eq!(next().await, Frame::Data { stream: 1, payload: Vec::new(), is_last: true });
        assert_eq!(next().await, Frame::Ping(2));
        assert_eq!(next().await, Frame::Reset { stream: 5 });
        assert_eq!(next().await, Frame::Other);
        assert_eq!(next().await, Frame::GoAway);
        assert!(read(&mut &[0, 0, 0, 1, 0, 0xff, 0xff, 0xff][..]).await.is_err());
        assert!(read(&mut &control(RESET, &[1])[..]).await.is_err());
    }
}
