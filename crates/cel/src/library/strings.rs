//! Functions of texts (cel-go `ext/strings.go`); positions count letters.

use crate::value::{Error, Text, Value};

/// The most bytes that a text may become.
pub const LARGEST: usize = 16 << 20;

fn out_of_range(at: i64) -> Error {
    Error::new(format!("index out of range: {at}"))
}

/// The byte at which a letter begins, or the end of the text behind the last one; `None` beyond that.
fn byte_of(text: &str, letter: usize) -> Option<usize> {
    let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    places.nth(letter)
}

fn place(text: &str, letter: i64) -> Result<usize, Error> {
    usize::try_from(letter).ok().and_then(|letter| byte_of(text, letter)).ok_or_else(|| out_of_range(letter))
}

fn cut<'a>(text: &Text<'a>, from: usize, to: usize) -> Value<'a> {
    match text {
        Text::Borrowed(text) => Value::String(Text::Borrowed(&text[from..to])),
        Text::Shared(text) => Value::string(&text[from..to]),
    }
}

fn char_at<'a>(text: &Text<'a>, at: i64) -> Result<Value<'a>, Error> {
    let from = place(text, at)?;
    let length = text[from..].chars().next().map_or(0, char::len_utf8);
    Ok(cut(text, from, from + length))
}

fn substring<'a>(text: &Text<'a>, from: i64, to: Option<i64>) -> Result<Value<'a>, Error> {
    if let Some(to) = to.filter(|to| from > *to) {
        return Err(Error::new(format!("invalid substring range. start: {from}, end: {to}")));
    }
    let start = place(text, from)?;
    let end = to.map_or(Ok(text.len()), |to| place(text, to))?;
    Ok(cut(text, start, end))
}

fn index_of(text: &str, part: &str, from: i64) -> Result<i64, Error> {
    let start = usize::try_from(from).map_err(|_| out_of_range(from))?;
    let letters = text.chars().count();
    if part.is_empty() {
        return Ok(start.min(letters) as i64);
    }
    if start >= letters {
        return Ok(-1);
    }
    let at = byte_of(text, start).unwrap_or(text.len());
    Ok(text[at..].find(part).map_or(-1, |found| (start + text[at..at + found].chars().count()) as i64))
}

fn last_index_of(text: &str, part: &str, from: Option<i64>) -> Result<i64, Error> {
    let letters = text.chars().count();
    let Some(from) = from else {
        if part.is_empty() {
            return Ok(letters as i64);
        }
        let found = text.rfind(part);
        return Ok(found.map_or(-1, |found| text[..found].chars().count() as i64));
    };
    let start = usize::try_from(from).map_err(|_| out_of_range(from))?;
    if part.is_empty() {
        return Ok(start.min(letters) as i64);
    }
    if start >= letters {
        return Ok(-1);
    }
    // The last one that begins there or before.
    let end = byte_of(text, start + part.chars().count()).unwrap_or(text.len());
    Ok(text[..end].rfind(part).map_or(-1, |found| text[..found].chars().count() as i64))
}

/// `strings.Replace`: nothing is found before each letter and behind the last.
fn replace(text: &str, old: &str, new: &str, most: i64) -> Result<String, Error> {
    let count = usize::try_from(most).unwrap_or(usize::MAX);
    let found = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() };
    let size = text.len().saturating_add(found.min(count).saturating_mul(new.len()));
    if size > LARGEST {
        return Err(Error::new("operation cancelled: actual cost limit exceeded"));
    }
    Ok(text.replacen(old, new, count))
}

/// `strings.SplitN`: letters, if there is nothing to split at.
fn split<'a>(text: &Text<'a>, at: &str, most: i64) -> Value<'a> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut parts = Vec::new();
    let mut from = 0;
    if most == 0 {
        return Value::owned(parts);
    }
    while parts.len() + 1 < most {
        let (end, next) = if at.is_empty() {
            let Some(letter) = text[from..].chars().next() else { break };
            (from + letter.len_utf8(), from + letter.len_utf8())
        } else {
            let Some(found) = text[from..].find(at) else { break };
            (from + found, from + found + at.len())
        };
        if at.is_empty() && end == text.len() {
            break;
        }
        parts.push(cut(text, from, end));
        from = next;
    }
    if !(at.is_empty() && text.is_empty()) {
        parts.push(cut(text, from, text.len()));
    }
    Value::owned(parts)
}

fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for letter in text.chars() {
        match letter {
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// How many letters the texts of a list have together, with a separator between them.
pub fn joined_letters(arguments: &[Value<'_>]) -> u64 {
    let Some(Value::List(list)) = arguments.first() else { return 1 };
    let letters = list.iter().map(|item| match item {
        Ok(Value::String(text)) => Some(text.letters() as u64),
        _ => None,
    });
    let separator = arguments.get(1).map_or(0, Value::size);
    // What cannot be joined is an error, and errors count 1.
    letters.sum::<Option<u64>>().map_or(1, |sum| sum + separator * (list.len() as u64).saturating_sub(1))
}

fn join<'a>(arguments: &[Value<'a>], separator: &str) -> Option<Result<Value<'a>, Error>> {
    let Value::List(list) = arguments.first()? else { return None };
    if !list.is_empty() && !matches!(list.get(0), Ok(Value::String(_))) {
        return None;
    }
    let mut out = String::new();
    for (at, item) in list.iter().enumerate() {
        out.push_str(if at > 0 { separator } else { "" });
        match item {
            Ok(Value::String(text)) => out.push_str(&text),
            Ok(other) => return Some(Err(Error::new(format!("join: invalid input: {}", other.shown())))),
            Err(why) => return Some(Err(Error::new(format!("join: invalid input: {}", why.message())))),
        }
    }
    Some(Ok(Value::string(out)))
}

pub fn call<'a>(function: &str, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Error>> {
    if function == "join" {
        return match arguments.get(1) {
            None => join(arguments, ""),
            Some(separator) => join(arguments, separator.as_str()?),
        };
    }
    let Value::String(text) = arguments.first()? else { return None };
    let int = |at: usize| match arguments.get(at) {
        Some(Value::Int(number)) => Some(*number),
        _ => None,
    };
    let part = |at: usize| arguments.get(at).and_then(Value::as_str);
    let found = match (function, arguments.len()) {
        ("charAt", 2) => char_at(text, int(1)?),
        ("substring", 2) => substring(text, int(1)?, None),
        ("substring", 3) => substring(text, int(1)?, Some(int(2)?)),
        ("indexOf", 2) => index_of(text, part(1)?, 0).map(Value::Int),
        ("indexOf", 3) => index_of(text, part(1)?, int(2)?).map(Value::Int),
        ("lastIndexOf", 2) => last_index_of(text, part(1)?, None).map(Value::Int),
        ("lastIndexOf", 3) => last_index_of(text, part(1)?, Some(int(2)?)).map(Value::Int),
        ("lowerAscii", 1) => Ok(Value::string(text.to_ascii_lowercase())),
        ("upperAscii", 1) => Ok(Value::string(text.to_ascii_uppercase())),
        ("trim", 1) => {
            let trimmed = text.trim();
            let from = trimmed.as_ptr() as usize - text.as_ptr() as usize;
            Ok(cut(text, from, from + trimmed.len()))
        }
        ("replace", 3) => replace(text, part(1)?, part(2)?, -1).map(Value::string),
        ("replace", 4) => replace(text, part(1)?, part(2)?, int(3)?).map(Value::string),
        ("split", 2) => Ok(split(text, part(1)?, -1)),
        ("split", 3) => Ok(split(text, part(1)?, int(2)?)),
        ("strings.quote", 1) => Ok(Value::string(quote(text))),
        ("jsonpatch.escapeKey", 1) => Ok(Value::string(text.replace('~', "~0").replace('/', "~1"))),
        _ => return None,
    };
    Some(found)
}
