//! The formats of texts beyond those of metadata (apimachinery `util/validation`), with upstream's words: one message
//! per violated rule, empty means valid.

use crate::kinds::behavior::format;
use crate::kinds::behavior::format::regex_text;

/// A format: what is wrong with a text.
pub type Check = fn(&str) -> Vec<String>;

/// Names of ports of containers.
pub fn port_name(name: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if name.len() > 15 {
        messages.push(too_long(15));
    }
    let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if name.is_empty() || !name.bytes().all(known) {
        messages.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        messages.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        messages.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        messages.push("must not begin or end with a hyphen".to_owned());
    }
    messages
}

pub fn env_name(name: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if name.is_empty() {
        messages.push("environment variable name must be non-empty".to_owned());
    }
    if name.chars().any(|c| !matches!(c, ' '..='~') || c == '=') {
        messages.push(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
                .to_owned(),
        );
    }
    messages
}

/// Keys of config maps and secrets.
pub fn config_key(key: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if key.len() > format::SUBDOMAIN_MAX {
        messages.push(too_long(format::SUBDOMAIN_MAX));
    }
    let known = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if key.is_empty() || !key.bytes().all(known) {
        let rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'";
        messages.push(regex_text(rule, "[-._a-zA-Z0-9]+", &["key.name", "KEY_NAME", "key-name"]));
    }
    match key {
        "." | ".." => messages.push(format!("must not be '{key}'")),
        _ if key.starts_with("..") => messages.push("must not start with '..'".to_owned()),
        _ => {}
    }
    messages
}

pub fn percent(text: &str) -> Vec<String> {
    match text.strip_suffix('%') {
        Some(digits) if is_digits(digits) => Vec::new(),
        _ => {
            let rule = "a valid percent string must be a numeric string followed by an ending '%'";
            vec![regex_text(rule, "[0-9]+%", &["1%", "93%"])]
        }
    }
}

pub fn header_name(name: &str) -> Vec<String> {
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    let rule = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![regex_text(rule, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

const UNDERSCORED: &str = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";

/// Search domains of resolvers.
pub fn dns1123_subdomain_underscored(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > format::SUBDOMAIN_MAX {
        messages.push(too_long(format::SUBDOMAIN_MAX));
    }
    let label = |label: &str| {
        let label = label.strip_prefix('_').unwrap_or(label).as_bytes();
        let edge = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        label.first().is_some_and(edge)
            && label.last().is_some_and(edge)
            && label.iter().all(|b| edge(b) || matches!(b, b'-' | b'_'))
    };
    if !text.split('.').all(label) {
        let rule = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character";
        messages.push(regex_text(rule, &format!("{UNDERSCORED}(\\.{UNDERSCORED})*"), &["example.com"]));
    }
    messages
}

/// `*.example.com`.
pub fn wildcard_subdomain(text: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if text.len() > format::SUBDOMAIN_MAX {
        messages.push(too_long(format::SUBDOMAIN_MAX));
    }
    let rest = text.strip_prefix("*.");
    if !rest.is_some_and(format::is_subdomain) {
        let rule = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character";
        let regex = format!("\\*\\.{0}(\\.{0})*", format::LABEL);
        messages.push(regex_text(rule, &regex, &["*.example.com"]));
    }
    messages
}

pub fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

pub fn too_long(max: usize) -> String {
    format!("must be no more than {max} characters")
}
