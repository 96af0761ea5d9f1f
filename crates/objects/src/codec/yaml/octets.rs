//! Documents that are not UTF-8, and goyaml's errors about them.

use std::str::Utf8Error;

/// The text of a document, or goyaml's error.
pub fn text(document: &[u8]) -> Result<&str, &'static str> {
    std::str::from_utf8(document).map_err(|error| why(document, error))
}

fn why(document: &[u8], error: Utf8Error) -> &'static str {
    let rest = &document[error.valid_up_to()..];
    let width = match rest[0] {
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return "invalid leading UTF-8 octet",
    };
    let Some(sequence) = rest.get(..width) else { return "incomplete UTF-8 octet sequence" };
    if sequence[1..].iter().any(|octet| octet & 0xc0 != 0x80) {
        return "invalid trailing UTF-8 octet";
    }
    match sequence {
        [0xc0 | 0xc1, ..] | [0xe0, 0x80..=0x9f, _] | [0xf0, 0x80..=0x8f, ..] => {
            "invalid length of a UTF-8 sequence"
        }
        _ => "invalid Unicode character",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong() {
        let cases: [(&[u8], &str); 8] = [
            (b"a\xff", "invalid leading UTF-8 octet"),
            (b"\x80", "invalid leading UTF-8 octet"),
            (b"a\xe2\x82\"", "invalid trailing UTF-8 octet"),
            (b"a\xe2\x82", "incomplete UTF-8 octet sequence"),
            (b"\xc0\x80", "invalid length of a UTF-8 sequence"),
            (b"\xe0\x80\x80", "invalid length of a UTF-8 sequence"),
            (b"\xed\xa0\x80", "invalid Unicode character"),
            (b"\xf4\x90\x80\x80", "invalid Unicode character"),
        ];
        for (document, want) in cases {
            assert_eq!(text(document), Err(want), "{document:x?}");
        }
        assert_eq!(text("é".as_bytes()), Ok("é"));
    }
}
