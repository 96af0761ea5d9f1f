//! Sets of indexes of a job's pods, for example `1,3-5,7`.

use crate::gotext::quote;

/// The number of indexes in a text. The error is upstream's text.
pub fn count(text: &str, completions: i64) -> Result<i64, String> {
    if text.is_empty() {
        return Ok(0);
    }
    let (mut last, mut total) = (None, 0);
    for part in text.split(',') {
        let (first, end) = interval(part, completions)?;
        if let Some(last) = last.filter(|last| *last >= first) {
            return Err(format!("non-increasing order, previous: {last}, current: {first}"));
        }
        total += end - first + 1;
        last = Some(end);
    }
    Ok(total)
}

fn interval(part: &str, completions: i64) -> Result<(i64, i64), String> {
    let limits: Vec<&str> = part.split('-').collect();
    if limits.len() > 2 {
        return Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
            quote(part)
        ));
    }
    let number = |text: &str| {
        let number: i64 = text
            .parse()
            .map_err(|_| format!("cannot convert string to integer for index: {}", quote(text)))?;
        if number >= completions { Err(format!("too large index: {}", quote(text))) } else { Ok(number) }
    };
    let first = number(limits[0])?;
    let Some(end) = limits.get(1) else { return Ok((first, first)) };
    let end = number(end)?;
    if first >= end {
        return Err(format!("non-increasing order, previous: {first}, current: {end}"));
    }
    Ok((first, end))
}

/// The first index that is in both texts; parts that cannot be parsed are skipped.
pub fn overlap(left: &str, right: &str, completions: i64) -> Option<i64> {
    let read = |text: &str| -> Vec<(i64, i64)> {
        text.split(',').filter_map(|part| interval(part, completions).ok()).collect()
    };
    let (left, right) = (read(left), read(right));
    let (mut l, mut r) = (left.iter().peekable(), right.iter().peekable());
    while let (Some((a, b)), Some((c, d))) = (l.peek(), r.peek()) {
        if a <= d && c <= b {
            return Some(*a.max(c));
        }
        if a <= c {
            l.next()
        } else {
            r.next()
        };
    }
    None
}
