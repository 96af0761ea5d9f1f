//! Rows for people and programs.

use std::io::Write;

use serde_json::{Map, Value};

use super::Format;
use super::ask::Line;
use crate::cli::error::Error;

/// Rows that are looked at before the widths of columns are settled.
const LOOKED_AT: usize = 1_000;
/// The widest column of a table, but for the last one.
const WIDEST: usize = 80;

/// Prints the lines of an answer.
pub struct Printer<'a> {
    format: Format,
    out: &'a mut dyn Write,
    columns: Vec<(String, String)>,
    /// Rows that wait until the widths are known.
    waiting: Vec<Vec<String>>,
    widths: Option<Vec<usize>>,
}

impl<'a> Printer<'a> {
    pub fn new(format: Format, out: &'a mut dyn Write) -> Self {
        Self { format, out, columns: Vec::new(), waiting: Vec::new(), widths: None }
    }

    pub fn line(&mut self, line: Line) -> Result<(), Error> {
        match line {
            Line::Columns(columns) => {
                self.columns = columns;
                let names: Vec<String> = self.columns.iter().map(|(name, _)| name.clone()).collect();
                match self.format {
                    Format::Table => {
                        self.waiting.push(names.iter().map(|name| name.to_uppercase()).collect())
                    }
                    Format::Csv => self.csv(names.into_iter().map(Some))?,
                    Format::Json => {}
                }
                Ok(())
            }
            Line::Row(row) => self.row(row),
        }
    }

    fn row(&mut self, row: Vec<Value>) -> Result<(), Error> {
        match self.format {
            Format::Json => {
                let names = self.columns.iter().map(|(name, _)| name.clone());
                let object: Map<String, Value> = names.zip(row).collect();
                writeln!(self.out, "{}", Value::Object(object)).map_err(Error::Output)
            }
            Format::Csv => self.csv(row.iter().map(|value| (!value.is_null()).then(|| text(value)))),
            Format::Table => {
                self.waiting.push(row.iter().map(cell).collect());
                if self.widths.is_some() || self.waiting.len() > LOOKED_AT { self.flush() } else { Ok(()) }
            }
        }
    }

    /// Prints the last rows.
    pub fn end(&mut self) -> Result<(), Error> {
        self.flush()?;
        self.out.flush().map_err(Error::Output)
    }

    fn csv(&mut self, cells: impl Iterator<Item = Option<String>>) -> Result<(), Error> {
        let quoted = |cell: String| match cell.is_empty() || cell.contains([',', '"', '\r', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell,
        };
        let cells: Vec<String> = cells.map(|cell| cell.map(quoted).unwrap_or_default()).collect();
        writeln!(self.out, "{}", cells.join(",")).map_err(Error::Output)
    }

    fn flush(&mut self) -> Result<(), Error> {
        let widths = self.widths.get_or_insert_with(|| {
            let width =
                |at: usize| self.waiting.iter().map(|row: &Vec<String>| row[at].chars().count()).max();
            (0..self.columns.len()).map(|at| width(at).unwrap_or_default().min(WIDEST)).collect()
        });
        for row in self.waiting.drain(..) {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let (width, is_number) = (widths[at], matches!(&*self.columns[at].1, "INTEGER" | "REAL"));
                let gap = if at == 0 { "" } else { "  " };
                match is_number {
                    true => line += &format!("{gap}{cell:>width$}"),
                    false => line += &format!("{gap}{cell:width$}"),
                }
            }
            writeln!(self.out, "{}", line.trim_end()).map_err(Error::Output)?;
        }
        Ok(())
    }
}

/// A value without quotes.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A value in one line of a table; control characters of an object's texts do not reach the terminal.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        value => text(value).chars().map(|c| if c.is_control() { ' ' } else { c }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn print(format: Format) -> String {
        let mut out = Vec::new();
        let mut printer = Printer::new(format, &mut out);
        let columns =
            [("name", "TEXT"), ("n", "INTEGER")].map(|(name, kind)| (name.to_owned(), kind.to_owned()));
        let rows = [json!(["a\u{1b},b", 5]), json!(["long name", 12]), json!([null, null])];
        let lines = rows.into_iter().filter_map(|row| Some(Line::Row(row.as_array()?.clone())));
        for line in [Line::Columns(columns.into())].into_iter().chain(lines) {
            printer.line(line).expect("memory");
        }
        printer.end().expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn formats() {
        assert_eq!(print(Format::Table), "NAME        N\na ,b        5\nlong name  12\n-           -\n");
        assert_eq!(print(Format::Csv), "name,n\n\"a\u{1b},b\",5\nlong name,12\n,\n");
        let lines: Vec<Value> =
            print(Format::Json).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines[1], json!({"name": "long name", "n": 12}));
    }
}
