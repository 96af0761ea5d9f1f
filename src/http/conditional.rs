//! Conditional requests for documents, as Go's `http.ServeContent` judges them: who has the document already need not
//! be sent it again, and who lacks a part of it gets that part.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, HeaderName, header};

use super::byte_ranges::{self, Unsatisfiable};

/// What names one state of a document.
#[derive(Clone, Copy, Debug)]
pub struct Validators<'a> {
    /// With its quotes.
    pub etag: &'a str,
    pub modified: SystemTime,
}

/// What a request for a document is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Whole,
    /// These bytes of it, in one part or several.
    Parts(Vec<Range<usize>>),
    NotModified,
    /// A condition for going on does not hold.
    Failed,
    Unsatisfiable(Unsatisfiable),
}

/// Judges the conditions of a GET, in Go's order. `length` is asked for only where a part of the document is wanted.
pub fn judge(headers: &HeaderMap, validators: Validators<'_>, length: impl FnOnce() -> usize) -> Verdict {
    let Validators { etag, modified } = validators;
    let goes_on = match text(headers, &header::IF_MATCH) {
        Some(tags) => lists(tags, etag, Comparison::Strong),
        None => date(headers, &header::IF_UNMODIFIED_SINCE).is_none_or(|date| seconds(modified) <= date),
    };
    if !goes_on {
        return Verdict::Failed;
    }
    let known = match text(headers, &header::IF_NONE_MATCH) {
        Some(tags) => lists(tags, etag, Comparison::Weak),
        None => date(headers, &header::IF_MODIFIED_SINCE).is_some_and(|date| seconds(modified) <= date),
    };
    if known {
        return Verdict::NotModified;
    }
    match text(headers, &header::RANGE) {
        Some(range) if is_current(headers, validators) => match byte_ranges::parse(range, length()) {
            Ok(parts) if parts.is_empty() => Verdict::Whole,
            Ok(parts) => Verdict::Parts(parts),
            Err(why) => Verdict::Unsatisfiable(why),
        },
        _ => Verdict::Whole,
    }
}

/// A part of an older state is of no use to anybody.
fn is_current(headers: &HeaderMap, validators: Validators<'_>) -> bool {
    match text(headers, &header::IF_RANGE) {
        None => true,
        Some(tag) if tag.starts_with(['"', 'W']) => tag == validators.etag,
        Some(_) => date(headers, &header::IF_RANGE) == Some(seconds(validators.modified)),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// A weak tag matches nothing.
    Strong,
    Weak,
}

/// Whether a list of tags, or `*`, names this one. A tag may hold commas.
fn lists(tags: &str, etag: &str, comparison: Comparison) -> bool {
    let mut rest = tags;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.starts_with('*') {
            return true;
        }
        let (weak, quoted) = match rest.strip_prefix("W/") {
            Some(quoted) => (true, quoted),
            None => (false, rest),
        };
        let Some(inner) = quoted.strip_prefix('"') else { return false };
        let Some(end) = inner.find('"') else { return false };
        let (tag, after) = quoted.split_at(end + 2);
        if tag == etag && !(weak && comparison == Comparison::Strong) {
            return true;
        }
        rest = after;
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty())
}

/// A date in any of HTTP's three forms; what is none counts as absent.
fn date(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    httpdate::parse_http_date(text(headers, name)?).ok().map(seconds)
}

/// Dates in headers have no fraction.
fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETAG: &str = "\"AB\"";
    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    const EARLIER: &str = "Sunday, 06-Nov-94 08:49:36 GMT";

    fn verdict(sent: &[(HeaderName, &str)]) -> Verdict {
        let headers = sent.iter().map(|(name, value)| (name.clone(), value.parse().expect("a value")));
        let modified = httpdate::parse_http_date(DATE).expect("a date") + Duration::from_millis(900);
        judge(&headers.collect(), Validators { etag: ETAG, modified }, || 10)
    }

    #[test]
    fn who_has_it_is_told_so() {
        use header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
        for tags in [ETAG, "W/\"AB\"", "\"x\", \"AB\"", "\"a,b\" , W/\"c\",\"AB\"", "*", "\"x\", *"] {
            assert_eq!(verdict(&[(IF_NONE_MATCH, tags)]), Verdict::NotModified, "{tags}");
        }
        for tags in ["\"ab\"", "AB", "\"AB", "x, \"AB\"", "W\"AB\""] {
            assert_eq!(verdict(&[(IF_NONE_MATCH, tags)]), Verdict::Whole, "{tags}");
        }
        for (since, want) in [
            (DATE, Verdict::NotModified),
            (LATER, Verdict::NotModified),
            (EARLIER, Verdict::Whole),
            ("soon", Verdict::Whole),
        ] {
            assert_eq!(verdict(&[(IF_MODIFIED_SINCE, since)]), want, "{since}");
        }
        assert_eq!(verdict(&[(IF_NONE_MATCH, "\"x\""), (IF_MODIFIED_SINCE, LATER)]), Verdict::Whole);
    }

    #[test]
    fn conditions_that_do_not_hold() {
        use header::{IF_MATCH, IF_UNMODIFIED_SINCE};
        for (name, value, want) in [
            (IF_MATCH, "*", Verdict::Whole),
            (IF_MATCH, ETAG, Verdict::Whole),
            (IF_MATCH, "W/\"AB\"", Verdict::Failed),
            (IF_MATCH, "\"x\"", Verdict::Failed),
            (IF_UNMODIFIED_SINCE, DATE, Verdict::Whole),
            (IF_UNMODIFIED_SINCE, EARLIER, Verdict::Failed),
        ] {
            assert_eq!(verdict(&[(name, value)]), want, "{value}");
        }
    }

    fn one(part: Range<usize>) -> Verdict {
        Verdict::Parts(std::iter::once(part).collect())
    }

    #[test]
    fn parts() {
        use header::{IF_RANGE, RANGE};
        for (range, want) in [
            ("bytes=0-3", one(0..4)),
            ("bytes=0-1,4-5", Verdict::Parts(vec![0..2, 4..6])),
            ("bytes=0-8,0-8", Verdict::Whole),
            ("bytes=10-", Verdict::Unsatisfiable(Unsatisfiable::Beyond)),
            ("lines=1-2", Verdict::Unsatisfiable(Unsatisfiable::Malformed)),
        ] {
            assert_eq!(verdict(&[(RANGE, range)]), want, "{range}");
        }
        for (condition, want) in
            [(ETAG, one(0..1)), ("\"x\"", Verdict::Whole), (DATE, one(0..1)), (LATER, Verdict::Whole)]
        {
            assert_eq!(verdict(&[(RANGE, "bytes=0-0"), (IF_RANGE, condition)]), want, "{condition}");
        }
    }
}
