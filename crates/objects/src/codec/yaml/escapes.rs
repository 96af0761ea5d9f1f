//! Escapes that goyaml refuses, but the parser used here accepts: surrogate pairs.

use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle};

use crate::json::first_surrogate;

const WHY: &str = "found invalid Unicode character escape code";

/// Refuses a document with a surrogate pair in escapes. Other errors, such as halves of pairs, are left to the parser.
pub fn check(document: &str) -> Result<(), String> {
    if !document.contains("\\u") {
        return Ok(());
    }
    for next in Parser::new_from_str(document) {
        let Ok((event, span)) = next else { break };
        // A backslash escapes only within double quotes.
        let Event::Scalar(_, ScalarStyle::DoubleQuoted, ..) = event else { continue };
        let text = span.slice(document).unwrap_or_default();
        if let Some(at) = first_surrogate(text) {
            // The error names the line only from the second line on.
            return Err(match span.start.line() + text[..at].matches('\n').count() {
                1 => WHY.to_owned(),
                line => format!("line {line}: {WHY}"),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_in_double_quotes() {
        for document in ["", r"a: \ud83d\ude00", r"a: '\ud800'", r#"a: "\\ud800\u00e9""#, r#"# "\ud800""#] {
            assert_eq!(check(document), Ok(()), "{document}");
        }
        let cases = [
            (r#"{"a":"\ud83d\ude00"}"#, ""),
            ("a: é\nb: \"\\uD83D\\uDE00\"\n", "line 2: "),
            ("a: 1\nb: \"c\n  d\n  \\ud83d\\ude00\"\n", "line 4: "),
        ];
        for (document, line) in cases {
            assert_eq!(check(document), Err(format!("{line}{WHY}")), "{document}");
        }
    }
}
