//! Parts of a document, as Go's `http.ServeContent` reads `Range` and writes `multipart/byteranges`.

use std::ops::Range;

/// Why no part can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsatisfiable {
    #[error("invalid range")]
    Malformed,
    /// All parts begin behind the end.
    #[error("invalid range: failed to overlap")]
    Beyond,
}

/// The parts of `length` bytes that a header asks for, in its order. None means all of it: that is also what it costs
/// to ask for more bytes than there are.
pub fn parse(header: &str, length: usize) -> Result<Vec<Range<usize>>, Unsatisfiable> {
    let ranges = header.strip_prefix("bytes=").ok_or(Unsatisfiable::Malformed)?;
    let mut parts = Vec::new();
    let mut beyond = false;
    for range in ranges.split(',').map(str::trim).filter(|range| !range.is_empty()) {
        match part(range, length)? {
            Some(part) => parts.push(part),
            None => beyond = true,
        }
    }
    if parts.is_empty() && beyond {
        return Err(Unsatisfiable::Beyond);
    }
    let asked = parts.iter().map(Range::len).fold(0, usize::saturating_add);
    Ok(if asked > length { Vec::new() } else { parts })
}

/// One part; `None` if it begins behind the end.
fn part(range: &str, length: usize) -> Result<Option<Range<usize>>, Unsatisfiable> {
    let (first, last) = range.split_once('-').ok_or(Unsatisfiable::Malformed)?;
    let (first, last) = (first.trim(), last.trim());
    if first.is_empty() {
        return Ok(Some(length.saturating_sub(number(last)?)..length));
    }
    let first = number(first)?;
    if first >= length {
        return Ok(None);
    }
    let last = if last.is_empty() { length - 1 } else { number(last)? };
    if first > last {
        return Err(Unsatisfiable::Malformed);
    }
    Ok(Some(first..last.min(length - 1) + 1))
}

/// As Go reads a number that must not be negative: a plus sign may stand before it.
fn number(text: &str) -> Result<usize, Unsatisfiable> {
    let number: i64 = text.parse().map_err(|_| Unsatisfiable::Malformed)?;
    let negative = text.starts_with('-');
    usize::try_from(number).ok().filter(|_| !negative).ok_or(Unsatisfiable::Malformed)
}

/// Value of `Content-Range`. A part of no bytes ends before it begins, as upstream has it.
pub fn content_range(part: &Range<usize>, length: usize) -> String {
    format!("bytes {}-{}/{length}", part.start, part.end as i128 - 1)
}

/// Several parts as one body.
pub struct Multipart {
    pub content_type: String,
    pub body: Vec<u8>,
}

impl Multipart {
    /// Of parts of a document; `boundary` must not be found in them.
    pub fn new(parts: &[Range<usize>], document: &[u8], content_type: &str, boundary: &str) -> Self {
        const ROOM_FOR_HEADERS: usize = 256;
        let length: usize = parts.iter().map(|part| part.len() + ROOM_FOR_HEADERS).sum();
        let mut body = Vec::with_capacity(length);
        for (index, part) in parts.iter().enumerate() {
            let before = if index == 0 { "" } else { "\r\n" };
            let range = content_range(part, document.len());
            body.extend_from_slice(
                format!(
                    "{before}--{boundary}\r\nContent-Range: {range}\r\nContent-Type: {content_type}\r\n\r\n"
                )
                .as_bytes(),
            );
            body.extend_from_slice(&document[part.clone()]);
        }
        body.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        Self { content_type: format!("multipart/byteranges; boundary={boundary}"), body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What kube-apiserver 1.36 answers, of a document of 10 bytes.
    #[test]
    fn ranges_as_go_reads_them() {
        use Unsatisfiable::{Beyond, Malformed};
        type Parts = &'static [(usize, usize)];
        let cases: [(&str, Result<Parts, Unsatisfiable>); 26] = [
            ("bytes=0-3", Ok(&[(0, 4)])),
            ("bytes=4-", Ok(&[(4, 10)])),
            ("bytes=-3", Ok(&[(7, 10)])),
            ("bytes=-30", Ok(&[(0, 10)])),
            ("bytes=9-99", Ok(&[(9, 10)])),
            ("bytes= 1 - 2 ", Ok(&[(1, 3)])),
            ("bytes=+1-+2", Ok(&[(1, 3)])),
            ("bytes=-0", Ok(&[(10, 10)])),
            ("bytes=", Ok(&[])),
            ("bytes=,", Ok(&[])),
            ("bytes=,0-1", Ok(&[(0, 2)])),
            ("bytes=0-1,4-5", Ok(&[(0, 2), (4, 6)])),
            ("bytes=-5, 0-1", Ok(&[(5, 10), (0, 2)])),
            ("bytes=0-1,99-", Ok(&[(0, 2)])),
            ("bytes=0-4,5-9", Ok(&[(0, 5), (5, 10)])),
            ("bytes=0-4,0-9", Ok(&[])),
            ("bytes=10-", Err(Beyond)),
            ("bytes=10-3", Err(Beyond)),
            ("bytes=99-,98-", Err(Beyond)),
            ("bytes=3-2", Err(Malformed)),
            ("bytes=-", Err(Malformed)),
            ("bytes=--1", Err(Malformed)),
            ("bytes=a-b", Err(Malformed)),
            ("bytes=0-1,x", Err(Malformed)),
            ("bytes=0-9223372036854775808", Err(Malformed)),
            ("lines=1-2", Err(Malformed)),
        ];
        for (header, want) in cases {
            let want = want.map(|parts| parts.iter().map(|&(start, end)| start..end).collect::<Vec<_>>());
            assert_eq!(parse(header, 10), want, "{header}");
        }
    }

    #[test]
    fn several_parts_are_one_body() {
        let Multipart { content_type, body } =
            Multipart::new(&[0..2, 4..5, 9..9], b"abcdefghi", "text/plain", "B");
        assert_eq!(content_type, "multipart/byteranges; boundary=B");
        let want = "--B\r\nContent-Range: bytes 0-1/9\r\nContent-Type: text/plain\r\n\r\nab\r\n\
                    --B\r\nContent-Range: bytes 4-4/9\r\nContent-Type: text/plain\r\n\r\ne\r\n\
                    --B\r\nContent-Range: bytes 9-8/9\r\nContent-Type: text/plain\r\n\r\n\r\n--B--\r\n";
        assert_eq!(String::from_utf8_lossy(&body), want);
    }
}
