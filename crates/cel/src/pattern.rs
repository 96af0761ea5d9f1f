//! Regular expressions as Go reads them.

use rowplane_values::regexp::Regexp;

/// A pattern that was read.
#[derive(Clone)]
pub struct Pattern(Regexp);

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Pattern")
    }
}

impl Pattern {
    /// An error says why the text is no pattern.
    pub fn new(text: &str) -> Result<Self, String> {
        Regexp::compile(text).map(Self).map_err(|why| why.to_string())
    }

    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.find(text).map(|found| &text[found])
    }

    pub fn find_all<'t>(&self, text: &'t str) -> impl Iterator<Item = &'t str> {
        self.0.find_iter(text).map(move |found| &text[found])
    }
}
