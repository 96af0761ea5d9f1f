//! The errors of `time.Parse` for texts that are not times in the form of RFC 3339.

/// The layouts of times in whole seconds, and with six digits of fraction.
const LAYOUT: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";

/// How many digits of fraction a time must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fraction {
    Any,
    Micros,
}

/// Why a text is not a time; `None` if Go accepts it.
pub fn time_complaint(text: &str, fraction: Fraction) -> Option<String> {
    let wrong = Scanner { rest: text }.whole(fraction).err()?;
    let quoted = quote(text);
    Some(match wrong {
        Wrong::Element { rest, element } => {
            let layout = quote(if fraction == Fraction::Micros { MICRO_LAYOUT } else { LAYOUT });
            let (rest, element) = (quote(rest), quote(element));
            format!("parsing time {quoted} as {layout}: cannot parse {rest} as {element}")
        }
        Wrong::Range(what) => format!("parsing time {quoted}: {what} out of range"),
        Wrong::Extra(rest) => format!("parsing time {quoted}: extra text: {}", quote(rest)),
    })
}

enum Wrong<'t> {
    /// The rest of the text, and the element of the layout that it does not start with.
    Element {
        rest: &'t str,
        element: &'static str,
    },
    Range(&'static str),
    Extra(&'t str),
}

struct Scanner<'t> {
    rest: &'t str,
}

impl<'t> Scanner<'t> {
    fn whole(&mut self, fraction: Fraction) -> Result<(), Wrong<'t>> {
        let year = self.digits(4, "2006")?;
        self.literal("-")?;
        let month = self.digits(2, "01")?;
        in_range(month, 1, 12, "month")?;
        self.literal("-")?;
        let day = self.digits(2, "02")?;
        self.literal("T")?;
        self.hour()?;
        self.literal(":")?;
        in_range(self.digits(2, "04")?, 0, 59, "minute")?;
        self.literal(":")?;
        in_range(self.digits(2, "05")?, 0, 59, "second")?;
        self.fraction(fraction)?;
        self.offset()?;
        if !self.rest.is_empty() {
            return Err(Wrong::Extra(self.rest));
        }
        in_range(day, 1, days(year, month), "day")
    }

    fn refuse<T>(&self, element: &'static str) -> Result<T, Wrong<'t>> {
        Err(Wrong::Element { rest: self.rest, element })
    }

    fn literal(&mut self, literal: &'static str) -> Result<(), Wrong<'t>> {
        match self.rest.strip_prefix(literal) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => self.refuse(literal),
        }
    }

    fn leading_digits(&self) -> usize {
        self.rest.bytes().take_while(u8::is_ascii_digit).count()
    }

    fn digits(&mut self, count: usize, element: &'static str) -> Result<u32, Wrong<'t>> {
        if self.leading_digits() < count {
            return self.refuse(element);
        }
        let (number, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(number.parse().unwrap_or_default())
    }

    /// The hour is the only element that may have a single digit.
    fn hour(&mut self) -> Result<(), Wrong<'t>> {
        let count = self.leading_digits().clamp(1, 2);
        in_range(self.digits(count, "15")?, 0, 23, "hour")
    }

    fn fraction(&mut self, fraction: Fraction) -> Result<(), Wrong<'t>> {
        const MICROS: usize = 6;
        let digits =
            self.rest.strip_prefix(['.', ',']).map_or(0, |after| Scanner { rest: after }.leading_digits());
        match fraction {
            Fraction::Micros if digits < MICROS => self.refuse(".000000"),
            Fraction::Micros => {
                self.rest = &self.rest[1 + MICROS..];
                Ok(())
            }
            Fraction::Any if digits > 0 => {
                self.rest = &self.rest[1 + digits..];
                Ok(())
            }
            Fraction::Any => Ok(()),
        }
    }

    fn offset(&mut self) -> Result<(), Wrong<'t>> {
        if let Some(rest) = self.rest.strip_prefix('Z') {
            self.rest = rest;
            return Ok(());
        }
        let (offset, rest) = match self.rest.as_bytes() {
            [b'+' | b'-', h, i, b':', m, n, ..] if [h, i, m, n].iter().all(|byte| byte.is_ascii_digit()) => {
                self.rest.split_at(6)
            }
            _ => return self.refuse("Z07:00"),
        };
        let number = |range: std::ops::Range<usize>| offset[range].parse().unwrap_or_default();
        in_range(number(1..3), 0, 24, "time zone offset hour")?;
        in_range(number(4..6), 0, 60, "time zone offset minute")?;
        self.rest = rest;
        Ok(())
    }
}

fn in_range(number: u32, least: u32, most: u32, what: &'static str) -> Result<(), Wrong<'static>> {
    if (least..=most).contains(&number) { Ok(()) } else { Err(Wrong::Range(what)) }
}

fn days(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Quotes as package `time` does: bytes that are not ASCII are in hexadecimal.
fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=0x7f => out.push(char::from(byte)),
            byte => out.push_str(&format!("\\x{byte:02x}")),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_complains_in_these_words() {
        let element = |text: &str, rest: &str, element: &str| {
            Some(format!(
                r#"parsing time {text} as "2006-01-02T15:04:05Z07:00": cannot parse {rest} as "{element}""#
            ))
        };
        let cases = [
            ("2020-01-01T00:00:00Z", None),
            ("2020-01-01T0:00:00.5+01:00", None),
            ("", element(r#""""#, r#""""#, "2006")),
            ("é\"", element(r#""\xc3\xa9\"""#, r#""\xc3\xa9\"""#, "2006")),
            ("2020-01-01", element(r#""2020-01-01""#, r#""""#, "T")),
            ("2020-1-01", element(r#""2020-1-01""#, r#""1-01""#, "01")),
            ("2020-01-01T00:00:00", element(r#""2020-01-01T00:00:00""#, r#""""#, "Z07:00")),
            ("2020-01-01T00:00:00.x", element(r#""2020-01-01T00:00:00.x""#, r#"".x""#, "Z07:00")),
            (
                "2020-13-01T00:00:00Z",
                Some(r#"parsing time "2020-13-01T00:00:00Z": month out of range"#.into()),
            ),
            ("2021-02-29T00:00:00Z", Some(r#"parsing time "2021-02-29T00:00:00Z": day out of range"#.into())),
            (
                "2020-01-01T00:00:00Z!",
                Some(r#"parsing time "2020-01-01T00:00:00Z!": extra text: "!""#.into()),
            ),
        ];
        for (text, want) in cases {
            assert_eq!(time_complaint(text, Fraction::Any), want, "{text}");
        }
    }

    #[test]
    fn fractions_of_six_digits() {
        assert_eq!(time_complaint("2020-01-01T00:00:00.123456Z", Fraction::Micros), None);
        let found = time_complaint("2020-01-01T00:00:00Z", Fraction::Micros).expect("a complaint");
        assert!(
            found.ends_with(r#"as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#),
            "{found}"
        );
    }
}
