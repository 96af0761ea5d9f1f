//! Names of domains, and the hosts of URIs.

/// Whether Go takes a text for a domain; a constraint may begin with a dot, and an empty text is one.
pub(crate) fn domain_is_valid(text: &str, is_constraint: bool) -> bool {
    if text.is_empty() {
        return true;
    }
    let labels = if is_constraint { text.strip_prefix('.').unwrap_or(text) } else { text };
    !text.ends_with('.')
        && labels.bytes().all(|byte| (33..=126).contains(&byte))
        && labels.split('.').all(|label| !label.is_empty())
}

/// The host of a URI, with its port if it has one; empty if the URI has none. The error is why Go does not parse it.
pub(crate) fn uri_host(uri: &str) -> Result<String, &'static str> {
    if uri.bytes().any(|byte| byte < 0x20 || byte == 0x7f) {
        return Err("invalid control character in URL");
    }
    let (uri, fragment) = uri.split_once('#').unwrap_or((uri, ""));
    check_escapes(fragment)?;
    let rest = match scheme_end(uri)? {
        Some(end) => &uri[end + 1..],
        None => uri,
    };
    let has_scheme = rest.len() < uri.len();
    let rest = rest.split_once('?').map_or(rest, |(path, _)| path);
    let Some(rest) = rest.strip_prefix("//") else {
        if has_scheme && !rest.starts_with('/') {
            // Opaque, such as `mailto:a@b`.
            return Ok(String::new());
        }
        if !rest.starts_with('/') && rest.split('/').next().is_some_and(|first| first.contains(':')) {
            return Err("first path segment in URL cannot contain colon");
        }
        return check_escapes(rest).map(|()| String::new());
    };
    let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    check_escapes(path)?;
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let is_user = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
    if user.is_some_and(|user| !user.chars().all(is_user)) {
        return Err("net/url: invalid userinfo");
    }
    check_escapes(user.unwrap_or_default())?;
    check_authority(host)?;
    Ok(host.to_owned())
}

/// The end of the scheme; `None` if there is none.
fn scheme_end(uri: &str) -> Result<Option<usize>, &'static str> {
    for (at, byte) in uri.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme"),
            b':' => return Ok(Some(at)),
            _ => return Ok(None),
        }
    }
    Ok(None)
}

fn check_escapes(text: &str) -> Result<(), &'static str> {
    let is_hex = |at: usize| text.as_bytes().get(at).is_some_and(u8::is_ascii_hexdigit);
    let are_whole = text.match_indices('%').all(|(at, _)| is_hex(at + 1) && is_hex(at + 2));
    if are_whole { Ok(()) } else { Err("invalid URL escape") }
}

/// A host without escapes, and a port of digits.
fn check_authority(host: &str) -> Result<(), &'static str> {
    let port = match host.strip_prefix('[') {
        Some(rest) => rest.rsplit_once(']').ok_or("missing ']' in host")?.1,
        None => host.rfind(':').map_or("", |at| &host[at..]),
    };
    let is_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    if !is_port {
        return Err("invalid port after host");
    }
    let is_host = |c: char| c.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"".contains(c);
    if host.chars().all(is_host) { Ok(()) } else { Err("invalid character in host name") }
}
