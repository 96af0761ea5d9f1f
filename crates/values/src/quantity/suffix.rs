//! Suffixes of quantities.

/// The format in which an amount is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// `k`, `M` and so on: powers of a thousand.
    Decimal,
    /// `e3`, `e6`: powers of ten.
    Exponent,
    /// `Ki`, `Mi`: powers of 1024.
    Binary,
}

pub(super) struct Suffix {
    pub format: Format,
    /// The exponent of a power of two for binary suffixes, of ten for others.
    pub exponent: i64,
}

/// Suffixes for powers of 1024.
pub(super) const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Suffixes for powers of a thousand, from 1e-9.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

impl Suffix {
    pub fn parse(text: &[u8]) -> Option<Self> {
        let index = |names: &[&str]| names.iter().position(|name| name.as_bytes() == text);
        if let Some(index) = index(&DECIMAL) {
            return Some(Self { format: Format::Decimal, exponent: index as i64 * 3 - 9 });
        }
        if let Some(index) = index(&BINARY) {
            return Some(Self { format: Format::Binary, exponent: index as i64 * 10 });
        }
        let [b'e' | b'E', exponent @ ..] = text else { return None };
        let exponent: i64 = std::str::from_utf8(exponent).ok()?.parse().ok()?;
        // Upstream truncates to 32 bits.
        Some(Self { format: Format::Exponent, exponent: i64::from(exponent as i32) })
    }
}

/// The suffix of a power of a thousand. Above `E` there is none, and upstream prints none.
pub(super) fn decimal(exponent: i64, format: Format) -> String {
    match format {
        Format::Exponent if exponent == 0 => String::new(),
        Format::Exponent => format!("e{exponent}"),
        Format::Decimal | Format::Binary => {
            let index = usize::try_from((exponent + 9) / 3).ok();
            index.and_then(|index| DECIMAL.get(index)).map_or_else(String::new, |name| (*name).to_owned())
        }
    }
}
