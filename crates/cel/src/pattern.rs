//! Regular expressions in RE2's syntax, as Go reads them.

use regex::Regex;

/// Braces that count nothing stand for themselves in Go.
fn literal_braces(text: &str) -> String {
    let (mut out, mut escaped, mut class) = (String::with_capacity(text.len()), false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => class = true,
            ']' => class = false,
            '{' if !class && !is_count(&text[at + 1..]) && !is_named(&text[..at]) => out.push('\\'),
            _ => {}
        }
        out.push(letter);
    }
    out
}

fn is_count(text: &str) -> bool {
    let Some((inside, _)) = text.split_once('}') else { return false };
    let (least, most) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !least.is_empty() && digits(least) && digits(most)
}

/// Whether an escape with a name or a number in braces ends there.
fn is_named(text: &str) -> bool {
    ["\\p", "\\P", "\\x"].iter().any(|escape| text.ends_with(escape))
}

/// A pattern that was read.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// An error says why the text is no pattern.
    pub fn new(text: &str) -> Result<Self, String> {
        let wrong = |why: regex::Error| format!("error parsing regexp: {why}");
        Regex::new(&literal_braces(text)).map(Self).map_err(wrong)
    }

    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.find(text).map(|found| found.as_str())
    }

    pub fn find_all<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.0.find_iter(text).map(|found| found.as_str())
    }
}
