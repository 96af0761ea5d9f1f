//! Optionals (cel-go `cel/library.go`).

use crate::value::{Error, Value};

pub fn call<'a>(function: &str, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Error>> {
    Some(Ok(match (function, arguments) {
        ("optional.none", []) => Value::none(),
        ("optional.of", [value]) => Value::some(value.clone()),
        ("optional.ofNonZeroValue", [value]) => {
            if value.is_zero() {
                Value::none()
            } else {
                Value::some(value.clone())
            }
        }
        ("hasValue", [Value::Optional(inner)]) => Value::Bool(inner.is_some()),
        ("value", [Value::Optional(inner)]) => {
            return Some(match inner {
                Some(inner) => Ok((**inner).clone()),
                None => Err(Error::new("optional.none() dereference")),
            });
        }
        ("optional.unwrap" | "unwrapOpt", [Value::List(list)]) => {
            let mut values = Vec::new();
            for item in list.iter() {
                match item {
                    Ok(Value::Optional(Some(inner))) => values.push((*inner).clone()),
                    Ok(Value::Optional(None)) => {}
                    Ok(other) => {
                        return Some(Err(Error::new(format!("value {} is not optional", other.shown()))));
                    }
                    Err(why) => return Some(Err(why)),
                }
            }
            Value::owned(values)
        }
        _ => return None,
    }))
}
