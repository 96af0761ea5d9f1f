//! Quantities: amounts of resources as text, such as `100m`, `1.5Gi` and `12e6`.
//!
//! [`normalize`] yields what upstream's `resource.Quantity` prints after parsing (docs/spec/wire.md, 2.4): the text
//! itself if upstream considers it canonical, otherwise its canonical form. Digits are kept as digits, so no size
//! overflows.

use std::cmp::Ordering;

mod suffix;
mod value;

pub use value::{nanos, small, units};

use suffix::{Format, Suffix};

/// The smallest amount is 1e-9.
const NANO: i64 = -9;
/// The smallest unit of resources is a thousandth.
const MILLI: i64 = -3;
/// Any number with this many digits fits in 128 bits.
const MAX_NANO_DIGITS: usize = 38;
/// Upstream's fast path can hold every number with this many digits.
const MAX_FAST_DIGITS: i64 = 18;
/// The largest amount with a binary suffix, 2^63-1.
const MAX_BINARY: &[u8] = b"9223372036854775807";

/// Why a text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    #[error("unable to parse numeric part of quantity")]
    Number,
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// The text that upstream prints after parsing this text.
pub fn normalize(text: &str) -> Result<String, Error> {
    let parts = Parts::split(text)?;
    let suffix = Suffix::parse(parts.suffix).ok_or(Error::Suffix)?;
    let fast = parts.is_fast(&suffix);
    if fast && parts.is_canonical(&suffix) {
        return Ok(text.to_owned());
    }
    if !fast && parts.digitless {
        return Err(Error::Number);
    }
    let mut amount = parts.amount(&suffix);
    if !fast {
        amount.round_up(NANO);
        if suffix.format == Format::Binary {
            amount.cap();
        }
    }
    Ok(amount.print(suffix.format))
}

/// Rounds a quantity to thousandths, away from zero; `None` if it is a multiple of a thousandth already.
pub fn round_up_to_milli(text: &str) -> Result<Option<String>, Error> {
    let parts = Parts::split(text)?;
    let suffix = Suffix::parse(parts.suffix).ok_or(Error::Suffix)?;
    let mut amount = parts.amount(&suffix);
    if amount.exponent >= MILLI {
        return Ok(None);
    }
    amount.round_up(MILLI);
    Ok(Some(amount.print(suffix.format)))
}

/// The sum of two quantities, in the format of the first one that is not zero.
pub fn sum(one: &str, other: &str) -> Result<String, Error> {
    let ((one, one_format), (other, other_format)) = (in_nanos(one)?, in_nanos(other)?);
    let sum = one.checked_add(other).ok_or(Error::Number)?;
    let digits = sum.unsigned_abs().to_string().into_bytes();
    let mut amount = Amount { negative: sum < 0, digits, exponent: NANO };
    amount.trim();
    Ok(amount.print(if one == 0 { other_format } else { one_format }))
}

/// Compares two quantities by value, whatever their formats are.
pub fn compare(one: &str, other: &str) -> Result<Ordering, Error> {
    Ok(in_nanos(one)?.0.cmp(&in_nanos(other)?.0))
}

/// The amount in billionths. Upstream's amounts are below 2^63, so their billionths fit.
fn in_nanos(text: &str) -> Result<(i128, Format), Error> {
    let parts = Parts::split(text)?;
    let suffix = Suffix::parse(parts.suffix).ok_or(Error::Suffix)?;
    let mut amount = parts.amount(&suffix);
    amount.round_up(NANO);
    let zeros = usize::try_from(amount.exponent - NANO).map_err(|_| Error::Number)?;
    if amount.digits.len() + zeros > MAX_NANO_DIGITS {
        return Err(Error::Number);
    }
    let digits = amount.digits.iter().copied().chain(std::iter::repeat_n(b'0', zeros));
    let nanos = digits.fold(0, |nanos, digit| nanos * 10 + i128::from(digit - b'0'));
    Ok((if amount.negative { -nanos } else { nanos }, suffix.format))
}

/// The parts into which upstream's scanner splits the text.
struct Parts<'a> {
    negative: bool,
    /// Whether the number is a lone point, which the fast path reads as zero.
    digitless: bool,
    /// The digits before the point, without leading zeros.
    whole: &'a [u8],
    fraction: &'a [u8],
    suffix: &'a [u8],
}

impl<'a> Parts<'a> {
    fn split(text: &'a str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(Error::Format);
        }
        let bytes = text.as_bytes();
        let negative = bytes[0] == b'-';
        let unsigned = if matches!(bytes[0], b'-' | b'+') { &bytes[1..] } else { bytes };
        let digitless = unsigned.first() == Some(&b'.') && !unsigned.get(1).is_some_and(u8::is_ascii_digit);
        let (_, rest) = split_while(unsigned, |byte| byte == b'0');
        let (whole, rest) = split_while(rest, |byte| byte.is_ascii_digit());
        let (fraction, suffix) = match rest {
            [b'.', rest @ ..] => split_while(rest, |byte| byte.is_ascii_digit()),
            rest => (&rest[..0], rest),
        };
        let (_, exponent) = split_while(suffix, |byte| b"eEinumkKMGTP".contains(&byte));
        let digits = match exponent {
            [b'+' | b'-', digits @ ..] => digits,
            digits => digits,
        };
        if !digits.iter().all(u8::is_ascii_digit) {
            return Err(Error::Format);
        }
        Ok(Self { negative, digitless, whole, fraction, suffix })
    }

    /// Whether upstream computes in 64 bits, which determines what is kept and what is rounded.
    fn is_fast(&self, suffix: &Suffix) -> bool {
        let whole = self.whole.len().max(1) as i64;
        let fraction = self.fraction.len() as i64;
        match suffix.format {
            Format::Decimal | Format::Exponent => {
                whole + fraction <= MAX_FAST_DIGITS && suffix.exponent - fraction >= NANO
            }
            Format::Binary => fraction == 0 && whole + suffix.exponent * 3 / 10 < 15,
        }
    }

    /// Whether upstream keeps the text unchanged. Only for quantities of the fast path.
    fn is_canonical(&self, suffix: &Suffix) -> bool {
        match (self.whole, self.fraction) {
            (whole, _) if suffix.format == Format::Binary => {
                // The lowest three bits of a number depend only on its last three digits.
                let tail = &whole[whole.len().saturating_sub(3)..];
                tail.iter().fold(0, |tail, digit| tail * 10 + u32::from(digit - b'0')) % 8 != 0
            }
            (whole, fraction) => {
                let zeros = whole.iter().chain(fraction).rev().take_while(|digit| **digit == b'0').count();
                let scale = suffix.exponent - fraction.len() as i64;
                !whole.is_empty() && scale % 3 == 0 && zeros < 3
            }
        }
    }

    fn amount(&self, suffix: &Suffix) -> Amount {
        let mut digits = [self.whole, self.fraction].concat();
        let mut exponent = -(self.fraction.len() as i64);
        match suffix.format {
            Format::Decimal | Format::Exponent => exponent += suffix.exponent,
            Format::Binary => (0..suffix.exponent / 10).for_each(|_| times_1024(&mut digits)),
        }
        let mut amount = Amount { negative: self.negative, digits, exponent };
        amount.trim();
        amount
    }
}

/// Digits times a power of ten. Zero has no digits.
struct Amount {
    negative: bool,
    /// Neither the first nor the last digit is zero.
    digits: Vec<u8>,
    exponent: i64,
}

impl Amount {
    fn trim(&mut self) {
        let zeros = self.digits.iter().take_while(|digit| **digit == b'0').count();
        self.digits.drain(..zeros);
        while self.digits.pop_if(|digit| *digit == b'0').is_some() {
            self.exponent += 1;
        }
    }

    /// The number of digits before the point.
    fn whole_digits(&self) -> i64 {
        self.digits.len() as i64 + self.exponent
    }

    /// Rounds to a multiple of this power of ten, away from zero, so that a small amount does not become nothing.
    fn round_up(&mut self, scale: i64) {
        if self.digits.is_empty() || self.exponent >= scale {
            return;
        }
        let kept = usize::try_from(self.whole_digits() - scale).unwrap_or(0);
        self.digits.truncate(kept);
        while self.digits.pop_if(|digit| *digit == b'9').is_some() {}
        self.exponent = scale + (kept - self.digits.len()) as i64;
        match self.digits.last_mut() {
            Some(last) => *last += 1,
            None => self.digits.push(b'1'),
        }
    }

    fn cap(&mut self) {
        let max = MAX_BINARY.len() as i64;
        let above = self.whole_digits() > max || self.whole_digits() == max && *self.digits > *MAX_BINARY;
        if above {
            (self.digits, self.exponent) = (MAX_BINARY.to_vec(), 0);
        }
    }

    fn print(&self, format: Format) -> String {
        if self.digits.is_empty() {
            return "0".to_owned();
        }
        if format == Format::Binary
            && let Some(text) = self.print_binary()
        {
            return text;
        }
        // Suffixes exist for powers of a thousand: the exponent is lowered to a multiple of three.
        let zeros = self.exponent.rem_euclid(3);
        let format = if format == Format::Binary { Format::Decimal } else { format };
        let digits = [&self.digits[..], &b"00"[..zeros as usize]].concat();
        self.signed(&digits, &suffix::decimal(self.exponent - zeros, format))
    }

    /// The binary form; `None` for small amounts and fractions, which are printed in decimal form.
    fn print_binary(&self) -> Option<String> {
        let zeros = usize::try_from(self.exponent).ok()?;
        let digits = [&self.digits[..], &vec![b'0'; zeros]].concat();
        let mut value: u64 = std::str::from_utf8(&digits).ok()?.parse().ok()?;
        if value < 1024 {
            return None;
        }
        let mut thousands = 0;
        while value.is_multiple_of(1024) {
            value /= 1024;
            thousands += 1;
        }
        Some(self.signed(value.to_string().as_bytes(), suffix::BINARY.get(thousands)?))
    }

    fn signed(&self, digits: &[u8], suffix: &str) -> String {
        let sign = if self.negative { "-" } else { "" };
        format!("{sign}{}{suffix}", String::from_utf8_lossy(digits))
    }
}

fn times_1024(digits: &mut Vec<u8>) {
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let product = u32::from(*digit - b'0') * 1024 + carry;
        *digit = b'0' + (product % 10) as u8;
        carry = product / 10;
    }
    digits.splice(..0, carry.to_string().into_bytes());
}

fn split_while(bytes: &[u8], holds: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.iter().take_while(|byte| holds(**byte)).count())
}
