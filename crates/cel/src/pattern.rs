//! Regular expressions in RE2's syntax, as Go reads them.

use regex::Regex;

/// A pattern that was read.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// An error says why the text is no pattern.
    pub fn new(text: &str) -> Result<Self, String> {
        let wrong = |why: regex::Error| format!("error parsing regexp: {why}");
        Regex::new(text).map(Self).map_err(wrong)
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
