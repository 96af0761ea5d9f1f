//! The numbers of a text as they are spelled.

/// In their order; of a text that is JSON.
pub(super) struct Literals<'t> {
    rest: &'t str,
}

impl<'t> Literals<'t> {
    pub fn of(text: &'t str) -> Self {
        Self { rest: text }
    }
}

impl<'t> Iterator for Literals<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        loop {
            let start = self.rest.find(|c: char| matches!(c, '"' | '-' | '0'..='9'))?;
            let found = &self.rest[start..];
            if let Some(string) = found.strip_prefix('"') {
                self.rest = &string[end_of_string(string)?..];
                continue;
            }
            let is_of_number = |c: char| matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9');
            let end = found.find(|c| !is_of_number(c)).unwrap_or(found.len());
            self.rest = &found[end..];
            return Some(&found[..end]);
        }
    }
}

/// Behind the quote that ends a string.
fn end_of_string(string: &str) -> Option<usize> {
    let mut at = 0;
    loop {
        let found = at + string[at..].find(['"', '\\'])?;
        match string.as_bytes()[found] {
            b'"' => return Some(found + 1),
            // What is escaped may be a quote; it is one byte at least.
            _ => at = found + 1 + string[found + 1..].chars().next()?.len_utf8(),
        }
    }
}
