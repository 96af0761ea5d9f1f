//! Scalars with a canonical text.

use jiff::Timestamp;

use super::super::Format;
use crate::gotext::{Fraction, decode_base64, json_kind, time_complaint};
use crate::quantity as quantities;
use crate::tree::{Text, Value};

/// Go's zero time, which is printed as null.
const ZERO_SECOND: i64 = -62_135_596_800;

/// Removes the line ends that Go's base64 decoder ignores.
pub(super) fn bytes(text: &mut Text) -> Result<(), String> {
    decode_base64(text)?;
    if text.contains(['\r', '\n']) {
        *text = text.replace(['\r', '\n'], "").into();
    }
    Ok(())
}

/// A byte given as a number; null is zero. The error names what was found instead.
pub(super) fn byte(value: &Value) -> Result<u8, String> {
    match value {
        Value::Null => Ok(0),
        Value::Number(number) => {
            let byte = number.as_u64().and_then(|number| u8::try_from(number).ok());
            byte.ok_or_else(|| format!("number {number}"))
        }
        other => Err(json_kind(other).to_owned()),
    }
}

/// Makes a quantity canonical. `spelling` is that of a number, if it is known.
pub(in super::super) fn quantity(value: &mut Value, spelling: Option<&str>) -> Result<(), String> {
    let text = match &*value {
        Value::String(text) => quantities::normalize(text.trim()),
        Value::Number(_) if let Some(spelling) = spelling => quantities::normalize(spelling),
        value => quantities::normalize(&value.to_string()),
    };
    let text = text.map_err(|error| error.to_string())?;
    if value.as_str() != Some(&*text) {
        *value = text.into();
    }
    Ok(())
}

/// A time in UTC with whole seconds, or with six digits of fraction; `None` if the text has this form already.
pub(in super::super) fn time(text: &str, format: Format) -> Result<Option<Value>, String> {
    let micro = format == Format::MicroTime;
    let parsed =
        (is_rfc3339(text) && (!micro || has_micros(text))).then(|| text.parse::<Timestamp>().ok()).flatten();
    let Some(time) = parsed else {
        let fraction = if micro { Fraction::Micros } else { Fraction::Any };
        let unusual = || format!("parsing time {text:?}: not a time of RFC 3339");
        return Err(time_complaint(text, fraction).unwrap_or_else(unusual));
    };
    let micros = time.as_microsecond();
    let (second, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    if second == ZERO_SECOND && (!micro || fraction == 0) {
        return Ok(Some(Value::Null));
    }
    let in_form = text.ends_with('Z') && text.len() == if micro { 27 } else { 20 };
    let printed = match micro {
        _ if in_form => return Ok(None),
        true => format!("{:.6}", Timestamp::from_microsecond(micros).unwrap_or(time)),
        false => Timestamp::from_second(second).unwrap_or(time).to_string(),
    };
    Ok(Some(printed.into()))
}

/// jiff's parser also accepts a blank or a small `t`, leap seconds, and other forms of offsets.
fn is_rfc3339(text: &str) -> bool {
    let bytes = text.as_bytes();
    let offset = matches!(bytes, [.., b'+' | b'-', _, _, b':', _, _]);
    bytes.get(10) == Some(&b'T') && bytes.get(17) != Some(&b'6') && (bytes.ends_with(b"Z") || offset)
}

fn has_micros(text: &str) -> bool {
    let fraction = text.get(19..).and_then(|rest| rest.strip_prefix('.'));
    fraction.is_some_and(|fraction| fraction.bytes().take_while(u8::is_ascii_digit).count() == 6)
}
