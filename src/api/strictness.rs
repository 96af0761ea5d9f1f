//! How strictly a body is decoded, and what the client is told of what was passed over.

use std::sync::{Mutex, MutexGuard};

use super::ObjectMap;
use super::meta;
use super::options::write::FieldValidation;
use crate::schema::kind::Kind;
use crate::schema::types::Fit;
use crate::user::User;

/// What go-yaml says before its list of problems; upstream warns of each of them apart.
const YAML_PREFIXES: [&str; 2] =
    ["yaml: unmarshal errors:\n", "error converting YAML to JSON: yaml: unmarshal errors:\n"];

/// Warnings for the client, each text once, in their order. They are sent with errors too.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Texts>);

#[derive(Debug, Default)]
struct Texts {
    list: Vec<String>,
    /// Characters that would be sent of them.
    length: usize,
    /// How many were added, though mostly not for the first time.
    added: usize,
}

/// Characters of all texts after which no more are kept. Upstream sends 4096, and of each text, where there are more, no
/// more than 256.
const FULL: usize = 2 * 4096;
/// After so many nobody looks for more, even if most were told before.
const MOST_ADDED: usize = 10_000;
const MOST_OF_A_TEXT: usize = 256;

impl Warnings {
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut texts = self.lock();
        texts.added += 1;
        if texts.length < FULL && !text.is_empty() && !texts.list.contains(&text) {
            texts.length += text.chars().count().min(MOST_OF_A_TEXT);
            texts.list.push(text);
        }
    }

    /// Whether there are as many as will be sent, or as many as anybody looks for.
    pub fn is_full(&self) -> bool {
        let texts = self.lock();
        texts.length >= FULL || texts.added >= MOST_ADDED
    }

    /// All of them, and none is left.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lock()).list
    }

    fn lock(&self) -> MutexGuard<'_, Texts> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Who asks, and where to put what they should know.
#[derive(Clone, Copy)]
pub struct Requester<'a> {
    pub user: &'a User,
    pub warnings: &'a Warnings,
}

/// What becomes of unknown and repeated fields of one body.
#[derive(Clone, Copy)]
pub struct Strictness<'a> {
    pub validation: FieldValidation,
    pub warnings: &'a Warnings,
}

impl Strictness<'_> {
    /// Whether anybody wants to know.
    pub fn is_asked(self) -> bool {
        self.validation != FieldValidation::Ignore
    }

    /// Warns of the problems; where they are refused, the error says so.
    pub fn judge(self, problems: &[String]) -> Result<(), String> {
        match self.validation {
            _ if problems.is_empty() => {}
            FieldValidation::Ignore => {}
            FieldValidation::Strict => return Err(format!("strict decoding error: {}", problems.join(", "))),
            FieldValidation::Warn => problems.iter().for_each(|problem| self.warn(problem)),
        }
        Ok(())
    }

    /// Warns of a problem, unless nobody wants to know.
    pub fn warn(self, problem: &str) {
        if !self.is_asked() {
            return;
        }
        match YAML_PREFIXES.iter().find_map(|prefix| problem.strip_prefix(prefix)) {
            Some(list) => list.lines().for_each(|line| self.warnings.add(line.trim())),
            None => self.warnings.add(problem),
        }
    }
}

/// Makes of an object what upstream's types make of it; the words of Go's decoder if it is none of its kind.
pub fn conform(kind: &Kind, object: &mut ObjectMap) -> Result<Fit, String> {
    if kind.go().is_none() {
        meta::types::check(object)?;
    }
    kind.conform(object)
}

/// go-yaml's error about keys that are set twice.
pub fn yaml_error(repeated: &[String]) -> String {
    let lines: Vec<String> = repeated.iter().map(|key| format!("  {key}")).collect();
    format!("{}{}", YAML_PREFIXES[0], lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_warnings_are_kept_than_are_sent() {
        let warnings = Warnings::default();
        assert!(!warnings.is_full());
        (0..5000).for_each(|n| warnings.add(format!("{n}{}", "x".repeat(300))));
        assert!(warnings.is_full());
        let kept = warnings.take();
        assert_eq!(kept.len(), FULL / MOST_OF_A_TEXT);
        assert!(kept[0].starts_with("0x"));
        assert!(!warnings.is_full());
        (0..MOST_ADDED - 1).for_each(|_| warnings.add("again"));
        assert!(!warnings.is_full());
        warnings.add("again");
        assert!(warnings.is_full());
        assert_eq!(warnings.take(), ["again"]);
    }

    #[test]
    fn problems_are_refused_told_or_passed_over() {
        let problems = [yaml_error(&["line 2: a".into(), "line 3: b".into()]), "unknown field \"c\"".into()];
        let warnings = Warnings::default();
        let judge = |validation| Strictness { validation, warnings: &warnings }.judge(&problems);
        assert_eq!(judge(FieldValidation::Ignore), Ok(()));
        assert_eq!(
            judge(FieldValidation::Strict),
            Err("strict decoding error: yaml: unmarshal errors:\n  line 2: a\n  line 3: b, unknown field \"c\"".into())
        );
        assert!(warnings.take().is_empty());
        assert_eq!((judge(FieldValidation::Warn), judge(FieldValidation::Warn)), (Ok(()), Ok(())));
        assert_eq!(warnings.take(), ["line 2: a", "line 3: b", "unknown field \"c\""]);
    }
}
