//! Go's `%q`, in which upstream's messages put names.

use std::fmt::Write as _;

/// `text` between double quotes, with Go's escapes for quotes, backslashes and control characters.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        push_escaped(&mut out, c);
    }
    out.push('"');
    out
}

fn push_escaped(out: &mut String, c: char) {
    let escape = match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '\u{7}' => "\\a",
        '\u{8}' => "\\b",
        '\u{b}' => "\\v",
        '\u{c}' => "\\f",
        control if control.is_ascii_control() => {
            let _ = write!(out, "\\x{:02x}", u32::from(control));
            return;
        }
        control if control.is_control() => {
            let _ = write!(out, "\\u{:04x}", u32::from(control));
            return;
        }
        plain => return out.push(plain),
    };
    out.push_str(escape);
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn escapes_like_go() {
        assert_eq!(quoted("a b"), r#""a b""#);
        assert_eq!(quoted("a\"\\\n\u{1}\u{7f}\u{85}ä"), r#""a\"\\\n\x01\x7f\u0085ä""#);
    }
}
