//! Contents of literals of strings and bytes (cel-go `parser/unescape.go`).

/// The contents of a string, quotes and all; the lexer has seen that it is well-formed but for code points.
pub fn string(literal: &str) -> Result<String, &'static str> {
    let bytes = contents(literal, false)?;
    String::from_utf8(bytes).map_err(|_| "invalid unicode code point")
}

/// The contents of a bytes literal, without its `b`.
pub fn bytes(literal: &str) -> Result<Vec<u8>, &'static str> {
    contents(literal, true)
}

fn contents(literal: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let text = literal.replace("\r\n", "\n").replace('\r', "\n");
    let raw = text.starts_with(['r', 'R']);
    let quoted = if raw { &text[1..] } else { &text };
    let triple = ["'''", "\"\"\""].iter().any(|quotes| quoted.len() >= 6 && quoted.starts_with(quotes));
    let quotes = if triple { 3 } else { 1 };
    let inner = &quoted[quotes..quoted.len() - quotes];
    if raw {
        return Ok(inner.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = escape(&rest[at + 1..], is_bytes, &mut out)?;
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

const UNREADABLE: &str = "unable to unescape string";

/// Adds what an escape stands for; the text behind it.
fn escape<'t>(text: &'t str, is_bytes: bool, out: &mut Vec<u8>) -> Result<&'t str, &'static str> {
    let Some(first) = text.bytes().next() else { return Err(UNREADABLE) };
    let (digits, base) = match first {
        b'x' | b'X' => (1..3, 16),
        b'u' if !is_bytes => (1..5, 16),
        b'U' if !is_bytes => (1..9, 16),
        b'0'..=b'3' => (0..3, 8),
        _ => {
            out.push(plain(first).ok_or(UNREADABLE)?);
            return Ok(&text[1..]);
        }
    };
    let end = digits.end;
    let number =
        text.get(digits).and_then(|digits| u32::from_str_radix(digits, base).ok()).ok_or(UNREADABLE)?;
    if is_bytes {
        out.push(u8::try_from(number).map_err(|_| UNREADABLE)?);
    } else {
        let letter = char::from_u32(number).ok_or("invalid unicode code point")?;
        out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    }
    Ok(&text[end..])
}

fn plain(letter: u8) -> Option<u8> {
    Some(match letter {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'\\' | b'\'' | b'"' | b'`' | b'?' => letter,
        _ => return None,
    })
}
