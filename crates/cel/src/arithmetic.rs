//! Arithmetic operators on values (cel-go `common/types/overflow.go` and the types' own files).

use std::sync::Arc;

use crate::value::{Error, Value};

fn overflow(unsigned: bool) -> Error {
    Error::new(if unsigned { "unsigned integer overflow" } else { "integer overflow" })
}

/// The error of an operator for operands of the wrong types; it names the operator if the left one is wrong.
fn unfit<'a>(function: &str, left: bool) -> Result<Value<'a>, Error> {
    Err(if left { Error::new(format!("no such overload: {function}")) } else { Error::no_such_overload() })
}

pub fn add<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Error> {
    use Value::{Bytes, Double, Duration, Int, List, String, Timestamp, Uint};
    match (left, right) {
        (Int(one), Int(other)) => one.checked_add(*other).map(Int).ok_or_else(|| overflow(false)),
        (Uint(one), Uint(other)) => one.checked_add(*other).map(Uint).ok_or_else(|| overflow(true)),
        (Double(one), Double(other)) => Ok(Double(one + other)),
        (String(one), String(other)) => Ok(Value::string([&**one, &**other].concat())),
        (Bytes(one), Bytes(other)) => Ok(Bytes(Arc::from([&**one, &**other].concat()))),
        (List(one), List(other)) => one.plus(other).map(List),
        (Duration(one), Duration(other)) => {
            one.checked_add(*other).map(Duration).ok_or_else(|| overflow(false))
        }
        (Timestamp(at), Duration(span)) | (Duration(span), Timestamp(at)) => at.plus(*span).map(Timestamp),
        (left, _) => {
            let adds = matches!(
                left,
                Int(_) | Uint(_) | Double(_) | String(_) | Bytes(_) | List(_) | Duration(_) | Timestamp(_)
            );
            unfit("_+_", !adds)
        }
    }
}

pub fn subtract<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Error> {
    use Value::{Double, Duration, Int, Timestamp, Uint};
    match (left, right) {
        (Int(one), Int(other)) => one.checked_sub(*other).map(Int).ok_or_else(|| overflow(false)),
        (Uint(one), Uint(other)) => one.checked_sub(*other).map(Uint).ok_or_else(|| overflow(true)),
        (Double(one), Double(other)) => Ok(Double(one - other)),
        (Duration(one), Duration(other)) => {
            one.checked_sub(*other).map(Duration).ok_or_else(|| overflow(false))
        }
        (Timestamp(at), Duration(span)) => {
            let span = span.checked_neg().ok_or_else(|| overflow(false))?;
            at.plus(span).map(Timestamp)
        }
        (Timestamp(one), Timestamp(other)) => one.since(other).map(Duration).ok_or_else(|| overflow(false)),
        (left, _) => unfit("_-_", !matches!(left, Int(_) | Uint(_) | Double(_) | Duration(_) | Timestamp(_))),
    }
}

pub fn multiply<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Error> {
    use Value::{Double, Int, Uint};
    match (left, right) {
        (Int(one), Int(other)) => one.checked_mul(*other).map(Int).ok_or_else(|| overflow(false)),
        (Uint(one), Uint(other)) => one.checked_mul(*other).map(Uint).ok_or_else(|| overflow(true)),
        (Double(one), Double(other)) => Ok(Double(one * other)),
        (left, _) => unfit("_*_", !matches!(left, Int(_) | Uint(_) | Double(_))),
    }
}

pub fn divide<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Error> {
    use Value::{Double, Int, Uint};
    match (left, right) {
        (Int(_), Int(0)) | (Uint(_), Uint(0)) => Err(Error::new("division by zero")),
        (Int(one), Int(other)) => one.checked_div(*other).map(Int).ok_or_else(|| overflow(false)),
        (Uint(one), Uint(other)) => Ok(Uint(one / other)),
        (Double(one), Double(other)) => Ok(Double(one / other)),
        (left, _) => unfit("_/_", !matches!(left, Int(_) | Uint(_) | Double(_))),
    }
}

pub fn modulo<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Error> {
    use Value::{Int, Uint};
    match (left, right) {
        (Int(_), Int(0)) | (Uint(_), Uint(0)) => Err(Error::new("modulus by zero")),
        (Int(one), Int(other)) => one.checked_rem(*other).map(Int).ok_or_else(|| overflow(false)),
        (Uint(one), Uint(other)) => Ok(Uint(one % other)),
        (left, _) => unfit("_%_", !matches!(left, Int(_) | Uint(_))),
    }
}

pub fn negate<'a>(value: &Value<'a>) -> Result<Value<'a>, Error> {
    match value {
        Value::Int(number) => number.checked_neg().map(Value::Int).ok_or_else(|| overflow(false)),
        Value::Double(number) => Ok(Value::Double(-number)),
        Value::Duration(span) => span.checked_neg().map(Value::Duration).ok_or_else(|| overflow(false)),
        Value::Bool(_) => Err(Error::no_such_overload()),
        _ => unfit("-_", true),
    }
}
