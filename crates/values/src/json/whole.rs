//! Floating-point numbers as Go's JSON prints them: integral ones have no fraction.

use crate::tree::{Number, Value};

pub fn whole(number: &mut Number) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let integral = number.as_f64().filter(|value| number.is_f64() && value.fract() == 0.0);
    let printed = integral.and_then(|value| match value.abs() <= EXACT {
        true => Some(value as i64),
        // Go prints the shortest digits that mean the number, and zeros.
        false => value.to_string().parse().ok(),
    });
    if let Some(printed) = printed {
        *number = printed.into();
    }
}

/// Changes all numbers of a value that Go has held as floating-point numbers.
pub fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => whole(number),
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::json;

    use super::*;

    #[test]
    fn integral_numbers_have_no_fraction() {
        let mut value =
            json!({"a": [1e3, -0.0, 1.5, 1e15, 1e300, 7, "1.0", 1_152_921_504_606_846_976.0, 9.3e18]});
        whole_numbers(&mut value);
        let quadrillion = 1_000_000_000_000_000_i64;
        let printed = 1_152_921_504_606_847_000_i64;
        assert_eq!(value, json!({"a": [1000, 0, 1.5, quadrillion, 1e300, 7, "1.0", printed, 9.3e18]}));
    }
}
