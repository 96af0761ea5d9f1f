//! Where in an expression something is wrong, and how cel-go shows it (`common/errors.go`).

use cel::common::ast::SourceInfo;
use cel::parser::ParseError;

use super::DEPTH;

/// How many are told.
pub const MOST: usize = 100;

/// What is wrong, at an expression of this id.
#[derive(Clone, Debug)]
pub struct Found {
    pub id: u64,
    pub message: String,
}

#[derive(Clone, Debug)]
pub struct Problem {
    line: usize,
    column: usize,
    message: String,
}

impl Problem {
    pub fn of_parser(error: ParseError) -> Self {
        let number = |number: isize| usize::try_from(number).unwrap_or_default();
        let (line, column) = error.pos;
        // The crate tells this one as its own struct.
        let deep = error.msg.contains("Recursion limit of ");
        let message = if deep { format!("expression recursion limit exceeded: {DEPTH}") } else { error.msg };
        Self { line: number(line), column: number(column), message }
    }

    fn show(&self, text: &str) -> String {
        let Self { line, column, message } = self;
        // Nothing has no first column, and cannot be shown.
        if text.is_empty() {
            return format!("ERROR: <input>:{line}:0: {message}");
        }
        let source = line.checked_sub(1).and_then(|row| text.split('\n').nth(row)).unwrap_or_default();
        let source = source.replace('\t', " ");
        let wide = |c: char| c.len_utf8() > 1;
        let mut letters = source.chars();
        let before = letters.by_ref().take(column.saturating_sub(1));
        let dots: String = before.map(|c| if wide(c) { '．' } else { '.' }).collect();
        let mark = if letters.next().is_some_and(wide) { '＾' } else { '^' };
        format!("ERROR: <input>:{line}:{column}: {message}\n | {source}\n | {dots}{mark}")
    }
}

/// All that is wrong with an expression.
#[derive(Default)]
pub struct Problems {
    problems: Vec<Problem>,
    more: usize,
}

impl Problems {
    pub fn push(&mut self, problem: Problem) {
        if self.problems.len() < MOST {
            self.problems.push(problem);
        } else {
            self.more += 1;
        }
    }

    /// Problems of a checked expression, where its parts begin.
    pub fn placed(found: Vec<Found>, text: &str, positions: &SourceInfo) -> Self {
        let mut problems = Self::default();
        for Found { id, message } in found {
            let start = positions.offset_for(id).map_or(0, |(start, _)| start as usize);
            let before = text.get(..start).unwrap_or(text).chars();
            let (line, column) = before.fold((1, 1), |(line, column), letter| match letter {
                '\n' => (line + 1, 1),
                _ => (line, column + 1),
            });
            problems.push(Problem { line, column, message });
        }
        problems.problems.sort_by_key(|problem| (problem.line, problem.column));
        problems
    }

    pub fn show(&self, text: &str) -> String {
        let mut lines: Vec<String> = self.problems.iter().map(|problem| problem.show(text)).collect();
        if self.more > 0 {
            lines.push(format!("{} more errors were truncated", self.more));
        }
        lines.join("\n")
    }
}
