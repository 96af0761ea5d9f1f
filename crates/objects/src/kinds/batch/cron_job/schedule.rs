//! The syntax of schedules, as `robfig/cron` parses it: five fields, or a descriptor.

use crate::gotext;

/// The allowed values of a field.
struct Bounds {
    min: u64,
    max: u64,
    names: &'static [&'static str],
}

/// The fields of a schedule. Names count from `min`; days of the week start with Sunday.
const FIELDS: [Bounds; 5] = [
    Bounds { min: 0, max: 59, names: &[] },
    Bounds { min: 0, max: 23, names: &[] },
    Bounds { min: 1, max: 31, names: &[] },
    Bounds {
        min: 1,
        max: 12,
        names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
    },
    Bounds { min: 0, max: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

/// Checks a schedule. The error is upstream's text.
pub fn check(text: &str) -> Result<(), String> {
    let text = after_zone(text)?;
    if text.starts_with('@') {
        return descriptor(text);
    }
    let fields: Vec<&str> = text.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        let list = fields.join(" ");
        return Err(format!("expected exactly 5 fields, found {}: [{list}]", fields.len()));
    }
    let mut parts = fields.iter().zip(&FIELDS).flat_map(|(field, bounds)| {
        field.split(',').filter(|part| !part.is_empty()).map(move |part| (part, bounds))
    });
    parts.try_for_each(|(part, bounds)| range(part, bounds))
}

/// The text behind a leading time zone.
fn after_zone(text: &str) -> Result<&str, String> {
    let Some(rest) = text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) else {
        return Ok(text);
    };
    let Some((zone, _)) = rest.split_once(' ') else {
        // Upstream's parser panics in this case, and its caller catches that.
        let why = "invalid schedule format: runtime error: slice bounds out of range [:-1]";
        return Err(why.to_owned());
    };
    if !zone.is_empty() && zone != "Local" && !is_zone(zone) {
        return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
    }
    Ok(rest[zone.len()..].trim())
}

/// Whether the database of time zones contains this name, in this spelling.
pub fn is_zone(name: &str) -> bool {
    name == "UTC" || jiff::tz::db().get(name).is_ok_and(|zone| zone.iana_name() == Some(name))
}

fn descriptor(text: &str) -> Result<(), String> {
    if matches!(text, "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly") {
        return Ok(());
    }
    match text.strip_prefix("@every ") {
        Some(duration) => gotext::parse_duration(duration)
            .map(drop)
            .map_err(|why| format!("failed to parse duration {text}: {why}")),
        None => Err(format!("unrecognized descriptor: {text}")),
    }
}

/// Checks a range: `*`, `5` or `1-5`, with or without a step.
fn range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let mut slashes = text.split('/');
    let span = slashes.next().unwrap_or_default();
    let step = slashes.next();
    let limits: Vec<&str> = span.split('-').collect();
    let (start, mut end) = if matches!(limits[0], "*" | "?") {
        (bounds.min, bounds.max)
    } else {
        let start = number_or_name(limits[0], bounds)?;
        match limits.as_slice() {
            [_] => (start, start),
            [_, end] => (start, number_or_name(end, bounds)?),
            _ => return Err(format!("too many hyphens: {text}")),
        }
    };
    if slashes.next().is_some() {
        return Err(format!("too many slashes: {text}"));
    }
    let step = match step {
        None => 1,
        Some(step) => {
            if limits.len() == 1 {
                end = bounds.max;
            }
            number(step)?
        }
    };
    let (min, max) = (bounds.min, bounds.max);
    if start < min {
        return Err(format!("beginning of range ({start}) below minimum ({min}): {text}"));
    }
    if end > max {
        return Err(format!("end of range ({end}) above maximum ({max}): {text}"));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64, String> {
    match bounds.names.iter().position(|name| text.eq_ignore_ascii_case(name)) {
        Some(index) => Ok(bounds.min + index as u64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64, String> {
    let value = gotext::parse_int(text).map_err(|why| {
        let why = why.replacen("ParseInt", "Atoi", 1);
        format!("failed to parse int from {text}: {why}")
    })?;
    u64::try_from(value).map_err(|_| format!("negative number ({value}) not allowed: {text}"))
}
