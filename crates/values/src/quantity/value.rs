//! Amounts as numbers, for comparison.

use super::suffix::{Format, Suffix};
use super::{NANO, Parts};

/// The amount in billionths, rounded away from zero; `None` if the text is not a quantity. Saturates.
pub fn nanos(text: &str) -> Option<i128> {
    let parts = Parts::split(text).ok()?;
    let suffix = Suffix::parse(parts.suffix)?;
    let mut amount = parts.amount(&suffix);
    amount.round_up(NANO);
    let add = |sum: i128, digit: &u8| sum.checked_mul(10)?.checked_add(i128::from(digit - b'0'));
    let scale = u32::try_from(amount.exponent - NANO).ok();
    let number = amount.digits.iter().try_fold(0, add).and_then(|number: i128| {
        if number == 0 { Some(0) } else { number.checked_mul(10_i128.checked_pow(scale?)?) }
    });
    let number = number.unwrap_or(i128::MAX);
    Some(if amount.negative { -number } else { number })
}

/// The amount in whole units, rounded away from zero.
pub fn units(nanos: i128) -> i64 {
    const UNIT: i128 = 1_000_000_000;
    let whole = nanos / UNIT + (nanos % UNIT).signum();
    i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
}

/// The 64-bit form in which upstream holds an amount: a number, and the power of ten that it counts; `None` for amounts that
/// it holds in decimals of any length, and for texts that are no quantities.
pub fn small(text: &str) -> Option<(i64, i32)> {
    let parts = Parts::split(text).ok()?;
    let suffix = Suffix::parse(parts.suffix)?;
    if !parts.is_fast(&suffix) {
        return None;
    }
    let digits = parts.whole.iter().chain(parts.fraction);
    let number = digits.fold(0i64, |number, digit| number * 10 + i64::from(digit - b'0'));
    let number = if parts.negative { -number } else { number };
    Some(match suffix.format {
        Format::Binary => (number.checked_mul(1i64.checked_shl(u32::try_from(suffix.exponent).ok()?)?)?, 0),
        Format::Decimal | Format::Exponent => {
            (number, i32::try_from(suffix.exponent).ok()? - parts.fraction.len() as i32)
        }
    })
}
