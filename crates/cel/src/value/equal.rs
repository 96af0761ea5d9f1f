//! Equality and order of values.

use std::cmp::Ordering;

use super::{Error, Value};

impl Value<'_> {
    pub fn equals(&self, other: &Self) -> Result<bool, Error> {
        if let Some(order) = self.compare_numbers(other) {
            return Ok(order == Some(Ordering::Equal));
        }
        Ok(match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::String(one), Self::String(other)) => **one == **other,
            (Self::Bytes(one), Self::Bytes(other)) => one == other,
            (Self::Timestamp(one), Self::Timestamp(other)) => one == other,
            (Self::Duration(one), Self::Duration(other)) => one == other,
            (Self::Type(one), Self::Type(other)) => one.to_string() == other.to_string(),
            (Self::List(one), Self::List(other)) => return one.equals(other),
            (Self::Map(one), Self::Map(other)) => return one.equals(other),
            (Self::Struct(one), Self::Struct(other)) => return one.equals(other),
            (Self::Optional(one), Self::Optional(other)) => match (one, other) {
                (Some(one), Some(other)) => return one.equals(other),
                (one, other) => one.is_none() && other.is_none(),
            },
            (Self::Opaque(one), Self::Opaque(other)) => {
                return one.equals(other).ok_or_else(Error::no_such_overload);
            }
            (_, Self::Null) => false,
            // What an object's own is compared with has to be of its kind.
            (Self::List(list), _) if list.is_declared() => return Err(Error::no_such_overload()),
            (Self::Map(map), _) if map.is_declared() => return Err(Error::no_such_overload()),
            (Self::Opaque(_), _) => return Err(Error::no_such_overload()),
            _ => false,
        })
    }

    /// `None` if one of them is no number, and within it for NaN.
    fn compare_numbers(&self, other: &Self) -> Option<Option<Ordering>> {
        Some(match (self, other) {
            (Self::Int(one), Self::Int(other)) => Some(one.cmp(other)),
            (Self::Uint(one), Self::Uint(other)) => Some(one.cmp(other)),
            (Self::Int(one), Self::Uint(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
            (Self::Uint(one), Self::Int(other)) => Some(i128::from(*one).cmp(&i128::from(*other))),
            (Self::Double(one), Self::Double(other)) => one.partial_cmp(other),
            (Self::Double(one), Self::Int(other)) => with_int(*one, *other),
            (Self::Int(one), Self::Double(other)) => with_int(*other, *one).map(Ordering::reverse),
            (Self::Double(one), Self::Uint(other)) => with_uint(*one, *other),
            (Self::Uint(one), Self::Double(other)) => with_uint(*other, *one).map(Ordering::reverse),
            _ => return None,
        })
    }

    pub fn compare(&self, other: &Self) -> Result<Ordering, Error> {
        if let Some(order) = self.compare_numbers(other) {
            return order.ok_or_else(|| Error::new("NaN values cannot be ordered"));
        }
        Ok(match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => one.cmp(other),
            (Self::String(one), Self::String(other)) => one[..].cmp(&other[..]),
            (Self::Bytes(one), Self::Bytes(other)) => one.cmp(other),
            (Self::Duration(one), Self::Duration(other)) => one.cmp(other),
            (Self::Timestamp(one), Self::Timestamp(other)) => {
                (one.seconds, one.nanos).cmp(&(other.seconds, other.nanos))
            }
            _ => return Err(Error::no_such_overload()),
        })
    }

    /// Whether there is an order among values of its type.
    pub fn is_ordered(&self) -> bool {
        use Value::{Bool, Bytes, Double, Duration, Int, String, Timestamp, Uint};
        matches!(
            self,
            Bool(_) | Int(_) | Uint(_) | Double(_) | String(_) | Bytes(_) | Timestamp(_) | Duration(_)
        )
    }
}

/// The order of a double and an integer, as cel-go finds it: in the range of integers, both are compared as doubles.
fn with_int(double: f64, int: i64) -> Option<Ordering> {
    if double < i64::MIN as f64 {
        return Some(Ordering::Less);
    }
    if double > i64::MAX as f64 {
        return Some(Ordering::Greater);
    }
    double.partial_cmp(&(int as f64))
}

fn with_uint(double: f64, uint: u64) -> Option<Ordering> {
    if double < 0.0 {
        return Some(Ordering::Less);
    }
    if double > u64::MAX as f64 {
        return Some(Ordering::Greater);
    }
    double.partial_cmp(&(uint as f64))
}
