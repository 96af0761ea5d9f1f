//! The first line of a head: its method, its target and its version.

use std::borrow::Cow;
use std::fmt::Write as _;

use axum::http::Uri;
use memchr::memchr;

use super::byte_set::{PLAIN, TOKEN};
use super::refusal::{LONG_PATH, Refusal, bad};

/// The longest target that the `http` crate can hold, in bytes.
const LONGEST_TARGET: usize = 65_534;

/// The method, the target and the version of a request.
pub type RequestLine<'h> = (&'h [u8], &'h [u8], (u8, u8));

pub fn request_line(line: &[u8]) -> Result<RequestLine<'_>, Refusal> {
    let malformed = bad("malformed HTTP request");
    let first = line.iter().position(|byte| *byte == b' ').ok_or(malformed)?;
    let (method, rest) = (&line[..first], &line[first + 1..]);
    let second = memchr(b' ', rest).ok_or(malformed)?;
    let (target, version) = (&rest[..second], &rest[second + 1..]);
    if method.is_empty() || !TOKEN.has_all(method) {
        return Err(bad("invalid method"));
    }
    match version {
        [b'H', b'T', b'T', b'P', b'/', major @ b'0'..=b'9', b'.', minor @ b'0'..=b'9'] => {
            Ok((method, target, (major - b'0', minor - b'0')))
        }
        _ => Err(bad("malformed HTTP version")),
    }
}

/// A target that hyper reads.
pub struct Target<'h> {
    pub text: Cow<'h, [u8]>,
    /// A query that is too long for it.
    pub query: Option<String>,
}

pub fn judge_target(target: &[u8], is_connect: bool) -> Result<Target<'_>, Refusal> {
    let malformed = bad("invalid URL");
    let is_plain = PLAIN.has_all(target);
    if !is_plain && target.iter().any(u8::is_ascii_control) {
        return Err(bad("invalid control character in URL"));
    }
    if target.first() != Some(&b'/') && target != b"*" {
        if target.len() > LONGEST_TARGET {
            return Err(LONG_PATH);
        }
        let uri = Uri::try_from(target).map_err(|_| malformed)?;
        let is_whole = is_connect || uri.scheme().is_some();
        return match is_whole && has_whole_escapes(uri.path().as_bytes()) {
            true => Ok(Target { text: Cow::Borrowed(target), query: None }),
            false => Err(malformed),
        };
    }
    let path = memchr(b'?', target).map_or(target, |at| &target[..at]);
    if !has_whole_escapes(path) {
        return Err(malformed);
    }
    let text = match is_plain {
        true => Cow::Borrowed(target),
        false => Cow::Owned(escaped(target)),
    };
    if text.len() <= LONGEST_TARGET {
        return Ok(Target { text, query: None });
    }
    let path = memchr(b'?', &text).ok_or(LONG_PATH)?;
    if path + 1 + LONG.len() > LONGEST_TARGET {
        return Err(LONG_PATH);
    }
    let query = String::from_utf8_lossy(&text[path + 1..]).into_owned();
    let short = [&text[..=path], LONG.as_bytes()].concat();
    Ok(Target { text: Cow::Owned(short), query: Some(query) })
}

fn escaped(target: &[u8]) -> Vec<u8> {
    let mut text = String::with_capacity(target.len() + 16);
    for byte in target {
        match PLAIN.has(*byte) {
            true => text.push(char::from(*byte)),
            false => _ = write!(text, "%{byte:02X}"),
        }
    }
    text.into_bytes()
}

fn has_whole_escapes(path: &[u8]) -> bool {
    memchr::memchr_iter(b'%', path)
        .all(|at| path.get(at + 1..at + 3).is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)))
}

/// The query of a request whose own is too long for a [`Uri`]; a [`LongQuery`](super::head::LongQuery) stands in its extensions.
pub const LONG: &str = "~";
