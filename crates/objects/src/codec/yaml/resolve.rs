//! The types of scalars in YAML 1.1, as go-yaml knows them, and how Go prints them.

use crate::gotext;
use crate::tree::Value;

/// The value of a scalar.
#[derive(Debug, PartialEq)]
pub(super) enum Resolved {
    Null,
    Bool(bool),
    Int(i64),
    /// A number above the range of `Int`.
    Uint(u64),
    Float(f64),
    /// The content of `!!binary`.
    Bytes(Vec<u8>),
    Text,
    /// A time that go-yaml recognizes, and leaves a text.
    Timestamp,
}

const NAMESPACE: &str = "tag:yaml.org,2002:";

pub(super) fn is_merge(text: &str, tag: &str, is_plain: bool) -> bool {
    text == "<<" && (is_plain || tag == "tag:yaml.org,2002:merge")
}

/// The value of a scalar with a tag, or of a plain one without (`tag` is empty). The error is go-yaml's whole text.
pub(super) fn resolve(tag: &str, text: &str) -> Result<Resolved, String> {
    let Some(short) = tag.strip_prefix(NAMESPACE).or(tag.is_empty().then_some("")) else {
        return Ok(Resolved::Text);
    };
    match (short, plain(text, matches!(short, "" | "timestamp"))) {
        ("", found)
        | ("bool", found @ Resolved::Bool(_))
        | ("int", found @ (Resolved::Int(_) | Resolved::Uint(_)))
        | ("float", found @ Resolved::Float(_))
        | ("null", found @ Resolved::Null)
        | ("timestamp", found @ Resolved::Timestamp) => Ok(found),
        ("float", Resolved::Int(value)) => Ok(Resolved::Float(value as f64)),
        ("bool" | "int" | "float" | "null" | "timestamp", found) => {
            let name = found.name();
            Err(format!("yaml: cannot decode !!{name} `{text}` as a !!{short}"))
        }
        ("binary", _) => gotext::decode_base64(text)
            .map(Resolved::Bytes)
            .map_err(|_| "yaml: !!binary value contains invalid base64 data".to_owned()),
        _ => Ok(Resolved::Text),
    }
}

impl Resolved {
    fn name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::Uint(_) => "int",
            Self::Float(_) => "float",
            Self::Bytes(_) => "binary",
            Self::Text => "str",
            Self::Timestamp => "timestamp",
        }
    }
}

/// The value of a plain scalar without a tag. Times are looked for if `timed`.
pub(super) fn plain(text: &str, timed: bool) -> Resolved {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Resolved::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Resolved::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Resolved::Bool(false)
        }
        ".nan" | ".NaN" | ".NAN" => Resolved::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Resolved::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Resolved::Float(f64::NEG_INFINITY),
        _ => match text.as_bytes()[0] {
            b'.' => fraction(text).map_or(Resolved::Text, Resolved::Float),
            b'0'..=b'9' | b'+' | b'-' if timed && gotext::is_yaml_timestamp(text) => Resolved::Timestamp,
            b'0'..=b'9' | b'+' | b'-' => number(&text.replace('_', "")),
            _ => Resolved::Text,
        },
    }
}

fn number(text: &str) -> Resolved {
    integer(text).or_else(|| decimal(text).map(Resolved::Float)).unwrap_or(Resolved::Text)
}

/// `strconv.ParseInt` and `ParseUint` with base 0.
fn integer(text: &str) -> Option<Resolved> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &unsigned[2..]),
        [b'0', b'b' | b'B', ..] => (2, &unsigned[2..]),
        [b'0', b'o' | b'O', ..] => (8, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return None;
    }
    let value = u64::from_str_radix(digits, radix).ok()?;
    let is_negative = text.starts_with('-');
    match i64::try_from(value) {
        Ok(value) => Some(Resolved::Int(if is_negative { -value } else { value })),
        Err(_) if is_negative && value == 1 << 63 => Some(Resolved::Int(i64::MIN)),
        Err(_) if unsigned.len() == text.len() => Some(Resolved::Uint(value)),
        Err(_) => None,
    }
}

/// A floating-point number without the spellings that are only Go's or Rust's; `None` if it is too large.
fn decimal(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_decimal = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && unsigned.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    is_decimal.then(|| text.parse().ok()).flatten().filter(|value: &f64| value.is_finite())
}

/// A number that starts with a point: its underscores must stand between digits.
fn fraction(text: &str) -> Option<f64> {
    let is_digit = |part: Option<&str>, at: fn(&str) -> Option<char>| {
        part.and_then(at).is_some_and(|c| c.is_ascii_digit())
    };
    let mut parts = text.split('_').peekable();
    while let Some(part) = parts.next() {
        let between = is_digit(Some(part), |part| part.chars().next_back())
            && is_digit(parts.peek().copied(), |part| part.chars().next());
        if parts.peek().is_some() && !between {
            return None;
        }
    }
    decimal(&text.replace('_', ""))
}

/// Numbers in base 60, such as 12:30, which go-yaml does not read, but quotes.
pub(super) fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let sixtieth = |part: &str| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    whole.contains(':')
        && first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && parts.all(sixtieth)
        && digits(fraction)
}

/// `encoding/json` about numbers that are not finite.
pub(super) fn not_finite(value: f64) -> String {
    let name = match value {
        f64::INFINITY => "+Inf",
        f64::NEG_INFINITY => "-Inf",
        _ => "NaN",
    };
    format!("json: unsupported value: {name}")
}

/// A number as a key of JSON: the shortest spelling that is right in 32 bits.
pub(super) fn float_key(value: f64) -> String {
    let narrow = value as f32;
    match narrow {
        f32::INFINITY => ".inf".to_owned(),
        f32::NEG_INFINITY => "-.inf".to_owned(),
        narrow if narrow.is_nan() => ".nan".to_owned(),
        // The shortest decimal of the narrow number is the same text if it is parsed with more bits.
        narrow => gotext::display_float(narrow.to_string().parse().unwrap_or(value)),
    }
}

/// The text that `fmt` prints for `%#v` of a decoded value.
pub(super) fn go_syntax(value: &Value, is_whole: bool) -> String {
    match value {
        Value::Null if is_whole => "<nil>".to_owned(),
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => gotext::quote(text),
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            format!("{:#x}", number.as_u64().unwrap_or_default())
        }
        Value::Number(number) if number.is_f64() => {
            gotext::display_float(number.as_f64().unwrap_or_default())
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| go_syntax(item, false)).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            let members: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("{}:{}", gotext::quote(key), go_syntax(value, false)))
                .collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", members.join(", "))
        }
        other => other.to_string(),
    }
}
