//! Markdown tables.

use std::fmt;

use crate::stats::Summary;

pub struct Table {
    title: String,
    headers: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(title: impl Into<String>, headers: &[&'static str]) -> Self {
        Self { title: title.into(), headers: headers.to_vec(), rows: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.headers.len());
        eprintln!("  {}", cells.join(" | "));
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "### {}\n", self.title)?;
        writeln!(f, "| {} |", self.headers.join(" | "))?;
        let ruler: Vec<_> = (0..self.headers.len()).map(|i| if i == 0 { "---" } else { "---:" }).collect();
        writeln!(f, "| {} |", ruler.join(" | "))?;
        for row in &self.rows {
            writeln!(f, "| {} |", row.join(" | "))?;
        }
        Ok(())
    }
}

/// A number with a precision that fits its size.
pub fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => thousands(value.round() as i64),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

pub fn option(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), number)
}

/// p50, p99 and max as three cells.
pub fn times(summary: Summary) -> [String; 3] {
    [number(summary.p50), number(summary.p99), number(summary.max)]
}

fn thousands(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = if value < 0 { "-".to_owned() } else { String::new() };
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
