//! The judgement of one request's head, as Go's net/http makes it (`readRequest` in net/http, `ReadMIMEHeader` in net/textproto).

use std::borrow::Cow;

use axum::http::{HeaderName, HeaderValue};
use memchr::memchr;

use super::byte_set::{HOST, NAME, TOKEN, is_value};
use super::refusal::{
    ENCODING, EXPECTATION, INVALID_NAME, LONG_NAME, Refusal, TOO_LARGE, UNFINISHED, VERSION, bad,
};
use super::request_line::{judge_target, request_line};

/// Header lines that hyper reads without a larger table; more of them go beside the head.
const MOST_LINES: usize = 96;
/// Bytes of a head that goes through hyper's buffer; of a larger one, the headers go beside it.
const LARGE: usize = 128 << 10;
/// The longest name of a header that the `http` crate can hold, in bytes.
const LONGEST_NAME: usize = 65_535;

/// The query of a request that is longer than a [`Uri`](axum::http::Uri) holds, without its question mark.
#[derive(Clone, Debug)]
pub struct LongQuery(pub std::sync::Arc<str>);

/// How much body follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Length(u64),
    Chunked,
}

/// The kind of body that follows a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Following {
    pub framing: Framing,
    /// Whether the bytes behind the body may belong to another protocol.
    pub may_switch: bool,
    /// Whether the client waits for `100 Continue` until it sends the body.
    pub expects: bool,
    pub is_post: bool,
}

/// Parts of a head that hyper does not read.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Aside {
    pub query: Option<String>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The head is passed on as it stands.
    Plain(Following),
    /// Another head is passed on, which means the same with what stands beside it.
    Rewritten(Vec<u8>, Following, Aside),
    Refused(Refusal),
}

/// Judges a head, from its first byte to the end of its empty line.
pub fn judge(head: &[u8]) -> Verdict {
    match unfolded(head) {
        Cow::Borrowed(head) => judge_lines(head, false),
        Cow::Owned(head) => judge_lines(&head, true),
    }
    .unwrap_or_else(Verdict::Refused)
}

/// The end of the first head of these bytes, if it is there; it is known not to be before `from`.
pub fn end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(found) = memchr(b'\n', &bytes[at..]) {
        let next = at + found + 1;
        // Nothing can stand before the first line.
        if matches!(&bytes[..next], b"\n" | b"\r\n") {
            return Some(next);
        }
        match &bytes[next..] {
            [b'\n', ..] => return Some(next + 1),
            [b'\r', b'\n', ..] => return Some(next + 2),
            _ => at = next,
        }
    }
    None
}

/// A head whose continued lines were joined.
fn unfolded(head: &[u8]) -> Cow<'_, [u8]> {
    let is_folded = |at: usize| matches!(head.get(at + 1), Some(b' ' | b'\t'));
    let mut feeds = memchr::memchr_iter(b'\n', head);
    // A line that continues the request line is none.
    feeds.next();
    if !feeds.any(is_folded) {
        return Cow::Borrowed(head);
    }
    let mut flat: Vec<u8> = Vec::with_capacity(head.len());
    let mut rest = head;
    for at in 0.. {
        let Some((line, next)) = split_line(rest) else { break };
        rest = next;
        if at > 1 && matches!(line.first(), Some(b' ' | b'\t')) {
            flat.truncate(flat.trim_ascii_end().len());
            flat.push(b' ');
        }
        flat.extend(if at > 0 { trimmed(line) } else { line });
        flat.extend(b"\r\n");
    }
    Cow::Owned(flat)
}

/// A line without its end, and what follows it.
fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (line, rest) = bytes.split_at(memchr(b'\n', bytes)? + 1);
    let line = &line[..line.len() - 1];
    Some((line.strip_suffix(b"\r").unwrap_or(line), rest))
}

fn trimmed(text: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b' ' | b'\t');
    let start = text.iter().position(is_text).unwrap_or(text.len());
    let end = text.iter().rposition(is_text).map_or(start, |last| last + 1);
    &text[start..end]
}

fn judge_lines(head: &[u8], mut rewrites: bool) -> Result<Verdict, Refusal> {
    let (line, lines) = split_line(head).ok_or(UNFINISHED)?;
    let (method, target, version) = request_line(line)?;
    let target = judge_target(target, method == b"CONNECT")?;
    let fields = Fields::read(lines)?;
    let (major, minor) = version;
    let chunked = (major, minor) != (1, 0) && fields.chunked()?;
    let length = fields.length()?;
    fields.check_host(version, method)?;
    if fields.has_blank {
        return Err(INVALID_NAME);
    }
    let expects = fields.expects()?;
    // hyper knows two versions, and no encodings in the first.
    rewrites |= !matches!(version, (1, 0 | 1)) || version == (1, 0) && !fields.encodings.is_empty();
    // It would close the connection.
    rewrites |= chunked && !fields.lengths.is_empty();
    let aside = target.query.is_some() || fields.count > MOST_LINES || head.len() > LARGE;
    let following = Following {
        framing: if chunked { Framing::Chunked } else { Framing::Length(length) },
        may_switch: method == b"CONNECT" || fields.upgrades && version != (1, 0),
        expects: expects && version != (1, 0),
        is_post: method == b"POST",
    };
    if !rewrites && !aside && matches!(target.text, Cow::Borrowed(_)) {
        return Ok(Verdict::Plain(following));
    }
    let mut short = Vec::with_capacity(head.len().min(LARGE));
    short.extend(method);
    short.push(b' ');
    short.extend(&*target.text);
    short.extend(if version == (1, 0) { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" });
    let mut beside = Aside { query: target.query, headers: Vec::new() };
    let mut kept = 0;
    for (name, value) in Lines(lines).flatten() {
        let unused: &[u8] = if chunked { b"content-length" } else { b"transfer-encoding" };
        if name.eq_ignore_ascii_case(unused) {
            continue;
        }
        if aside && !is_read_by_hyper(name) {
            let name = HeaderName::from_bytes(name).map_err(|_| INVALID_NAME)?;
            let value = HeaderValue::from_bytes(value).map_err(|_| bad("invalid header value"))?;
            beside.headers.push((name, value));
            continue;
        }
        kept += 1;
        [name, b": ", value, b"\r\n"].iter().for_each(|part| short.extend(*part));
    }
    short.extend(b"\r\n");
    if kept > MOST_LINES || short.len() > 2 * LARGE {
        return Err(TOO_LARGE);
    }
    Ok(Verdict::Rewritten(short, following, beside))
}

/// Whether a header says how a connection goes on.
fn is_read_by_hyper(name: &[u8]) -> bool {
    ["host", "content-length", "transfer-encoding", "connection", "upgrade", "expect"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

/// The headers of a head, one for each line.
struct Lines<'h>(&'h [u8]);

impl<'h> Iterator for Lines<'h> {
    type Item = Result<(&'h [u8], &'h [u8]), Refusal>;

    fn next(&mut self) -> Option<Self::Item> {
        let (line, rest) = split_line(self.0)?;
        self.0 = rest;
        if line.is_empty() { None } else { Some(field(line)) }
    }
}

/// The name and the value of a header. Go finds fault with blanks in names only when everything else is right.
pub fn field(line: &[u8]) -> Result<(&[u8], &[u8]), Refusal> {
    // Names and methods are short: a search that is set up first would cost more than it saves.
    let colon = line.iter().position(|byte| *byte == b':').ok_or(bad("a header without a colon"))?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if name.is_empty() || !NAME.has_all(name) {
        return Err(INVALID_NAME);
    }
    if name.len() > LONGEST_NAME {
        return Err(LONG_NAME);
    }
    match is_value(value) {
        true => Ok((name, trimmed(value))),
        false => Err(bad("invalid header value")),
    }
}

/// The headers that say how a request is to be read.
#[derive(Default)]
struct Fields<'h> {
    count: usize,
    hosts: Vec<&'h [u8]>,
    encodings: Vec<&'h [u8]>,
    lengths: Vec<&'h [u8]>,
    upgrades: bool,
    has_blank: bool,
    expected: Option<&'h [u8]>,
}

impl<'h> Fields<'h> {
    fn read(lines: &'h [u8]) -> Result<Self, Refusal> {
        let mut fields = Self::default();
        for line in Lines(lines) {
            let (name, value) = line?;
            fields.count += 1;
            fields.has_blank |= !TOKEN.has_all(name);
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                4 if is("host") => fields.hosts.push(value),
                6 if is("expect") => fields.expected = fields.expected.or(Some(value)),
                7 if is("upgrade") => fields.upgrades = true,
                14 if is("content-length") => fields.lengths.push(value),
                17 if is("transfer-encoding") => fields.encodings.push(value),
                _ => {}
            }
        }
        if fields.hosts.len() > 1 {
            return Err(bad("too many Host headers"));
        }
        Ok(fields)
    }

    fn chunked(&self) -> Result<bool, Refusal> {
        match &self.encodings[..] {
            [] => Ok(false),
            [one] if one.eq_ignore_ascii_case(b"chunked") => Ok(true),
            _ => Err(ENCODING),
        }
    }

    /// The length of the body, unless it comes in chunks.
    fn length(&self) -> Result<u64, Refusal> {
        let Some((first, others)) = self.lengths.split_first() else { return Ok(0) };
        if others.iter().any(|other| other != first) {
            return Err(bad("more than one Content-Length"));
        }
        let length = Some(*first).filter(|digits| digits.iter().all(u8::is_ascii_digit));
        let length = length.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<i64>().ok());
        length.map(i64::unsigned_abs).ok_or(bad("bad Content-Length"))
    }

    fn check_host(&self, (major, minor): (u8, u8), method: &[u8]) -> Result<(), Refusal> {
        if major != 1 {
            return Err(VERSION);
        }
        match self.hosts.first() {
            None if minor > 0 && method != b"CONNECT" => Err(bad("missing required Host header")),
            Some(host) if !HOST.has_all(host) => Err(bad("malformed Host header")),
            _ => Ok(()),
        }
    }

    fn expects(&self) -> Result<bool, Refusal> {
        match self.expected {
            None | Some(b"") => Ok(false),
            Some(value) if value.eq_ignore_ascii_case(b"100-continue") => Ok(true),
            Some(_) => Err(EXPECTATION),
        }
    }
}
