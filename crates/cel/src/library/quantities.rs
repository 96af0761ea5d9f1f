//! `quantity` (`apiserver/pkg/cel/library/quantity.go`).

use std::cmp::Ordering;
use std::sync::Arc;

use rowplane_values::quantity;

use super::opaque::Opaque;
use crate::value::{Error, Value};

/// An amount; two of them are equal by their numbers, however they are written.
#[derive(Clone, Debug)]
pub struct Quantity {
    /// Billionths.
    nanos: i128,
    /// Whether it was computed: upstream compares others with read ones only.
    pub computed: bool,
    /// A number and the power of ten that it counts, where upstream holds that.
    small: Option<(i64, i32)>,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Quantity {
    pub fn parse(text: &str) -> Result<Self, quantity::Error> {
        quantity::normalize(text)?;
        let nanos = quantity::nanos(text).unwrap_or_default();
        Ok(Self { nanos, computed: false, small: quantity::small(text) })
    }

    fn of_int(number: i64) -> Self {
        Self { nanos: i128::from(number) * 1_000_000_000, computed: false, small: Some((number, 0)) }
    }

    pub fn canonical(&self) -> String {
        self.nanos.to_string()
    }

    fn as_int(&self) -> Option<i64> {
        let (number, scale) = self.small?;
        number.checked_mul(10i64.checked_pow(u32::try_from(scale).ok()?)?)
    }

    fn approximately(&self) -> f64 {
        let (base, scale) = match self.small {
            Some((number, scale)) => (number as f64, scale),
            None => (self.nanos as f64, -9),
        };
        if scale == 0 { base } else { base * format!("1e{scale}").parse::<f64>().unwrap_or(1.0) }
    }

    fn plus(&self, other: &Self, sign: i128) -> Self {
        let small = match (self.small, other.small) {
            (Some((0, _)), Some((number, scale))) if sign > 0 => Some((number, scale)),
            (Some(one), Some((0, _))) if sign > 0 => Some(one),
            (Some(one), Some(other)) => small_sum(one, other, sign as i64),
            _ => None,
        };
        Self { nanos: self.nanos.saturating_add(sign * other.nanos), computed: true, small }
    }
}

/// The sum in the finer of two scales, if it fits.
fn small_sum(one: (i64, i32), other: (i64, i32), sign: i64) -> Option<(i64, i32)> {
    let scale = one.1.min(other.1);
    let at =
        |(number, of): (i64, i32)| number.checked_mul(10i64.checked_pow(u32::try_from(of - scale).ok()?)?);
    Some((at(one)?.checked_add(at(other)?.checked_mul(sign)?)?, scale))
}

fn quantity_of<'v>(value: Option<&'v Value<'_>>) -> Option<&'v Quantity> {
    match value? {
        Value::Opaque(opaque) => match &**opaque {
            Opaque::Quantity(quantity) => Some(quantity),
            _ => None,
        },
        _ => None,
    }
}

fn value<'a>(of: Quantity) -> Value<'a> {
    Value::Opaque(Arc::new(Opaque::Quantity(of)))
}

pub fn call<'a>(function: &str, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Error>> {
    if let ("quantity" | "isQuantity", Some(text)) = (function, arguments.first()?.as_str()) {
        return Some(match (function, Quantity::parse(text)) {
            ("isQuantity", read) => Ok(Value::Bool(read.is_ok())),
            (_, Ok(read)) => Ok(value(read)),
            (_, Err(why)) => Err(Error::new(why.to_string())),
        });
    }
    let one = quantity_of(arguments.first())?;
    let other = || match arguments.get(1)? {
        Value::Int(number) if matches!(function, "add" | "sub") => Some(Quantity::of_int(*number)),
        _ => quantity_of(arguments.get(1)).cloned(),
    };
    Some(Ok(match function {
        "sign" => Value::Int(one.nanos.signum() as i64),
        "isInteger" => Value::Bool(one.as_int().is_some()),
        "asInteger" => {
            return Some(
                one.as_int().map(Value::Int).ok_or_else(|| Error::new("cannot convert value to integer")),
            );
        }
        "asApproximateFloat" => Value::Double(one.approximately()),
        "add" => value(one.plus(&other()?, 1)),
        "sub" => value(one.plus(&other()?, -1)),
        "isLessThan" => Value::Bool(one.nanos < other()?.nanos),
        "isGreaterThan" => Value::Bool(one.nanos > other()?.nanos),
        "compareTo" => Value::Int(match one.nanos.cmp(&other()?.nanos) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }),
        _ => return None,
    }))
}
