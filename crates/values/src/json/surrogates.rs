//! Escapes of unpaired surrogates, which are not characters.

use memchr::memchr;

const REPLACEMENT: &str = "\\ufffd";

/// Replaces the escape of each unpaired surrogate by an escape of U+FFFD; `None` if there is none. The length of the
/// text does not change.
pub fn replaced(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        let start = at + found;
        let Some(unit) = unit(bytes, start) else {
            // Skips an escape of two bytes, since its second byte may be a backslash.
            at = start + 2;
            continue;
        };
        at = start + REPLACEMENT.len();
        match unit {
            0xd800..=0xdbff if matches!(self::unit(bytes, at), Some(0xdc00..=0xdfff)) => {
                at += REPLACEMENT.len();
            }
            0xd800..=0xdfff => {
                out.push_str(&text[copied..start]);
                out.push_str(REPLACEMENT);
                copied = at;
            }
            _ => {}
        }
    }
    if copied == 0 {
        return None;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

/// The offset of the first escaped surrogate, whether it is paired or not.
pub fn first(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        let start = at + memchr(b'\\', bytes.get(at..)?)?;
        if let Some(0xd800..=0xdfff) = unit(bytes, start) {
            return Some(start);
        }
        // Skips an escape of two bytes, since its second byte may be a backslash.
        at = start + 2;
    }
}

/// The UTF-16 unit that is escaped at this offset by `\u` and four digits.
fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + REPLACEMENT.len())?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |value, digit| Some(value << 4 | char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_half() {
        let cases = [
            ("", None),
            ("\\", None),
            (r"\n\u00e9\\ud800", None),
            (r"\ud83d\ude00", Some(0)),
            (r"\\\n\uDE00", Some(4)),
        ];
        for (text, want) in cases {
            assert_eq!(first(text), want, "{text}");
        }
    }

    #[test]
    fn halves_are_replaced_and_pairs_are_not() {
        let cases = [
            (r#""\ud800""#, r#""\ufffd""#),
            (r#""a\uDFFFb""#, r#""a\ufffdb""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\ud800\u0041\ud800\n\\""#, r#""\ufffd\u0041\ufffd\n\\""#),
        ];
        for (text, want) in cases {
            assert_eq!(replaced(text).as_deref(), Some(want), "{text}");
        }
        for text in [
            "",
            "\\",
            r#""\ud83d\ude00""#,
            r#""\\ud800""#,
            r#""\u12""#,
            r#""\ud8""#,
            r#""\é""#,
            r#""\ud80é""#,
        ] {
            assert_eq!(replaced(text), None, "{text}");
        }
    }
}
