//! Blocks of PEM, found as Go's `encoding/pem` finds them.

use rowplane_values::gotext::decode_base64;

use crate::certificate::Certificate;
use crate::error::Error;

const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"\n-----END ";
const DASHES: &[u8] = b"-----";

/// One block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub label: String,
    pub has_headers: bool,
    pub bytes: Vec<u8>,
}

/// All blocks of a text, and whether nothing beside them begins a block that this one passes over and others may read.
pub fn blocks(text: &[u8]) -> (Vec<Block>, bool) {
    let (mut found, mut is_pure, mut rest) = (Vec::new(), true, text);
    while let Some((block, before, after)) = next(rest) {
        is_pure &= find(before, BEGIN).is_none();
        found.push(block);
        rest = after;
    }
    (found, is_pure && find(rest, BEGIN).is_none())
}

/// The certificates of a text, as `ParseCertsPEM` of client-go reads them: blocks of other things and blocks with headers
/// are passed over, one that cannot be read is an error, and so is none.
pub fn certificates(text: &[u8]) -> Result<Vec<Certificate>, Error> {
    let blocks = blocks(text).0.into_iter();
    let wanted = blocks.filter(|block| block.label == "CERTIFICATE" && !block.has_headers);
    wanted.map(|block| Certificate::parse(&block.bytes)).collect()
}

/// Whether Go's clients of TLS take a bundle of authorities that has any byte: if one of its certificates can be read. The error
/// is that of client-go's `rootCertPool`.
pub fn check_authorities(text: &[u8]) -> Result<(), String> {
    let (mut broken, mut rest) = (None, text);
    while let Some((block, _, after)) = next(rest) {
        rest = after;
        if block.label != "CERTIFICATE" || block.has_headers {
            continue;
        }
        match Certificate::parse(&block.bytes) {
            Ok(_) => return Ok(()),
            Err(error) => broken = broken.or(Some(format!("failed to parse certificate: {error}"))),
        }
    }
    let none = match rest {
        [] => "no valid certificate authority data seen",
        _ => "unable to parse bytes as PEM block",
    };
    Err(format!("unable to load root certificates: {}", broken.as_deref().unwrap_or(none)))
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// The line that comes first, without white space at its end, and what follows.
fn line(text: &[u8]) -> (&[u8], &[u8]) {
    let (line, rest) = match text.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &text[text.len()..]),
    };
    (line.trim_ascii_end(), rest)
}

/// The next block that is whole, with what stands before and after it.
fn next(text: &[u8]) -> Option<(Block, &[u8], &[u8])> {
    let mut from = 0;
    loop {
        let end = from + find(&text[from..], END)?;
        // The last line that begins a block before the one that ends it: others begin blocks without an end.
        let begins = (from..end).rev().find(|at| text[*at..end].starts_with(BEGIN));
        let begin = begins.filter(|at| *at == from && from == 0 || text[..*at].ends_with(b"\n"));
        let whole = begin.and_then(|begin| Some((block(&text[begin..], end - begin)?, begin)));
        if let Some(((block, length), begin)) = whole {
            return Some((block, &text[..begin], &text[begin + length..]));
        }
        from = end + END.len();
    }
}

/// The block that begins here and whose last line begins behind `end`, and how long it is.
fn block(text: &[u8], end: usize) -> Option<(Block, usize)> {
    let (first, mut rest) = line(&text[BEGIN.len()..]);
    let label = first.strip_suffix(DASHES)?;
    let mut has_headers = false;
    while line(rest).0.contains(&b':') {
        has_headers = true;
        rest = line(rest).1;
    }
    let start = text.len() - rest.len();
    if has_headers && start > end + 1 {
        return None;
    }
    let closing = text[end + END.len()..].strip_prefix(label)?.strip_prefix(DASHES)?;
    let (after, left) = line(closing);
    if !after.is_empty() {
        return None;
    }
    let data = text.get(start..end).unwrap_or_default();
    let data: Vec<u8> = data.iter().copied().filter(|byte| !b" \t".contains(byte)).collect();
    let bytes = decode_base64(std::str::from_utf8(&data).ok()?).ok()?;
    let label = String::from_utf8_lossy(label).into_owned();
    Some((Block { label, has_headers, bytes }, text.len() - left.len()))
}
