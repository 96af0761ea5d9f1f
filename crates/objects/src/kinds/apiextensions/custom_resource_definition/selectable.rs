//! `selectableFields`: paths to scalars that field selectors may name.

use std::collections::BTreeSet;

use crate::kinds::prelude::*;

const MOST: usize = 8;

/// `without` is what upstream says if there is no schema; `may_be_too_many` if they were before, and are the same.
pub fn validate(
    list: &At<'_, '_>,
    schema: &Value,
    without: &str,
    may_be_too_many: bool,
    errors: &mut Errors,
) {
    if !list.is_empty() && schema.is_null() {
        return errors.invalid(list, "", without);
    }
    let mut seen = BTreeSet::new();
    for field in list.items() {
        let path = field.get("jsonPath");
        let text = path.text();
        if text.is_empty() {
            errors.required(&path, "");
            continue;
        }
        let (normal, found) = match follow(text, schema) {
            Ok(found) => found,
            Err(why) => {
                errors.invalid(&path, text, &format!("is an invalid path: {why}"));
                continue;
            }
        };
        if normal == "metadata" || normal.starts_with("metadata.") || normal.starts_with("metadata[") {
            errors.invalid(&path, text, "must not point to fields in metadata");
        }
        let kind = found.get("type").and_then(Value::as_str).unwrap_or_default();
        if !["string", "boolean", "integer"].contains(&kind) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                       formats are allowed.";
            errors.invalid(&path, text, why);
        }
        if !seen.insert(normal) {
            errors.duplicate(&path, text);
        }
    }
    if seen.len() > MOST && !may_be_too_many {
        errors.too_many(list, seen.len(), MOST);
    }
}

pub fn are_too_many(list: &Value) -> bool {
    list.as_array().is_some_and(|list| list.len() > MOST)
}

/// Goes down a path as upstream's `ValidFieldPath` does without indexes. Returns the path as errors would print it, and
/// the schema at its end; null where any value may be.
fn follow<'s>(path: &str, schema: &'s Value) -> Result<(String, &'s Value), String> {
    const NOWHERE: &str = "does not refer to a valid field";
    let mut tokens = tokens(path);
    let (mut schema, mut normal) = (schema, String::new());
    while let Some(token) = tokens.next() {
        match token {
            "." => {}
            "[" => return Err("array notation is not allowed".to_owned()),
            other => return Err(format!("expected [ or . but got: {other}")),
        }
        let name = tokens.next().ok_or("unexpected end of JSON path")?;
        let properties = schema.get("properties").filter(|properties| properties.is_object());
        let additional = schema.get("additionalProperties").filter(|additional| !additional.is_null());
        match (properties, additional) {
            (Some(properties), _) => {
                schema = properties.get(name).ok_or(NOWHERE)?;
                let dot = if normal.is_empty() { "" } else { "." };
                normal.push_str(&format!("{dot}{name}"));
            }
            (None, Some(additional)) => {
                schema = additional;
                normal.push_str(&format!("[{name}]"));
            }
            (None, None) => return Err(NOWHERE.to_owned()),
        }
    }
    Ok((normal, schema))
}

/// Dots and brackets, and what stands between them; what begins with a single quote goes to the next one.
fn tokens(path: &str) -> impl Iterator<Item = &str> {
    let mut rest = path;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let mut before = first;
                let closing = rest.char_indices().skip(1).find(|(_, c)| {
                    let closes = *c == '\'' && before != '\\';
                    before = *c;
                    closes
                });
                closing.map_or(rest.len(), |(at, _)| at + 1)
            }
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(end);
        rest = after;
        Some(token)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    #[test]
    fn paths_are_followed_as_upstream_follows_them() {
        let schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "properties": {
                "color": {"type": "string"}, "list": {"type": "array", "items": {"type": "string"}},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "any": {"type": "object", "additionalProperties": true}}}}});
        let good = [
            (".spec.color", "spec.color", "string"),
            (".spec.map.x", "spec.map[x]", "integer"),
            (".spec.list", "spec.list", "array"),
            (".spec.any.x", "spec.any[x]", ""),
            ("", "", "object"),
        ];
        for (path, normal, kind) in good {
            let (found, schema) = follow(path, &schema).expect(path);
            assert_eq!((&*found, schema.get("type").and_then(Value::as_str).unwrap_or("")), (normal, kind));
        }
        let bad = [
            ("spec.color", "expected [ or . but got: spec"),
            ("]", "expected [ or . but got: ]"),
            (".spec.list[0]", "array notation is not allowed"),
            (".spec.size", "does not refer to a valid field"),
            (".spec.color.x", "does not refer to a valid field"),
            (".spec..color", "does not refer to a valid field"),
            (".spec.any.x.y", "does not refer to a valid field"),
            (".spec.", "unexpected end of JSON path"),
            (".spec'a.b'", "does not refer to a valid field"),
            ("'a.b'c", "expected [ or . but got: 'a.b'"),
        ];
        for (path, why) in bad {
            assert_eq!(follow(path, &schema).expect_err(path), why, "{path}");
        }
    }
}
