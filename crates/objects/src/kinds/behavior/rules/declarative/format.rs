//! The formats of declarative validation (apimachinery `pkg/api/validate/strfmt.go`): `k8s-short-name` is [`short_name`].

use crate::kinds::behavior::format as text_format;
use crate::kinds::behavior::format::regex_text;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;

/// A format: adds the errors of a text at this place.
pub type Check = fn(&At<'_, '_>, &str, &mut Errors);

const POOL_MAX: usize = 253;

/// The longest name of a device's attribute without its domain.
pub const ID_MAX: usize = 32;

/// The longest domain of a device's attribute.
pub const DOMAIN_MAX: usize = 63;

pub fn short_name(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    errors.invalid_each(at, text, text_format::short_name(text));
}

pub fn long_name(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    errors.invalid_each(at, text, text_format::long_name(text));
}

pub fn long_name_caseless(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    errors.invalid_each(at, text, text_format::long_name_caseless(text));
}

pub fn label_key(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    errors.invalid_each(at, text, text_format::label_key(text));
}

/// A label key with a prefix: `example.com/name`.
pub fn prefixed_label_key(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    errors.invalid_each(at, text, text_format::prefixed_label_key(text));
}

/// A UUID in lower case.
pub fn uuid(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    let fits = |(place, byte): (usize, u8)| match place {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    if text.len() != 36 || !text.bytes().enumerate().all(fits) {
        errors.invalid(at, text, "must be a lowercase UUID in 8-4-4-4-12 format");
    }
}

/// The name of a pool of devices: subdomains separated by slashes, for example `example.com/nodes/node-1`.
pub fn resource_pool_name(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    if text.len() > POOL_MAX {
        errors.too_long(at, POOL_MAX);
    }
    for (index, segment) in text.split('/').enumerate() {
        if segment.is_empty() {
            errors.invalid(at, text, &format!("segment {index}: must not be empty"));
            continue;
        }
        for message in text_format::long_name(segment) {
            errors.invalid(at, segment, &format!("segment {index}: {message}"));
        }
    }
}

/// A name by which Pods may ask for devices of a class.
pub fn extended_resource_name(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    if !text.contains('/') {
        errors.invalid(at, text, "a name must be a domain-prefixed path, such as 'example.com/my-prop'");
    } else if text.contains("kubernetes.io/") {
        errors.invalid(at, text, "must not have \"kubernetes.io/\" domain");
    }
    if text.starts_with("requests.") {
        errors.invalid(at, text, "must not have \"requests.\" prefix");
    }
    // A quota of it has this name.
    errors.invalid_each(at, text, text_format::label_key(&format!("requests.{text}")));
}

/// The name of a device's attribute with its domain: `dra.example.com/memory`. Names with several slashes are accepted, as
/// upstream does.
pub fn resource_fully_qualified_name(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    match text.split_once('/') {
        Some((_, name)) if name.contains('/') => {}
        Some((domain, name)) => {
            if domain.is_empty() {
                errors.invalid(at, "", "prefix must not be empty");
            } else {
                if domain.len() > DOMAIN_MAX {
                    errors.too_long(at, DOMAIN_MAX);
                }
                for message in text_format::long_name(domain) {
                    errors.invalid(at, domain, &format!("prefix: {message}"));
                }
            }
            if name.is_empty() {
                errors.invalid(at, "", "name must not be empty");
            } else {
                c_identifier(at, name, errors);
            }
        }
        None => {
            c_identifier(at, text, errors);
            let why = "a fully qualified name must be a domain and a name separated by a slash";
            errors.invalid(at, text, why);
        }
    }
}

/// An identifier in the style of C, of limited length.
pub fn c_identifier(at: &At<'_, '_>, id: &str, errors: &mut Errors) {
    if id.len() > ID_MAX {
        errors.too_long(at, ID_MAX);
    }
    let known = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let fits = id.bytes().all(known) && id.starts_with(|c: char| !c.is_ascii_digit());
    if !fits {
        let rule = "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or '_'";
        let examples = ["my_name", "MY_NAME", "MyName"];
        errors.invalid(at, id, &regex_text(rule, "[A-Za-z_][A-Za-z0-9_]*", &examples));
    }
}
