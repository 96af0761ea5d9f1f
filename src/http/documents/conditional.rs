//! Conditional requests for documents, evaluated like Go's `http.ServeContent`: a client that has the present document
//! does not get it again. Ranges are not supported: a request for a range gets the whole document, as HTTP allows.

use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, HeaderName, header};

/// The validators of a document's present state.
#[derive(Clone, Copy, Debug)]
pub struct Validators<'a> {
    /// Including its quotes.
    pub etag: &'a str,
    pub modified: SystemTime,
}

/// The result of evaluating the conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The document must be sent.
    Send,
    /// The client has this document already.
    NotModified,
    /// A precondition does not hold.
    PreconditionFailed,
}

/// Evaluates the conditions of a GET, in Go's order.
pub fn evaluate(headers: &HeaderMap, validators: Validators<'_>) -> Verdict {
    let Validators { etag, modified } = validators;
    let goes_on = match text(headers, &header::IF_MATCH) {
        Some(tags) => lists(tags, etag, Comparison::Strong),
        None => date(headers, &header::IF_UNMODIFIED_SINCE).is_none_or(|date| seconds(modified) <= date),
    };
    if !goes_on {
        return Verdict::PreconditionFailed;
    }
    let known = match text(headers, &header::IF_NONE_MATCH) {
        Some(tags) => lists(tags, etag, Comparison::Weak),
        None => date(headers, &header::IF_MODIFIED_SINCE).is_some_and(|date| seconds(modified) <= date),
    };
    if known { Verdict::NotModified } else { Verdict::Send }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// Weak tags match nothing.
    Strong,
    Weak,
}

/// Whether a list of tags, or `*`, contains this tag. Tags may contain commas.
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

/// A date in one of HTTP's three forms. A malformed date counts as absent.
fn date(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    httpdate::parse_http_date(text(headers, name)?).ok().map(seconds)
}

/// Seconds since the epoch: dates in headers have no fraction.
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
        evaluate(&headers.collect(), Validators { etag: ETAG, modified })
    }

    #[test]
    fn a_client_that_has_the_document_is_told_so() {
        use header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
        for tags in [ETAG, "W/\"AB\"", "\"x\", \"AB\"", "\"a,b\" , W/\"c\",\"AB\"", "*", "\"x\", *"] {
            assert_eq!(verdict(&[(IF_NONE_MATCH, tags)]), Verdict::NotModified, "{tags}");
        }
        for tags in ["\"ab\"", "AB", "\"AB", "x, \"AB\"", "W\"AB\""] {
            assert_eq!(verdict(&[(IF_NONE_MATCH, tags)]), Verdict::Send, "{tags}");
        }
        for (since, want) in [
            (DATE, Verdict::NotModified),
            (LATER, Verdict::NotModified),
            (EARLIER, Verdict::Send),
            ("soon", Verdict::Send),
        ] {
            assert_eq!(verdict(&[(IF_MODIFIED_SINCE, since)]), want, "{since}");
        }
        assert_eq!(verdict(&[(IF_NONE_MATCH, "\"x\""), (IF_MODIFIED_SINCE, LATER)]), Verdict::Send);
    }

    #[test]
    fn conditions_that_do_not_hold() {
        use header::{IF_MATCH, IF_UNMODIFIED_SINCE};
        for (name, value, want) in [
            (IF_MATCH, "*", Verdict::Send),
            (IF_MATCH, ETAG, Verdict::Send),
            (IF_MATCH, "W/\"AB\"", Verdict::PreconditionFailed),
            (IF_MATCH, "\"x\"", Verdict::PreconditionFailed),
            (IF_UNMODIFIED_SINCE, DATE, Verdict::Send),
            (IF_UNMODIFIED_SINCE, EARLIER, Verdict::PreconditionFailed),
        ] {
            assert_eq!(verdict(&[(name, value)]), want, "{value}");
        }
    }
}
