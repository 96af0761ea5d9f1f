//! Names of hosts, and whether a certificate is for one of them.

use std::net::IpAddr;

use crate::certificate::Certificate;
use crate::error::Error;

/// Lists of more names than these are counted instead of shown.
const SHOWN: usize = 100;

impl Certificate {
    /// Checks that the certificate is for a host: an address, which may stand in brackets, or a name. Common names do not
    /// count.
    pub fn check_host(&self, host: &str) -> Result<(), Error> {
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let names = self.extensions.names.clone().unwrap_or_default();
        if let Ok(address) = bare.parse::<IpAddr>() {
            let is_same = |other: &IpAddr| other.to_canonical() == address.to_canonical();
            if names.addresses.iter().any(is_same) {
                return Ok(());
            }
            return Err(Error::Hostname(no_address(&names.addresses, bare)));
        }
        let wanted = host.to_ascii_lowercase();
        let is_host = is_host(&wanted, Form::Name);
        let matches = |name: &String| match is_host && self::is_host(name, Form::Pattern) {
            true => matches(name, &wanted),
            false => {
                let is_empty = |text: &str| text.is_empty() || text == ".";
                !is_empty(name) && !is_empty(&wanted) && name.eq_ignore_ascii_case(&wanted)
            }
        };
        if names.dns.iter().any(matches) {
            return Ok(());
        }
        Err(Error::Hostname(self.no_name(&names.dns, host)))
    }

    fn no_name(&self, names: &[String], host: &str) -> String {
        if self.extensions.names.is_none()
            && matches(self.subject_name.common_name(), &host.to_ascii_lowercase())
        {
            return "certificate relies on legacy Common Name field, use SANs instead".to_owned();
        }
        match names.len() {
            0 => format!("certificate is not valid for any names, but wanted to match {host}"),
            SHOWN.. => format!("certificate is valid for {} names, but none matched {host}", names.len()),
            _ => format!("certificate is valid for {}, not {host}", names.join(", ")),
        }
    }
}

fn no_address(addresses: &[IpAddr], host: &str) -> String {
    match addresses.len() {
        0 => format!("cannot validate certificate for {host} because it doesn't contain any IP SANs"),
        SHOWN.. => format!("certificate is valid for {} IP SANs, but none matched {host}", addresses.len()),
        _ => {
            let shown: Vec<String> = addresses.iter().map(|one| one.to_canonical().to_string()).collect();
            format!("certificate is valid for {}, not {host}", shown.join(", "))
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Name,
    /// May begin with `*.`.
    Pattern,
}

fn is_host(text: &str, form: Form) -> bool {
    let text = match form {
        Form::Name => text.strip_suffix('.').unwrap_or(text),
        Form::Pattern => text,
    };
    let is_label = |(at, label): (usize, &str)| {
        let is_star = form == Form::Pattern && at == 0 && label == "*";
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        is_star || (!label.is_empty() && !label.starts_with('-') && label.chars().all(is_plain))
    };
    text != "*" && text.split('.').enumerate().all(is_label)
}

/// Whether a pattern covers a name in lower case.
fn matches(pattern: &str, name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    if pattern.is_empty() {
        return false;
    }
    let pattern = pattern.to_ascii_lowercase();
    let (wanted, found): (Vec<&str>, Vec<&str>) = (pattern.split('.').collect(), name.split('.').collect());
    let fits =
        |(at, (wanted, found)): (usize, (&&str, &&str))| (at == 0 && *wanted == "*") || wanted == found;
    wanted.len() == found.len() && wanted.iter().zip(&found).enumerate().all(fits)
}

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
