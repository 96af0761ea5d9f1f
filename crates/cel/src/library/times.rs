//! Parts of moments and spans.

use crate::time::duration_part;
use crate::value::{Error, Value};

pub fn call<'a>(function: &str, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Error>> {
    match arguments {
        [Value::Timestamp(at)] => Some(at.part(function, None).map(Value::Int)),
        [Value::Timestamp(at), Value::String(zone)] => Some(at.part(function, Some(zone)).map(Value::Int)),
        [Value::Duration(nanos)]
            if matches!(function, "getHours" | "getMinutes" | "getSeconds" | "getMilliseconds") =>
        {
            Some(Ok(Value::Int(duration_part(*nanos, function))))
        }
        _ => None,
    }
}
