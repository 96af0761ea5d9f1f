//! Names of pools, attributes and other parts of devices.

use crate::kinds::behavior::format::{dns1123_subdomain, regex_text};
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::kinds::core::volume_source::driver_name;

const POOL_MAX: usize = 253;

const ID_MAX: usize = 32;

const DOMAIN_MAX: usize = 63;

/// The longest name of an attribute.
pub const KEY_MAX: usize = DOMAIN_MAX + 1 + ID_MAX;

/// Validates a pool's name: subdomains separated by slashes, for example `example.com/nodes/node-1`.
pub fn pool(at: &At<'_, '_>, errors: &mut Errors) {
    let name = at.text();
    if name.is_empty() {
        return errors.required(at, "");
    }
    if name.len() > POOL_MAX {
        errors.too_long(at, POOL_MAX);
    }
    for part in name.split('/') {
        errors.invalid_each(at, part, dns1123_subdomain(part));
    }
}

/// Validates a name such as `memory` or `dra.example.com/memory`. Names with several slashes are accepted, as upstream
/// does.
pub fn qualified(at: &At<'_, '_>, name: &str, errors: &mut Errors) {
    let Some((domain, id)) = name.split_once('/') else { return identifier(at, name, errors) };
    if id.contains('/') {
        return;
    }
    if domain.is_empty() {
        errors.invalid(at, "", "the domain must not be empty");
    } else {
        driver_name(at, domain, errors);
    }
    if id.is_empty() {
        errors.invalid(at, "", "the name must not be empty");
    } else {
        identifier(at, id, errors);
    }
}

pub fn fully_qualified(at: &At<'_, '_>, errors: &mut Errors) {
    let name = at.text();
    qualified(at, name, errors);
    if !name.contains('/') {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        errors.invalid(at, name, why);
    }
}

/// Validates an identifier in the style of C.
fn identifier(at: &At<'_, '_>, id: &str, errors: &mut Errors) {
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

/// Validates a UUID in its usual form. The errors are those of `github.com/google/uuid`.
pub fn uuid(at: &At<'_, '_>, errors: &mut Errors) {
    const MALFORMED: &str = "invalid UUID format";
    let text = at.text();
    let hex = |text: &str| text.bytes().all(|b| b.is_ascii_hexdigit());
    let dashed = |text: &str| {
        let lengths = text.split('-').map(str::len);
        if lengths.eq([8, 4, 4, 4, 12]) && text.split('-').all(hex) {
            Ok(())
        } else {
            Err(MALFORMED.to_owned())
        }
    };
    let judged = match (text.len(), text.is_ascii()) {
        (36, true) => dashed(text),
        (45, true) if !text[..9].eq_ignore_ascii_case("urn:uuid:") => {
            Err(format!("invalid urn prefix: {}", crate::gotext::quote(&text[..9])))
        }
        (45, true) => dashed(&text[9..]),
        (38, true) if !(text.starts_with('{') && text.ends_with('}')) => {
            Err("invalid bracketed UUID format".to_owned())
        }
        (38, true) => dashed(&text[1..37]),
        (32, true) if hex(text) => Ok(()),
        (32 | 36 | 38 | 45, _) => Err(MALFORMED.to_owned()),
        (length, _) => Err(format!("invalid UUID length: {length}")),
    };
    if let Err(why) = judged {
        errors.invalid(at, text, &format!("error validating uid: {why}"));
    } else if text.len() != 36 || text.bytes().any(|b| b.is_ascii_uppercase()) {
        let why = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters";
        errors.invalid(at, text, why);
    }
}
