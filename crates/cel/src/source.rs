//! Errors in an expression: their places, and how cel-go shows them (`common/errors.go`).

/// How many are told.
pub const MOST: usize = 100;
/// Longer lines are not shown.
const LONGEST_LINE: usize = 16384;

#[derive(Clone, Debug)]
pub struct Problem {
    /// The byte where it is; `None` for what is wrong with all of the expression.
    pub start: Option<usize>,
    pub message: String,
}

impl Problem {
    pub fn at(start: u32, message: String) -> Self {
        Self { start: Some(start as usize), message }
    }

    pub fn of_all(message: String) -> Self {
        Self { start: None, message }
    }

    /// Line and column from 1.
    fn place(&self, text: &str) -> Option<(usize, usize)> {
        let before = text.get(..self.start?).unwrap_or(text);
        let line = 1 + before.matches('\n').count();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        Some((line, column + 1))
    }

    fn show(&self, text: &str) -> String {
        let message = &self.message;
        let Some((line, column)) = self.place(text) else {
            return format!("ERROR: <input>:-1:0: {message}");
        };
        // Nothing has no first column, and cannot be shown.
        if text.is_empty() {
            return format!("ERROR: <input>:{line}:0: {message}");
        }
        let source = text.split('\n').nth(line - 1).unwrap_or_default();
        if source.len() > LONGEST_LINE {
            return format!("ERROR: <input>:{line}:{column}: {message}");
        }
        let source = source.replace('\t', " ");
        let wide = |c: char| c.len_utf8() > 1;
        let mut letters = source.chars();
        let before = letters.by_ref().take(column.saturating_sub(1));
        let dots: String = before.map(|c| if wide(c) { '．' } else { '.' }).collect();
        let mark = if letters.next().is_some_and(wide) { '＾' } else { '^' };
        format!("ERROR: <input>:{line}:{column}: {message}\n | {source}\n | {dots}{mark}")
    }
}

/// All that is wrong with an expression, as cel-go prints it.
pub fn show(mut problems: Vec<Problem>, text: &str) -> String {
    let more = problems.len().saturating_sub(MOST);
    problems.truncate(MOST);
    problems.sort_by_key(|problem| problem.start.map_or(0, |start| start + 1));
    let mut lines: Vec<String> = problems.iter().map(|problem| problem.show(text)).collect();
    if more > 0 {
        lines.push(format!("{more} more errors were truncated"));
    }
    lines.join("\n")
}
