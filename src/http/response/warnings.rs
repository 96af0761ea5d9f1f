//! `Warning` headers (apiserver `endpoints/filters/warning.go`, RFC 7234).

use axum::http::header::{HeaderMap, HeaderValue, WARNING};

/// The number of characters of all texts together beyond which each is cut.
const TOTAL: usize = 4096;
/// The length to which texts are cut then.
const ITEM: usize = 256;

/// Adds a header for each text, in order. Texts with control characters are left out.
pub fn put(headers: &mut HeaderMap, texts: &[String]) {
    let whole: usize = texts.iter().map(|text| text.chars().count()).sum();
    let mut written = 0;
    for text in texts {
        if written >= TOTAL {
            return;
        }
        let text: String = text.chars().take(if whole > TOTAL { ITEM } else { usize::MAX }).collect();
        written += text.chars().count();
        headers.extend(header(&text).map(|header| (WARNING, header)));
    }
}

fn header(text: &str) -> Option<HeaderValue> {
    if text.chars().any(char::is_control) {
        return None;
    }
    let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
    HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(texts: &[String]) -> Vec<String> {
        let mut headers = HeaderMap::new();
        put(&mut headers, texts);
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        headers.get_all(WARNING).iter().map(text).collect()
    }

    #[test]
    fn texts_are_quoted_and_bad_ones_left_out() {
        let texts = ["unknown field \"a\\b\"".to_owned(), "two\nlines".to_owned(), "é".to_owned()];
        assert_eq!(headers(&texts), [r#"299 - "unknown field \"a\\b\"""#, "299 - \"é\""]);
    }

    #[test]
    fn too_much_text_is_cut() {
        let texts: Vec<String> = (0..40).map(|n| format!("{n:04}{}", "x".repeat(1000))).collect();
        let sent = headers(&texts);
        assert_eq!(sent.len(), TOTAL / ITEM);
        assert!(sent.iter().all(|header| header.len() == ITEM + "299 - \"\"".len()), "{sent:?}");
        let fitting: Vec<String> = (0..4).map(|n| format!("{n:04}{}", "x".repeat(1000))).collect();
        assert_eq!(headers(&fitting).len(), 4);
        assert!(headers(&fitting)[0].len() > 1000);
    }
}
