//! `format` (cel-go `ext/formatting.go`), with numbers as English prints them.

use rowplane_values::gotext::quote;

use super::conversions::to_string;
use super::strings::LARGEST;
use crate::time::{duration_text, quoted};
use crate::value::{Error, List, Value};

const PRECISION: usize = 6;

/// The checker's knowledge of the arguments of `format`: whether a letter may print one; else why not, and where.
pub trait ArgumentTypes {
    type Place;
    fn problem(&self, argument: usize, letter: char) -> Option<(Self::Place, String)>;
}

/// The first error of a pattern for so many arguments, and the place in the argument that is at fault, if one is.
pub fn check<K: ArgumentTypes>(
    pattern: &str,
    arguments: usize,
    known: &K,
) -> Result<(), (Option<K::Place>, String)> {
    let (mut rest, mut next) = (pattern, 0);
    while let Some(at) = rest.find('%') {
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Err((None, "unexpected end of string".to_owned()));
        }
        if next >= arguments {
            return Err((None, format!("index {next} out of range")));
        }
        let read =
            Clause::read(rest).map_err(|why| (None, format!("could not parse formatting clause: {why}")))?;
        if let Some((place, why)) = known.problem(next, read.0.letter) {
            return Err((Some(place), format!("error during formatting: {why}")));
        }
        (rest, next) = (read.1, next + 1);
    }
    if arguments > next {
        let why = format!("too many arguments supplied to string.format (expected {next}, got {arguments})");
        return Err((None, why));
    }
    Ok(())
}

/// Why values of a type are not printed by a letter.
pub fn unprintable(letter: char, given: &str) -> String {
    match letter {
        's' => format!(
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and \
             timestamps, was given {given}"
        ),
        'd' => format!("decimal clause can only be used on integers, was given {given}"),
        'f' => format!("fixed-point clause can only be used on doubles, was given {given}"),
        'e' => format!("scientific clause can only be used on doubles, was given {given}"),
        'b' => format!("only integers and bools can be formatted as binary, was given {given}"),
        'o' => format!("octal clause can only be used on integers, was given {given}"),
        _ => format!("only integers, byte buffers, and strings can be formatted as hex, was given {given}"),
    }
}

pub fn call<'a>(arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Error>> {
    let [Value::String(pattern), Value::List(values)] = arguments else { return None };
    Some(format(pattern, values).map(Value::string).map_err(Error::new))
}

fn format(pattern: &str, values: &List<'_>) -> Result<String, String> {
    let mut out = String::new();
    let (mut rest, mut next) = (pattern, 0);
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        if next >= values.len() {
            return Err(format!("index {next} out of range"));
        }
        if rest.is_empty() {
            return Err("unexpected end of string".to_owned());
        }
        let (clause, after) =
            Clause::read(rest).map_err(|why| format!("could not parse formatting clause: {why}"))?;
        let value = values.get(next).map_err(|why| why.message().to_owned())?;
        let text = clause.apply(&value).map_err(|why| format!("error during formatting: {why}"))?;
        out.push_str(&text);
        if out.len() > LARGEST {
            return Err("operation cancelled: actual cost limit exceeded".to_owned());
        }
        (rest, next) = (after, next + 1);
    }
    out.push_str(rest);
    Ok(out)
}

struct Clause {
    letter: char,
    precision: usize,
}

impl Clause {
    fn read(text: &str) -> Result<(Self, &str), String> {
        let (precision, rest) = match text.strip_prefix('.') {
            None => (PRECISION, text),
            Some(rest) => {
                let wrong = |why: String| format!("error while parsing precision: {why}");
                let end = rest.find(|c: char| !c.is_ascii_digit());
                let end = end.ok_or_else(|| wrong("could not find end of precision specifier".to_owned()))?;
                let number = rest[..end].parse::<usize>().map_err(|_| {
                    let why = if end == 0 { "invalid syntax" } else { "value out of range" };
                    let quoted = quote(&rest[..end]);
                    wrong(format!(
                        "error while converting precision to integer: strconv.Atoi: parsing {quoted}: {why}"
                    ))
                })?;
                (number, &rest[end..])
            }
        };
        let letter = rest.chars().next().unwrap_or_default();
        if !"sdfebxXo".contains(letter) {
            // Upstream shows the first byte of a longer letter.
            let shown = char::from(rest.as_bytes()[0]);
            return Err(format!("unrecognized formatting clause \"{shown}\""));
        }
        Ok((Self { letter, precision: precision.min(LARGEST) }, &rest[1..]))
    }

    fn apply(&self, value: &Value<'_>) -> Result<String, String> {
        let given = value.type_name();
        match (self.letter, value) {
            ('s', value) => string(value),
            ('d', value) => decimal(value),
            ('f' | 'e', Value::Double(number)) => Ok(self.floating(*number)),
            ('f' | 'e', Value::String(text)) if matches!(&**text, "NaN" | "Infinity" | "-Infinity") => {
                Ok(self.floating(text.replace("Infinity", "inf").parse().unwrap_or(f64::NAN)))
            }
            ('f' | 'e', _) => Err(unprintable(self.letter, given)),
            ('b', Value::Int(number)) => Ok(signed(*number, |of| format!("{of:b}"))),
            ('b', Value::Uint(number)) => Ok(format!("{number:b}")),
            ('b', Value::Bool(is)) => Ok(u8::from(*is).to_string()),
            ('b', _) => Err(unprintable('b', given)),
            ('o', Value::Int(number)) => Ok(signed(*number, |of| format!("{of:o}"))),
            ('o', Value::Uint(number)) => Ok(format!("{number:o}")),
            ('o', _) => Err(unprintable('o', given)),
            (letter, value) => {
                let text = hexadecimal(value).ok_or_else(|| unprintable('x', given))?;
                Ok(if letter == 'X' { text.to_uppercase() } else { text })
            }
        }
    }

    fn floating(&self, number: f64) -> String {
        if number.is_nan() {
            return "NaN".to_owned();
        }
        let sign = if number.is_sign_negative() { "-" } else { "" };
        if number.is_infinite() {
            return format!("{sign}∞");
        }
        let number = number.abs();
        let precision = self.precision;
        if self.letter == 'f' {
            let text = format!("{number:.precision$}");
            let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
            return format!("{sign}{}{fraction}", grouped(whole));
        }
        // Upstream takes the precision for a width here.
        let text = format!("{number:.PRECISION$e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        format!("{:>precision$}", format!("{sign}{digits}×10{}", raised(exponent)))
    }
}

/// Thousands with commas between them.
fn grouped(digits: &str) -> String {
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// An exponent of two digits or more.
fn raised(exponent: &str) -> String {
    let (sign, digits) = exponent.strip_prefix('-').map_or(("", exponent), |digits| ("⁻", digits));
    let digits = format!("{digits:0>2}");
    let small = |digit: char| "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().nth(digit.to_digit(10).unwrap_or_default() as usize);
    format!("{sign}{}", digits.chars().filter_map(small).collect::<String>())
}

fn signed(number: i64, print: impl Fn(u64) -> String) -> String {
    format!("{}{}", if number < 0 { "-" } else { "" }, print(number.unsigned_abs()))
}

fn hexadecimal(value: &Value<'_>) -> Option<String> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Some(match value {
        Value::Int(number) => signed(*number, |of| format!("{of:x}")),
        Value::Uint(number) => format!("{number:x}"),
        Value::String(text) => bytes(text.as_bytes()),
        Value::Bytes(all) => bytes(all),
        _ => return None,
    })
}

fn decimal(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::Int(number) => Ok(number.to_string()),
        Value::Uint(number) => Ok(number.to_string()),
        _ => Err(unprintable('d', value.type_name())),
    }
}

fn string(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::List(_) | Value::Map(_) => inner(value),
        Value::Null => Ok("null".to_owned()),
        Value::Struct(_) | Value::Optional(_) | Value::Opaque(_) => Err(unprintable('s', value.type_name())),
        value => to_string(value).map_err(|why| why.message().to_owned()),
    }
}

/// A value within a list or a map, as a literal.
fn inner(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(quote(text)),
        Value::Bytes(bytes) => Ok(format!("b{}", quote(&String::from_utf8_lossy(bytes)))),
        Value::Double(number) if !number.is_finite() => {
            let text = if number.is_nan() {
                "NaN"
            } else if *number > 0.0 {
                "+Inf"
            } else {
                "-Inf"
            };
            Ok(quote(text))
        }
        Value::Double(number) => Ok(format!("{number:.PRECISION$}")),
        Value::Timestamp(at) => Ok(quoted("timestamp", &at.text())),
        Value::Duration(nanos) => Ok(quoted("duration", &duration_text(*nanos))),
        Value::List(list) => {
            let items = list.iter().map(|item| inner(&item.map_err(|why| why.message().to_owned())?));
            Ok(format!("[{}]", items.collect::<Result<Vec<_>, _>>()?.join(", ")))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for key in map.keys() {
                let shown = match &key {
                    Value::String(_) => inner(&key)?,
                    Value::Bool(_) | Value::Int(_) | Value::Uint(_) => string(&key)?,
                    _ => {
                        return Err(format!(
                            "no formatting function for map key of type {}",
                            key.type_name()
                        ));
                    }
                };
                let found = map.find(&key, 0).map_err(|why| why.message().to_owned())?;
                let found = found.ok_or_else(|| format!("could not find key: {}", quote(&key.shown())))?;
                entries.push((shown, inner(&found)?));
            }
            entries.sort();
            let entries: Vec<String> =
                entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        Value::Struct(_) | Value::Optional(_) | Value::Opaque(_) => {
            Err(format!("no formatting function for {}", value.type_name()))
        }
        value => string(value),
    }
}
