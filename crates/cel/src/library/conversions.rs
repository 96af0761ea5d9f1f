//! From one type to another (cel-go `ConvertToType` of `common/types`).

use std::sync::Arc;

use rowplane_values::gotext::{parse_bool, parse_int, parse_uint};

use super::addresses::go_text;
use super::opaque::Opaque;
use crate::time::{Timestamp, duration_text, parse_duration};
use crate::value::{Error, Value};

/// Functions that planners may call on constants.
pub const FUNCTIONS: [&str; 10] =
    ["bool", "bytes", "double", "dyn", "duration", "int", "string", "timestamp", "type", "uint"];

fn unconvertible(value: &Value<'_>, to: &str) -> Error {
    Error::new(format!("type conversion error from '{}' to '{to}'", value.type_name()))
}

fn overflow(unsigned: bool) -> Error {
    Error::new(if unsigned { "unsigned integer overflow" } else { "integer overflow" })
}

/// `None` for arguments that there is no conversion of.
pub fn call<'a>(function: &str, value: &Value<'a>) -> Option<Result<Value<'a>, Error>> {
    Some(match (function, value) {
        ("dyn", value) => Ok(value.clone()),
        ("type", value) => Ok(Value::Type(Arc::new(value.type_of()))),
        ("bool", Value::Bool(_))
        | ("bytes", Value::Bytes(_))
        | ("double", Value::Double(_))
        | ("duration", Value::Duration(_))
        | ("int", Value::Int(_))
        | ("string", Value::String(_))
        | ("timestamp", Value::Timestamp(_))
        | ("uint", Value::Uint(_)) => Ok(value.clone()),
        ("bool", Value::String(text)) => {
            parse_bool(text).map(Value::Bool).ok_or_else(|| unconvertible(value, "bool"))
        }
        ("bytes", Value::String(text)) => Ok(Value::Bytes(text.as_bytes().into())),
        ("double", Value::Int(number)) => Ok(Value::Double(*number as f64)),
        ("double", Value::Uint(number)) => Ok(Value::Double(*number as f64)),
        ("double", Value::String(text)) => {
            parse_double(text).map(Value::Double).ok_or_else(|| unconvertible(value, "double"))
        }
        ("duration", Value::String(text)) => parse_duration(text)
            .map(Value::Duration)
            .ok_or_else(|| unconvertible(value, "google.protobuf.Duration")),
        ("int", value) => return to_int(value),
        ("uint", value) => return to_uint(value),
        ("timestamp", Value::Int(seconds)) => Timestamp::of_seconds(*seconds).map(Value::Timestamp),
        ("timestamp", Value::String(text)) => match Timestamp::parse(text) {
            Some(at) => at.map(Value::Timestamp),
            None => Err(unconvertible(value, "google.protobuf.Timestamp")),
        },
        ("string", value) if is_printable(value) => to_string(value).map(Value::string),
        _ => return None,
    })
}

fn is_printable(value: &Value<'_>) -> bool {
    match value {
        Value::Opaque(opaque) => matches!(&**opaque, Opaque::Ip(_) | Opaque::Cidr(_)),
        Value::Null
        | Value::List(_)
        | Value::Map(_)
        | Value::Struct(_)
        | Value::Optional(_)
        | Value::Type(_) => false,
        _ => true,
    }
}

fn to_int<'a>(value: &Value<'a>) -> Option<Result<Value<'a>, Error>> {
    Some(match value {
        Value::Double(number) => {
            let fits = number.is_finite() && *number > i64::MIN as f64 && *number < i64::MAX as f64;
            if fits { Ok(Value::Int(*number as i64)) } else { Err(overflow(false)) }
        }
        Value::Uint(number) => i64::try_from(*number).map(Value::Int).map_err(|_| overflow(false)),
        Value::Duration(nanos) => Ok(Value::Int(*nanos)),
        Value::Timestamp(at) => Ok(Value::Int(at.seconds)),
        Value::String(text) => parse_int(text).map(Value::Int).map_err(|_| unconvertible(value, "int")),
        _ => return None,
    })
}

fn to_uint<'a>(value: &Value<'a>) -> Option<Result<Value<'a>, Error>> {
    Some(match value {
        Value::Double(number) => {
            let fits = number.is_finite() && *number >= 0.0 && *number < 18_446_744_073_709_551_616.0;
            if fits { Ok(Value::Uint(*number as u64)) } else { Err(overflow(true)) }
        }
        Value::Int(number) => u64::try_from(*number).map(Value::Uint).map_err(|_| overflow(true)),
        Value::String(text) => parse_uint(text).map(Value::Uint).map_err(|_| unconvertible(value, "uint")),
        _ => return None,
    })
}

/// Go's `ParseFloat`, of decimal numbers.
fn parse_double(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text).to_ascii_lowercase();
    if matches!(&*unsigned, "inf" | "infinity" | "nan") {
        return if unsigned == "nan" && unsigned.len() != text.len() { None } else { text.parse().ok() };
    }
    let digits = unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".e+-".contains(&byte));
    text.parse::<f64>().ok().filter(|number| digits && number.is_finite())
}

pub fn to_string(value: &Value<'_>) -> Result<String, Error> {
    Ok(match value {
        Value::Bool(is) => is.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Double(number) => general(*number),
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Err(Error::new("invalid UTF-8 in bytes, cannot convert to string")),
        },
        Value::Timestamp(at) => at.text(),
        Value::Duration(nanos) => duration_text(*nanos),
        Value::Type(of) => of.to_string().split('(').next().unwrap_or_default().to_owned(),
        Value::Null => "null".to_owned(),
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Ip(address) => go_text(*address),
            Opaque::Cidr(cidr) => cidr.to_string(),
            _ => return Err(unconvertible(value, "string")),
        },
        _ => return Err(unconvertible(value, "string")),
    })
}

/// Go's `%g`.
fn general(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    // The shortest digits are taken for six where it is decided how they are shown.
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}
