//! Field selectors: `metadata.name=a,status.phase!=Running` (apimachinery `fields.ParseSelector`).

use std::borrow::Cow;

use crate::error::Error;
use crate::kinds::behavior::selectable::SelectableFields;
use crate::tree::Value;

/// All terms must match; without terms, everything matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

/// A field that is missing in the object compares as the empty string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    pub field: String,
    pub operator: Operator,
    pub value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Equals,
    NotEquals,
}

impl FieldSelector {
    /// Parses the query parameter. [`FieldSelector::resolve`] checks which fields exist. The error is the whole message
    /// of upstream's 400.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = split_terms(text);
        // Upstream sorts before it parses, which decides which of several errors is reported.
        parts.sort_unstable();
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.map(|part| term(part, text)).collect::<Result<_, _>>().map(|terms| Self { terms })
    }

    /// Renames the fields to the kind's own names; 400 for unknown fields.
    pub fn resolve(self, fields: &SelectableFields) -> Result<Self, Error> {
        let rename = |term: Term| {
            let field = fields.canonical(&term.field).map_err(Error::BadRequest)?.to_owned();
            Ok(Term { field, ..term })
        };
        self.terms.into_iter().map(rename).collect::<Result<_, _>>().map(|terms| Self { terms })
    }

    /// Like [`FieldSelector::resolve`]; terms of unknown fields are apart.
    pub fn resolve_known(self, fields: &SelectableFields) -> (Self, Vec<Term>) {
        let (mut known, mut others) = (Vec::new(), Vec::new());
        for term in self.terms {
            match fields.canonical(&term.field).map(str::to_owned) {
                Ok(field) => known.push(Term { field, ..term }),
                Err(_) => others.push(term),
            }
        }
        (Self { terms: known }, others)
    }

    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// The value that `field` must have, if the selector allows just one.
    pub fn requires_exact_match(&self, field: &str) -> Option<&str> {
        let fits = |term: &&Term| term.operator == Operator::Equals && term.field == field;
        self.terms.iter().find(fits).map(|term| term.value.as_str())
    }

    /// Whether an object matches. `lookup` returns the value of a field of the object, empty if it is missing.
    pub fn matches<'a>(&self, lookup: impl Fn(&str) -> Cow<'a, str>) -> bool {
        self.terms.iter().all(|term| {
            let equal = lookup(&term.field) == term.value;
            equal == (term.operator == Operator::Equals)
        })
    }

    /// The variant of [`FieldSelector::matches`] for a whole object. The selector must be resolved.
    pub fn matches_object(&self, fields: &SelectableFields, object: &Value) -> bool {
        self.matches(|field| fields.value(field, object))
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let mut start = 0;
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                terms.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn term(part: &str, whole: &str) -> Result<Term, String> {
    let unclear = || format!("invalid selector: '{whole}'; can't understand '{part}'");
    let at = part.char_indices().map(|(i, _)| i).find_map(|i| operator_at(part, i));
    let (i, operator, length) = at.ok_or_else(unclear)?;
    let value = unescape(&part[i + length..])?;
    Ok(Term { field: part[..i].to_owned(), operator, value })
}

fn operator_at(part: &str, i: usize) -> Option<(usize, Operator, usize)> {
    let operators = [("!=", Operator::NotEquals), ("==", Operator::Equals), ("=", Operator::Equals)];
    let here = operators.into_iter().find(|(text, _)| part[i..].starts_with(text))?;
    Some((i, here.1, here.0.len()))
}

fn unescape(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(c @ ('\\' | ',' | '=')) => out.push(c),
                other => {
                    let other = other.map(String::from).unwrap_or_default();
                    return Err(format!("invalid field selector: invalid escape sequence: \\{other}"));
                }
            },
            ',' | '=' => {
                let code = u32::from(c);
                return Err(format!("invalid field selector: unescaped character in value: {code}"));
            }
            c => out.push(c),
        }
    }
    Ok(out)
}
