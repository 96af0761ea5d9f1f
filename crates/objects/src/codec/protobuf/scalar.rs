//! Scalars, times and quantities as their JSON has them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::civil::DateTime;

use super::Error;
use super::fields::Wire;
use crate::gotext::{time_of_unix_micros, utf8};
use crate::quantity;
use crate::schema::types::FieldKind;
use crate::tree::{Number, Value};

/// Go's zero time, 0001-01-01T00:00:00Z.
const ZERO_TIME: i64 = -62_135_596_800;

/// A number, boolean, string or bytes as Go prints them.
pub(super) fn scalar(kind: FieldKind, wire: Wire<'_>) -> Result<Value, Error> {
    Ok(match (kind, wire) {
        (FieldKind::Bool, Wire::Varint(value)) => (value != 0).into(),
        // Upstream truncates to 32 bits.
        (FieldKind::Int32, Wire::Varint(value)) => (value as i32).into(),
        (_, Wire::Varint(value)) => (value as i64).into(),
        (_, Wire::Fixed64(bits)) => number(f64::from_bits(bits))?,
        (FieldKind::Bytes, Wire::Bytes(value)) => STANDARD.encode(value).into(),
        (_, Wire::Bytes(value)) => utf8(value).into(),
    })
}

/// A number as Go prints it: integral values have no fraction.
pub(super) fn number(value: f64) -> Result<Value, Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Ok((value as i64).into());
    }
    Number::from_f64(value).map(Value::Number).ok_or(Error::Number(value))
}

/// A time in UTC; `None` for Go's zero time.
pub(super) fn time(seconds: i64) -> Result<Option<DateTime>, Error> {
    micro_time(seconds, 0)
}

/// Like [`time`], with microseconds.
pub(super) fn micro_time(seconds: i64, nanos: i64) -> Result<Option<DateTime>, Error> {
    let micros = nanos / 1000;
    if (seconds, micros) == (ZERO_TIME, 0) {
        return Ok(None);
    }
    let micros = seconds.checked_mul(1_000_000).and_then(|seconds| seconds.checked_add(micros));
    micros.and_then(time_of_unix_micros).map(Some).ok_or(Error::Time)
}

/// A quantity; an absent one is zero.
pub(super) fn quantity(sent: Option<&[u8]>) -> Result<Value, Error> {
    let Some(sent) = sent else { return Ok("0".into()) };
    Ok(quantity::normalize(&utf8(sent))?.into())
}
