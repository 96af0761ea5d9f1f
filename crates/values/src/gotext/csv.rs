//! Comma-separated values as Go's `encoding/csv` reads them: blank lines are skipped, `""` in a quoted field is a quote, and
//! quoted fields may contain commas and line ends.

use std::iter::Peekable;
use std::str::Chars;

/// The problem of a record, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("bare \" in a non-quoted field")]
    BareQuote,
    #[error("extraneous or missing \" in a quoted field")]
    Quote,
}

/// The records of a text, each with the line on which it starts, or the line of its problem; a problem ends them.
pub struct Records<'a> {
    chars: Peekable<Chars<'a>>,
    /// The current line, counted from 1.
    line: usize,
    has_failed: bool,
}

impl<'a> Records<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { chars: text.chars().peekable(), line: 1, has_failed: false }
    }

    fn record(&mut self) -> Result<Vec<String>, Problem> {
        let mut record = Vec::new();
        loop {
            record.push(self.field()?);
            if self.chars.next_if_eq(&',').is_none() {
                self.take_line_end();
                return Ok(record);
            }
        }
    }

    fn field(&mut self) -> Result<String, Problem> {
        if self.chars.next_if_eq(&'"').is_some() { self.quoted() } else { self.bare() }
    }

    fn bare(&mut self) -> Result<String, Problem> {
        let mut field = String::new();
        while let Some(c) = self.chars.next_if(|c| !matches!(c, ',' | '\n')) {
            if c == '"' {
                return Err(Problem::BareQuote);
            }
            field.push(c);
        }
        if self.chars.peek() != Some(&',') && field.ends_with('\r') {
            field.pop();
        }
        Ok(field)
    }

    fn quoted(&mut self) -> Result<String, Problem> {
        let mut field = String::new();
        loop {
            match self.chars.next() {
                None => return Err(Problem::Quote),
                Some('"') if self.chars.next_if_eq(&'"').is_some() => field.push('"'),
                Some('"') => break,
                Some(c) => {
                    self.line += usize::from(c == '\n');
                    field.push(c);
                }
            }
        }
        match self.chars.peek() {
            None | Some(',' | '\n' | '\r') => Ok(field),
            Some(_) => Err(Problem::Quote),
        }
    }

    fn take_line_end(&mut self) -> bool {
        let carriage_return = self.chars.next_if_eq(&'\r').is_some();
        let line_feed = self.chars.next_if_eq(&'\n').is_some();
        self.line += usize::from(line_feed);
        carriage_return || line_feed
    }
}

impl Iterator for Records<'_> {
    type Item = (usize, Result<Vec<String>, Problem>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.take_line_end() {}
        if self.has_failed || self.chars.peek().is_none() {
            return None;
        }
        let start = self.line;
        let record = self.record();
        self.has_failed = record.is_err();
        Some((if self.has_failed { self.line } else { start }, record))
    }
}
