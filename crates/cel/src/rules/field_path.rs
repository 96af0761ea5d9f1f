//! `fieldPath` of a rule: `.a.b`, `['a.b']`, of members that the schema has.

use rowplane_values::tree::Value;

/// A path as messages print it.
#[derive(Debug, PartialEq, Eq)]
pub struct FieldPath(pub String);

impl FieldPath {
    /// The path that a text stands for below a schema; the error is upstream's.
    pub fn parse(text: &str, schema: &Value) -> Result<Self, String> {
        let (mut at, mut out) = (Some(schema), String::new());
        let mut tokens = Tokens { rest: text };
        while let Some(token) = tokens.next() {
            let end = || "unexpected end of JSON path".to_owned();
            let name = match token {
                "." => tokens.next().ok_or_else(end)?.to_owned(),
                "[" => {
                    let quoted = tokens.next().ok_or_else(end)?;
                    let inner = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                    let inner =
                        inner.ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                    unescaped(inner).map_err(|why| format!("invalid string literal: {why}"))?
                }
                other => return Err(format!("expected [ or . but got: {other}")),
            };
            at = step(at.ok_or_else(missing)?, &name, &mut out)?;
            if token == "[" {
                match tokens.next() {
                    Some("]") => {}
                    Some(other) => return Err(format!("expected ] but got {other}")),
                    None => return Err(end()),
                }
            }
        }
        Ok(Self(out))
    }
}

fn missing() -> String {
    "does not refer to a valid field".to_owned()
}

/// The schema of a member; `None` if the member is allowed by `additionalProperties: true`, which has no schema.
fn step<'s>(at: &'s Value, name: &str, out: &mut String) -> Result<Option<&'s Value>, String> {
    let properties = at.get("properties").and_then(Value::as_object).filter(|all| !all.is_empty());
    if let Some(properties) = properties {
        let found = properties.get(name).ok_or_else(missing)?;
        out.push_str(if out.is_empty() { "" } else { "." });
        out.push_str(name);
        return Ok(Some(found));
    }
    let values = at.get("additionalProperties").filter(|values| !values.is_null()).ok_or_else(missing)?;
    out.push_str(&format!("[{name}]"));
    Ok(values.is_object().then_some(values))
}

/// Signs, quoted texts and what stands between them.
struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Tokens<'t> {
    fn next(&mut self) -> Option<&'t str> {
        let rest = self.rest;
        let first = rest.chars().next()?;
        let length = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let bytes = rest.as_bytes();
                let close = (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\');
                close.map_or(rest.len(), |at| at + 1)
            }
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        let (token, rest) = rest.split_at(length);
        self.rest = rest;
        Some(token)
    }
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            out.push(letter);
            continue;
        }
        let Some(escaped) = letters.next() else {
            out.push('\\');
            break;
        };
        out.push(match escaped {
            'a' => '\x07',
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            '\'' | '\\' => escaped,
            other => return Err(format!("invalid escape char \\{other}")),
        });
    }
    Ok(out)
}
