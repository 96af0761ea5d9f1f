//! A body that comes in chunks, read as Go's `chunkedReader` reads it, and passed on without whatever hyper would judge
//! otherwise: extensions, trailers, and spellings of sizes.

use bytes::BytesMut;
use memchr::memchr;
use memchr::memmem;

use super::head::field;

/// The longest line that says how long a chunk is, with its end.
const LONGEST_LINE: usize = 4096;
/// Bytes that may stand between the data beyond what chunks need.
const MOST_EXCESS: u64 = 16 * 1024;
/// Bytes that a chunk may need beside twice its data.
const USUAL: u64 = 16;

#[derive(Debug, Default)]
pub struct Chunks {
    state: State,
    excess: u64,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Size,
    Data(u64),
    /// The line's end behind the data.
    End,
    Trailer,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    More,
    Done,
    /// The body cannot be read. What was passed on ends such that hyper says so.
    Broken,
}

impl Chunks {
    /// Passes on what is whole.
    pub fn pass(&mut self, raw: &mut BytesMut, ready: &mut BytesMut) -> Step {
        loop {
            match self.step(raw, ready) {
                Some(Step::Broken) => {
                    ready.extend_from_slice(b"x");
                    return Step::Broken;
                }
                Some(step) => return step,
                None => {}
            }
        }
    }

    /// `None` if there is more to do.
    fn step(&mut self, raw: &mut BytesMut, ready: &mut BytesMut) -> Option<Step> {
        match self.state {
            State::Size => {
                let Some(feed) = memchr(b'\n', raw) else {
                    return Some(if raw.len() >= LONGEST_LINE { Step::Broken } else { Step::More });
                };
                let line = raw.split_to(feed + 1);
                let Some(size) = self.size(&line) else { return Some(Step::Broken) };
                self.state = if size == 0 { State::Trailer } else { State::Data(size) };
                if size > 0 {
                    ready.extend_from_slice(format!("{size:x}\r\n").as_bytes());
                }
            }
            State::Data(left) => {
                if raw.is_empty() {
                    return Some(Step::More);
                }
                let part = usize::try_from(left).unwrap_or(usize::MAX).min(raw.len());
                ready.extend_from_slice(&raw.split_to(part));
                let left = left - part as u64;
                self.state = if left == 0 { State::End } else { State::Data(left) };
            }
            State::End => match &raw[..] {
                [b'\r', b'\n', ..] => {
                    ready.extend_from_slice(&raw.split_to(2));
                    self.state = State::Size;
                }
                [] | [b'\r'] => return Some(Step::More),
                _ => return Some(Step::Broken),
            },
            State::Trailer => return Some(trailer(raw, ready)),
        }
        None
    }

    /// The size that a line says.
    fn size(&mut self, line: &[u8]) -> Option<u64> {
        let text = line.strip_suffix(b"\r\n").filter(|text| !text.contains(&b'\r'))?;
        if line.len() > LONGEST_LINE {
            return None;
        }
        self.excess += text.len() as u64 + 2;
        let text = text.trim_ascii_end();
        let digits = &text[..memchr(b';', text).unwrap_or(text.len())];
        let is_number = (1..=16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit);
        let digits = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
        let size = u64::from_str_radix(digits, 16).ok()?;
        self.excess = self.excess.saturating_sub(USUAL.saturating_add(size.saturating_mul(2)));
        (self.excess <= MOST_EXCESS).then_some(size)
    }
}

/// Reads trailers away.
fn trailer(raw: &mut BytesMut, ready: &mut BytesMut) -> Step {
    let lines = match &raw[..] {
        [] | [b'\r'] => return Step::More,
        [b'\r', b'\n', ..] => 0,
        _ => match memmem::find(&raw[..raw.len().min(LONGEST_LINE)], b"\r\n\r\n") {
            Some(at) => at + 2,
            None if raw.len() >= LONGEST_LINE => return Step::Broken,
            None => return Step::More,
        },
    };
    let trailers = raw.split_to(lines + 2);
    let mut fields = trailers[..lines].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    if fields.any(|line| field(line.strip_suffix(b"\r").unwrap_or(line)).is_err()) {
        return Step::Broken;
    }
    ready.extend_from_slice(b"0\r\n\r\n");
    Step::Done
}
