//! The formats of names and keys, with upstream's texts (apimachinery `api/validate/content`).
//!
//! Each check returns one message per violated rule, in upstream's order; empty means valid.

/// A DNS label as a regular expression.
pub const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";

const KEY_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";

const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character";

const OLD_LABEL_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character";

/// The longest label value, label key (without prefix) or DNS label, in bytes.
pub const LABEL_MAX: usize = 63;

/// The longest DNS subdomain, in bytes.
pub const SUBDOMAIN_MAX: usize = 253;

/// A label key, annotation key or finalizer: `[prefix/]name`.
pub fn label_key(key: &str) -> Vec<String> {
    let mut messages = Vec::new();
    let mut parts = key.split('/');
    let name = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), None, _) => name,
        (Some(prefix), Some(name), None) => {
            messages.extend(key_prefix(prefix));
            name
        }
        _ => {
            let rule = regex_text(&format!("a valid label key {KEY_RULE}"), KEY, &KEY_EXAMPLES);
            let hint = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("{rule} {hint}")];
        }
    };
    if name.is_empty() {
        messages.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        messages.push(format!("name part {}", too_long(LABEL_MAX)));
    }
    if !is_key(name) {
        messages.push(regex_text(&format!("name part {KEY_RULE}"), KEY, &KEY_EXAMPLES));
    }
    messages
}

/// The judgement of [`label_key`] for a key that needs a prefix.
pub fn prefixed_label_key(key: &str) -> Vec<String> {
    let messages = label_key(key);
    if messages.is_empty() && !key.contains('/') {
        return vec!["must include a prefix (e.g. 'example.com/key')".to_owned()];
    }
    messages
}

const KEY_EXAMPLES: [&str; 3] = ["MyName", "my.name", "123-abc"];

fn key_prefix(prefix: &str) -> Vec<String> {
    if prefix.is_empty() {
        return vec!["prefix part must be non-empty".to_owned()];
    }
    let mut messages = Vec::new();
    if prefix.len() > SUBDOMAIN_MAX {
        messages.push(format!("prefix part {}", too_long(SUBDOMAIN_MAX)));
    }
    if !is_subdomain(prefix) {
        messages.push(format!("prefix part {}", subdomain_text()));
    }
    messages
}

/// A label's value.
pub fn label_value(value: &str) -> Vec<String> {
    let mut messages = Vec::new();
    if value.len() > LABEL_MAX {
        messages.push(too_long(LABEL_MAX));
    }
    if !value.is_empty() && !is_key(value) {
        messages.push(regex_text(VALUE_RULE, &format!("({KEY})?"), &["MyValue", "my_value", "12345"]));
    }
    messages
}

/// `a.b-c`: the name format of most kinds.
pub fn dns1123_subdomain(value: &str) -> Vec<String> {
    let mut messages = length(value, SUBDOMAIN_MAX);
    if !is_subdomain(value) {
        messages.push(subdomain_text());
    }
    messages
}

fn subdomain_text() -> String {
    regex_text(SUBDOMAIN_RULE, &format!("{LABEL}(\\.{LABEL})*"), &["example.com"])
}

/// The judgement of [`dns1123_subdomain`], in any case and in the words of upstream's declared rules (`k8s-long-name-caseless`).
pub fn long_name_caseless(value: &str) -> Vec<String> {
    const RULE: &str = "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character";
    let mut messages = Vec::new();
    if value.len() > SUBDOMAIN_MAX {
        messages.push(too_long(SUBDOMAIN_MAX));
    }
    if !is_subdomain(&value.to_ascii_lowercase()) {
        messages.push(regex_text(RULE, &format!("{LABEL}(\\.{LABEL})*"), &["Example.com"]));
    }
    messages
}

/// The judgement of [`dns1123_subdomain`], in the words of upstream's declared rules (`k8s-long-name`).
pub fn long_name(value: &str) -> Vec<String> {
    let mut messages = dns1123_subdomain(value);
    if value.len() > SUBDOMAIN_MAX {
        messages[0] = too_long(SUBDOMAIN_MAX);
    }
    messages
}

/// The judgement of [`dns1123_label`], in the words of upstream's declared rules (`k8s-short-name`).
pub fn short_name(value: &str) -> Vec<String> {
    let mut messages = dns1123_label(value);
    if value.len() > LABEL_MAX {
        messages[0] = too_long(LABEL_MAX);
    }
    messages
}

/// `a-b`: the name format of namespaces.
pub fn dns1123_label(value: &str) -> Vec<String> {
    let mut messages = length(value, LABEL_MAX);
    if !is_label(value) {
        messages.push(if is_subdomain(value) {
            "must not contain dots".to_owned()
        } else {
            regex_text(LABEL_RULE, LABEL, &["my-name", "123-abc"])
        });
    }
    messages
}

/// `a-b`, not starting with a digit.
pub fn dns1035_label(value: &str) -> Vec<String> {
    let mut messages = length(value, LABEL_MAX);
    if !is_label(value) || value.starts_with(|c: char| c.is_ascii_digit()) {
        let regex = "[a-z]([-a-z0-9]*[a-z0-9])?";
        messages.push(regex_text(OLD_LABEL_RULE, regex, &["my-name", "abc-123"]));
    }
    messages
}

/// Anything that can stand between two slashes of a URL. Empty passes, like upstream.
pub fn path_segment(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        _ => path_segment_prefix(name),
    }
}

/// The start of a path segment.
pub fn path_segment_prefix(name: &str) -> Vec<String> {
    let banned = ["/", "%"].into_iter().filter(|part| name.contains(part));
    banned.map(|part| format!("may not contain '{part}'")).collect()
}

fn length(value: &str, max: usize) -> Vec<String> {
    if value.len() > max { vec![format!("must be no more than {max} characters")] } else { Vec::new() }
}

/// Upstream's newer code says bytes.
fn too_long(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

/// The text about a regular expression that does not match.
pub fn regex_text(rule: &str, regex: &str, examples: &[&str]) -> String {
    let quoted: Vec<String> = examples.iter().map(|example| format!("'{example}'")).collect();
    format!("{rule} (e.g. {}, regex used for validation is '{regex}')", quoted.join(",  or "))
}

fn is_key(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    framed(text, |b| b.is_ascii_alphanumeric(), inner)
}

pub fn is_label(text: &str) -> bool {
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    framed(text, edge, |b| edge(b) || b == b'-')
}

pub fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

fn framed(text: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    match text.as_bytes() {
        [] => false,
        [only] => edge(*only),
        [first, middle @ .., last] => edge(*first) && edge(*last) && middle.iter().all(|b| inner(*b)),
    }
}
