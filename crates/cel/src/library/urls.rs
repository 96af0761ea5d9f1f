//! `url` (`apiserver/pkg/cel/library/urls.go`), by the rules of Go's `net/url`.

use std::sync::Arc;

use rowplane_values::gotext::quote;

use super::opaque::Opaque;
use crate::value::{Entries, Error, Key, Map, Value};

/// The parts of an absolute URL or path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    host: String,
    /// Decoded.
    path: Vec<u8>,
    /// The path as it was written, if that is a valid encoding of it, or else as Go encodes it.
    escaped: String,
    query: String,
    text: String,
}

impl Url {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The URL that `url.Parse` reads from a text that `url.ParseRequestURI` takes, too.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: String| format!("parse {}: {why}", quote(text));
        Self::read(text, text, true).map_err(wrong)?;
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        unescape(fragment, Mode::Fragment).map_err(wrong)?;
        Self::read(before, text, false).map_err(wrong)
    }

    fn read(text: &str, whole: &str, strict: bool) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() {
            return Err("empty url".to_owned());
        }
        let mut url = Self {
            scheme: String::new(),
            host: String::new(),
            path: b"*".to_vec(),
            escaped: "*".to_owned(),
            query: String::new(),
            text: whole.to_owned(),
        };
        if text == "*" {
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (mut rest, query) = match rest.split_once('?') {
            Some((rest, query)) => (rest, query),
            None => (rest, ""),
        };
        url.query = query.to_owned();
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                (url.path, url.escaped) = (Vec::new(), String::new());
                return Ok(url);
            }
            return Err("invalid URI for request".to_owned());
        }
        let authority = !url.scheme.is_empty() || !strict && !rest.starts_with("///");
        if authority && rest.starts_with("//") {
            let authority = &rest[2..];
            let end = authority.find('/').unwrap_or(authority.len());
            url.host = host_of(&authority[..end])?;
            rest = &authority[end..];
        }
        url.path = unescape(rest, Mode::Path)?;
        let plain = escape_path(&url.path);
        url.escaped = if is_valid_encoding(rest) { rest.to_owned() } else { plain };
        Ok(url)
    }

    /// The host without its port.
    fn hostname(&self) -> &str {
        let host = self.host.as_str();
        if let Some(end) = host.strip_prefix('[').and_then(|rest| rest.find(']')) {
            return &host[1..=end];
        }
        match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        }
    }

    fn port(&self) -> &str {
        match self.host.rsplit_once(':') {
            Some((_, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => port,
            _ => "",
        }
    }

    /// Names and their values; pairs that cannot be read are left out.
    fn queries<'a>(&self) -> Value<'a> {
        let mut found: Vec<(String, Vec<String>)> = Vec::new();
        for pair in self.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let read = |text: &str| {
                unescape(text, Mode::Query).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            };
            let (Ok(name), Ok(value)) = (read(name), read(value)) else { continue };
            match found.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => found.push((name, vec![value])),
            }
        }
        let mut entries = Entries::default();
        for (name, values) in found {
            entries.put(Key::String(name.into()), Value::texts(values));
        }
        Value::Map(Map::Owned(Arc::new(entries)))
    }
}

fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

/// The host of an authority, whose user is left out.
fn host_of(authority: &str) -> Result<String, String> {
    let host = match authority.rsplit_once('@') {
        None => authority,
        Some((user, host)) => {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
            if !user.bytes().all(known) {
                return Err("net/url: invalid userinfo".to_owned());
            }
            unescape(user, Mode::User)?;
            host
        }
    };
    if host.starts_with('[') {
        let Some(end) = host.rfind(']') else { return Err("missing ']' in host".to_owned()) };
        check_port(&host[end + 1..])?;
        let inner = &host[1..end];
        let (address, zone) = inner.split_once("%25").unwrap_or((inner, ""));
        let read = unescape(address, Mode::Host)?;
        let zone = unescape(zone, Mode::Zone)?;
        let zone =
            if zone.is_empty() { String::new() } else { format!("%{}", String::from_utf8_lossy(&zone)) };
        return Ok(format!("[{}{zone}]{}", String::from_utf8_lossy(&read), &host[end + 1..]));
    }
    if let Some((_, port)) = host.rsplit_once(':') {
        check_port(&host[host.len() - port.len() - 1..])?;
    }
    Ok(String::from_utf8_lossy(&unescape(host, Mode::Host)?).into_owned())
}

fn check_port(text: &str) -> Result<(), String> {
    let valid = match text.strip_prefix(':') {
        None => text.is_empty(),
        Some(port) => port.bytes().all(|byte| byte.is_ascii_digit()),
    };
    if valid { Ok(()) } else { Err(format!("invalid port {} after host", quote(text))) }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Path,
    Host,
    Zone,
    User,
    Query,
    Fragment,
}

/// The bytes that a part of a URL stands for, with its escapes decoded.
fn unescape(text: &str, mode: Mode) -> Result<Vec<u8>, String> {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                let byte = text
                    .get(at + 1..at + 3)
                    .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
                let Some(byte) = byte.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
                    let end = (at + 3).min(bytes.len());
                    let shown = String::from_utf8_lossy(&bytes[at..end]);
                    return Err(format!("invalid URL escape {}", quote(&shown)));
                };
                let shown = || format!("invalid URL escape {}", quote(&text[at..at + 3]));
                if mode == Mode::Host && byte < 0x80 && &text[at..at + 3] != "%25" {
                    return Err(shown());
                }
                if mode == Mode::Zone
                    && &text[at..at + 3] != "%25"
                    && byte != b' '
                    && should_escape(byte, Mode::Host)
                {
                    return Err(shown());
                }
                out.push(byte);
                at += 3;
            }
            b'+' if mode == Mode::Query => {
                out.push(b' ');
                at += 1;
            }
            byte => {
                if matches!(mode, Mode::Host | Mode::Zone) && byte < 0x80 && should_escape(byte, mode) {
                    let shown = quote(&text[at..=at]);
                    return Err(format!("invalid character {shown} in host name"));
                }
                out.push(byte);
                at += 1;
            }
        }
    }
    Ok(out)
}

fn should_escape(byte: u8, mode: Mode) -> bool {
    if byte.is_ascii_alphanumeric() {
        return false;
    }
    match byte {
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':' | b'[' | b']'
        | b'<' | b'>' | b'"'
            if matches!(mode, Mode::Host | Mode::Zone) =>
        {
            false
        }
        b'-' | b'_' | b'.' | b'~' => false,
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match mode {
            Mode::Path => byte == b'?',
            Mode::User => matches!(byte, b'@' | b'/' | b'?' | b':'),
            Mode::Fragment => false,
            _ => true,
        },
        _ => true,
    }
}

fn escape_path(path: &[u8]) -> String {
    let mut out = String::new();
    for byte in path {
        if should_escape(*byte, Mode::Path) {
            out.push_str(&format!("%{byte:02X}"));
        } else {
            out.push(char::from(*byte));
        }
    }
    out
}

/// Whether a path is written as it may be.
fn is_valid_encoding(path: &str) -> bool {
    path.bytes().all(|byte| match byte {
        b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b':' | b'@' | b'['
        | b']' | b'%' => true,
        byte => !should_escape(byte, Mode::Path),
    })
}

pub fn call<'a>(function: &str, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Error>> {
    if let ("url" | "isURL", Some(text)) = (function, arguments.first()?.as_str()) {
        return Some(match (function, Url::parse(text)) {
            ("isURL", read) => Ok(Value::Bool(read.is_ok())),
            (_, Ok(url)) => Ok(Value::Opaque(Arc::new(Opaque::Url(url)))),
            (_, Err(why)) => Err(Error::new(format!("URL parse error during conversion from string: {why}"))),
        });
    }
    let Value::Opaque(opaque) = arguments.first()? else { return None };
    let Opaque::Url(url) = &**opaque else { return None };
    Some(Ok(match function {
        "getScheme" => Value::string(&*url.scheme),
        "getHost" => Value::string(&*url.host),
        "getHostname" => Value::string(url.hostname()),
        "getPort" => Value::string(url.port()),
        "getEscapedPath" => Value::string(&*url.escaped),
        "getQuery" => url.queries(),
        _ => return None,
    }))
}
