//! Formats of strings and numbers, as kube-openapi's `strfmt` tells them.

mod email;
mod network;
mod number;
mod time;
mod uri;

use std::sync::LazyLock;

use super::ValueType;
use crate::regexp::Regexp;

/// A format that values are held to. Others mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    BsonObjectId,
    Byte,
    Cidr,
    CreditCard,
    Date,
    DateTime,
    Double,
    Duration,
    Email,
    Float,
    HexColor,
    Hostname,
    Int32,
    Int64,
    Ipv4,
    Ipv6,
    Isbn,
    Isbn10,
    Isbn13,
    LongName,
    Mac,
    Password,
    RgbColor,
    ShortName,
    Ssn,
    Uri,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
}

/// By their names without hyphens, which do not count.
const OF_TEXTS: [(&str, Format); 26] = [
    ("bsonobjectid", Format::BsonObjectId),
    ("byte", Format::Byte),
    ("cidr", Format::Cidr),
    ("creditcard", Format::CreditCard),
    ("date", Format::Date),
    ("datetime", Format::DateTime),
    ("duration", Format::Duration),
    ("email", Format::Email),
    ("hexcolor", Format::HexColor),
    ("hostname", Format::Hostname),
    ("ipv4", Format::Ipv4),
    ("ipv6", Format::Ipv6),
    ("isbn", Format::Isbn),
    ("isbn10", Format::Isbn10),
    ("isbn13", Format::Isbn13),
    ("k8slongname", Format::LongName),
    ("k8sshortname", Format::ShortName),
    ("mac", Format::Mac),
    ("password", Format::Password),
    ("rgbcolor", Format::RgbColor),
    ("ssn", Format::Ssn),
    ("uri", Format::Uri),
    ("uuid", Format::Uuid),
    ("uuid3", Format::Uuid3),
    ("uuid4", Format::Uuid4),
    ("uuid5", Format::Uuid5),
];

impl Format {
    /// The format that a schema of a type names, if its values are held to one.
    pub fn of(value_type: ValueType, name: &str) -> Option<Self> {
        match (value_type, name) {
            (_, "") => None,
            (ValueType::Any | ValueType::String, name) => {
                let plain = name.replace('-', "");
                OF_TEXTS.iter().find(|(known, _)| *known == plain).map(|(_, format)| *format)
            }
            (ValueType::Integer, "int32") => Some(Self::Int32),
            (ValueType::Integer, "int64") => Some(Self::Int64),
            (ValueType::Number, "float") => Some(Self::Float),
            (ValueType::Number, "double") => Some(Self::Double),
            _ => None,
        }
    }

    pub fn is_of_texts(self) -> bool {
        !matches!(self, Self::Int32 | Self::Int64 | Self::Float | Self::Double)
    }

    /// Whether a text has the format.
    pub fn takes(self, text: &str) -> bool {
        match self {
            Self::Int32 | Self::Int64 | Self::Float | Self::Double | Self::Password => true,
            Self::BsonObjectId => text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()),
            Self::Byte => is_base64(text),
            Self::Cidr => network::is_cidr(text),
            Self::CreditCard => number::is_credit_card(text),
            Self::Date => time::is_date(text),
            Self::DateTime => time::is_date_time(text),
            Self::Duration => time::is_duration(text),
            Self::Email => email::is_email(text),
            Self::HexColor => is_hex_color(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.contains('.') && network::ip_sloppy(text).is_some(),
            Self::Ipv6 => text.contains(':') && network::ip(text).is_some(),
            Self::Isbn => number::is_isbn10(text) || number::is_isbn13(text),
            Self::Isbn10 => number::is_isbn10(text),
            Self::Isbn13 => number::is_isbn13(text),
            Self::LongName => text.len() <= 253 && text.split('.').all(is_name_part),
            Self::Mac => network::is_mac(text),
            Self::RgbColor => is_rgb_color(text),
            Self::ShortName => text.len() <= 63 && is_name_part(text),
            Self::Ssn => number::is_ssn(text),
            Self::Uri => uri::is_request_uri(text),
            Self::Uuid => is_uuid(text, |_, _| true),
            Self::Uuid3 => is_uuid(text, |at, digit| at != 12 || digit == b'3'),
            Self::Uuid4 => is_uuid(text, |at, digit| match at {
                12 => digit == b'4',
                16 => matches!(digit, b'8' | b'9' | b'a' | b'b' | b'A' | b'B'),
                _ => true,
            }),
            Self::Uuid5 => is_uuid(text, |at, digit| match at {
                12 => digit == b'5',
                16 => matches!(digit, b'8' | b'9' | b'a' | b'b' | b'A' | b'B'),
                _ => true,
            }),
        }
    }
}

/// A part of a name of Kubernetes', of any length.
fn is_name_part(text: &str) -> bool {
    let is_inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && !text.starts_with('-') && !text.ends_with('-') && text.bytes().all(is_inner)
}

/// Padded, of the standard alphabet, and not empty.
fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || b == b'+' || b == b'/';
    !text.is_empty() && text.len().is_multiple_of(4) && digits.bytes().all(is_digit)
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// `rgb(0, 10, 255)`.
fn is_rgb_color(text: &str) -> bool {
    let inner = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')'));
    let Some(inner) = inner else { return false };
    let is_space = |c: char| matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ');
    let is_part = |part: &str| {
        let part = part.trim_matches(is_space);
        part.bytes().all(|b| b.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
            && part.parse::<u8>().is_ok()
    };
    inner.split(',').count() == 3 && inner.split(',').all(is_part)
}

/// 32 hexadecimal digits, in groups that may be told apart by hyphens; `fits` looks at each digit.
fn is_uuid(text: &str, fits: impl Fn(usize, u8) -> bool) -> bool {
    let mut digits = 0;
    let mut hyphen_before = false;
    for b in text.bytes() {
        match b {
            b'-' if !hyphen_before && matches!(digits, 8 | 12 | 16 | 20) => hyphen_before = true,
            b if b.is_ascii_hexdigit() && digits < 32 && fits(digits, b) => {
                (digits, hyphen_before) = (digits + 1, false);
            }
            _ => return false,
        }
    }
    digits == 32
}

/// A label, which may end with a hyphen, or several of which the last one has letters only.
fn is_hostname(text: &str) -> bool {
    if text.len() > 255 || text.split('.').any(|label| label.len() > 63) {
        return false;
    }
    let Some((labels, last)) = text.rsplit_once('.') else {
        let mut chars = text.chars();
        let first = chars.next();
        let rest = chars.as_str().strip_prefix('-').unwrap_or(chars.as_str());
        return first.is_some_and(is_of_label) && rest.chars().all(is_of_label);
    };
    let is_label = |label: &str| {
        let ends = [label.chars().next(), label.chars().next_back()];
        ends.iter().all(|end| end.is_some_and(is_of_label))
            && label.chars().all(|c| c == '-' || is_of_label(c))
    };
    labels.split('.').all(is_label) && last.chars().nth(1).is_some() && last.chars().all(is_letter)
}

fn is_letter(c: char) -> bool {
    static LETTER: LazyLock<Regexp> = LazyLock::new(|| Regexp::compile(r"^\p{L}$").expect("an expression"));
    c.is_ascii_alphabetic() || !c.is_ascii() && LETTER.is_match(c.encode_utf8(&mut [0; 4]))
}

/// A letter, a digit or a symbol.
fn is_of_label(c: char) -> bool {
    static SYMBOL: LazyLock<Regexp> = LazyLock::new(|| Regexp::compile(r"^\p{S}$").expect("an expression"));
    c.is_ascii_digit() || is_letter(c) || SYMBOL.is_match(c.encode_utf8(&mut [0; 4]))
}
