//! Scalars with a canonical text.

use super::super::Format;
use crate::gotext::{Fraction, decode_base64, json_kind, parse_time, unix_micros};
use crate::quantity as quantities;
use crate::tree::{Text, Value};

/// Go's zero time, which is printed as null.
const ZERO_SECOND: i64 = -62_135_596_800;

/// Removes the line ends that Go's base64 decoder ignores.
pub(super) fn bytes(text: &mut Text) -> Result<(), String> {
    decode_base64(text)?;
    if text.contains(['\r', '\n']) {
        *text = text.replace(['\r', '\n'], "").into();
    }
    Ok(())
}

/// A byte given as a number; null is zero. The error names what was found instead.
pub(super) fn byte(value: &Value) -> Result<u8, String> {
    match value {
        Value::Null => Ok(0),
        Value::Number(number) => {
            let byte = number.as_u64().and_then(|number| u8::try_from(number).ok());
            byte.ok_or_else(|| format!("number {number}"))
        }
        other => Err(json_kind(other).to_owned()),
    }
}

/// Makes a quantity canonical. `spelling` is that of a number, if it is known.
pub(in super::super) fn quantity(value: &mut Value, spelling: Option<&str>) -> Result<(), String> {
    let text = match &*value {
        Value::String(text) => quantities::normalize(text.trim()),
        Value::Number(_) if let Some(spelling) = spelling => quantities::normalize(spelling),
        value => quantities::normalize(&value.to_string()),
    };
    let text = text.map_err(|error| error.to_string())?;
    if value.as_str() != Some(&*text) {
        *value = text.into();
    }
    Ok(())
}

/// A time in UTC with whole seconds, or with six digits of fraction; `None` if the text has this form already.
pub(in super::super) fn time(text: &str, format: Format) -> Result<Option<Value>, String> {
    let micro = format == Format::MicroTime;
    let time = parse_time(text, if micro { Fraction::Micros } else { Fraction::Any })?;
    let micros = unix_micros(time);
    let (second, fraction) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    if second == ZERO_SECOND && (!micro || fraction == 0) {
        return Ok(Some(Value::Null));
    }
    let bytes = text.as_bytes();
    let in_form = bytes.ends_with(b"Z")
        && if micro { bytes.len() == 27 && bytes[19] == b'.' } else { bytes.len() == 20 };
    if in_form {
        return Ok(None);
    }
    let printed = if micro { format!("{time:.6}Z") } else { format!("{time:.0}Z") };
    Ok(Some(printed.into()))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    /// The times of `tests/upstream/yaml`, and what `metav1.Time` and `metav1.MicroTime` make of them.
    #[test]
    fn upstream_reads_and_prints_the_same_times() {
        let packed = &include_bytes!("../../../../../../testdata/yaml/times.jsonl.gz")[..];
        let (mut count, mut read) = (0, 0);
        for line in BufReader::new(flate2::read::GzDecoder::new(packed)).lines() {
            let line: Line = serde_json::from_str(&line.expect("text")).expect("JSON");
            for (format, printed, error) in [
                (Format::Time, &line.time, &line.time_error),
                (Format::MicroTime, &line.micro, &line.micro_error),
            ] {
                // Go prints years that it does not read.
                let is_readable = printed.as_bytes().get(4).is_none_or(|byte| *byte == b'-');
                let want = match &**error {
                    "" if !is_readable => Err("Time.MarshalJSON: year outside of range [0,9999]"),
                    "" if printed == "null" => Ok(Value::Null),
                    "" => Ok(printed.as_str().into()),
                    error => Err(error),
                };
                let found = time(&line.text, format).map(|found| found.unwrap_or(line.text.as_str().into()));
                assert_eq!(found, want.map_err(str::to_owned), "{} {format:?}", line.text);
                count += 1;
                read += usize::from(found.is_ok());
            }
        }
        assert!(count >= 6000 && read >= 1000, "{read} of {count}");
    }

    #[derive(Default, serde::Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Line {
        text: String,
        time: String,
        time_error: String,
        micro: String,
        micro_error: String,
    }
}
