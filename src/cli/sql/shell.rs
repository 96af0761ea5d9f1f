//! A shell for statements: lines with a history, completion of names, and commands that begin with a backslash.

use std::fs::File;
use std::io::{self, Write};
use std::time::Duration;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::{Config, Context, Editor, Helper, Highlighter, Hinter, Validator};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::ask::{Asker, Line};
use super::{Format, end_of_statement, execute, time};
use crate::cli::error::Error;

const HELP: &str = "\
A statement ends with a semicolon and may take several lines.
\\d              tables          \\d TABLE        columns of a table
\\asof TIME      read the past: 2026-11-22T10:00:00Z, rv-123456, -15m; without a time, the present
\\watch SECONDS  run the last statement again and again, until Ctrl-C
\\o FILE         write rows to a file in CSV; without a file, to the terminal
\\json, \\csv, \\table  formats     \\q  leaves
";
const TABLES: &str =
    "SELECT table_name, kind, namespaced, custom FROM resources ORDER BY custom, api_group, table_name";
const COLUMNS: &str = "SELECT name, type, hidden FROM columns WHERE table_name = ";
const KEYWORDS: [&str; 24] = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "JOIN",
    "LEFT JOIN",
    "USING",
    "ON",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS NULL",
    "LIKE",
    "COUNT(*)",
    "DISTINCT",
    "HAVING",
    "UNION ALL",
    "WITH",
    "CASE",
    "WHEN",
    "DESC",
];

/// The state of the shell.
struct Shell<'a> {
    asker: &'a mut Asker,
    runtime: &'a Runtime,
    format: Format,
    file: Option<File>,
    /// The last statement.
    last: String,
}

/// Reads statements from a terminal.
pub fn run(asker: &mut Asker, format: Format, runtime: &Runtime) -> Result<(), Error> {
    let failed = |error: ReadlineError| Error::Refused(format!("the terminal cannot be read: {error}"));
    let words = words(asker, runtime)?;
    let config = Config::builder().auto_add_history(false).build();
    let mut editor: Editor<Names, _> = Editor::with_config(config).map_err(failed)?;
    editor.set_helper(Some(Names { words }));
    let history = std::env::home_dir().map(|home| home.join(".rowplane_sql_history"));
    if let Some(path) = &history {
        let _ = editor.load_history(path);
    }
    println!("rowplane sql, {}; \\? for help", asker.session.client().url());
    let mut shell = Shell { asker, runtime, format, file: None, last: String::new() };
    let mut text = String::new();
    loop {
        let prompt = if text.is_empty() { "rowplane> " } else { "     ...> " };
        match editor.readline(prompt) {
            Ok(line) if text.is_empty() && line.trim_start().starts_with('\\') => {
                let _ = editor.add_history_entry(&line);
                match shell.command(line.trim()) {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(error) => eprintln!("{}", error.one_line()),
                }
            }
            Ok(line) => {
                text.push_str(&line);
                text.push('\n');
                while let Some(end) = end_of_statement(&text) {
                    let statement: String = text.drain(..=end).collect();
                    let _ = editor.add_history_entry(statement.trim());
                    shell.last = statement.trim().trim_end_matches(';').to_owned();
                    shell.run_last();
                }
                if text.trim().is_empty() {
                    text.clear();
                }
            }
            Err(ReadlineError::Interrupted) => text.clear(),
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(failed(error)),
        }
    }
    if let Some(path) = &history {
        let _ = editor.save_history(path);
    }
    Ok(())
}

impl Shell<'_> {
    /// Returns whether the shell is left.
    fn command(&mut self, line: &str) -> Result<bool, Error> {
        let (command, argument) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let argument = argument.trim();
        match command {
            "\\q" => return Ok(true),
            "\\d" if argument.is_empty() => self.show(TABLES)?,
            "\\d" => {
                let table = argument.trim_matches('"').replace('\'', "''");
                self.show(&format!("{COLUMNS}'{table}'"))?;
            }
            "\\asof" => {
                let argument = if argument.is_empty() { "now" } else { argument };
                self.asker.options.as_of = time(&self.asker.session, argument)?;
                println!("as of {}", self.asker.options.as_of.as_deref().unwrap_or("now"));
            }
            "\\o" if argument.is_empty() => self.file = None,
            "\\o" => {
                let file = File::create(argument);
                self.file = Some(file.map_err(|error| Error::Usage(format!("{argument}: {error}")))?);
            }
            "\\json" => self.format = Format::Json,
            "\\csv" => self.format = Format::Csv,
            "\\table" => self.format = Format::Table,
            "\\watch" => self.watch(argument.parse().unwrap_or(2).max(1)),
            "\\?" | "\\h" | "\\help" => print!("{HELP}"),
            other => return Err(Error::Usage(format!("{other} is no command; \\? shows them"))),
        }
        Ok(false)
    }

    fn show(&self, statement: &str) -> Result<(), Error> {
        self.runtime.block_on(execute(self.asker, statement, Format::Table, &mut io::stdout()))
    }

    /// Runs the last statement. Ctrl-C ends it, here and on the server. Returns whether it has ended well.
    fn run_last(&mut self) -> bool {
        let format = if self.file.is_some() { Format::Csv } else { self.format };
        let mut stdout = io::stdout();
        let out: &mut dyn Write = match &mut self.file {
            Some(file) => file,
            None => &mut stdout,
        };
        let running = execute(self.asker, &self.last, format, out);
        let ended = self.runtime.block_on(async {
            tokio::select! {
                ended = running => Some(ended),
                _ = tokio::signal::ctrl_c() => None,
            }
        });
        match ended {
            Some(Ok(())) => return true,
            Some(Err(error)) => eprintln!("{}", error.one_line()),
            None => eprintln!("interrupted"),
        }
        false
    }

    fn watch(&mut self, seconds: u64) {
        loop {
            // Clears the screen.
            print!("\u{1b}[2J\u{1b}[H");
            if !self.run_last() {
                return;
            }
            let is_over = self.runtime.block_on(async {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs(seconds)) => false,
                    _ = tokio::signal::ctrl_c() => true,
                }
            });
            if is_over {
                return;
            }
        }
    }
}

/// Names of tables and columns, and keywords.
fn words(asker: &Asker, runtime: &Runtime) -> Result<Vec<String>, Error> {
    let mut words: Vec<String> = KEYWORDS.map(str::to_owned).into();
    let statement = "SELECT DISTINCT table_name FROM columns UNION SELECT DISTINCT name FROM columns";
    runtime.block_on(asker.ask(statement, |line| {
        if let Line::Row(row) = line {
            words.extend(row.first().and_then(Value::as_str).map(str::to_owned));
        }
        Ok(())
    }))?;
    words.sort_unstable();
    words.dedup();
    Ok(words)
}

/// Completes the word before the cursor.
#[derive(Helper, Highlighter, Hinter, Validator)]
struct Names {
    words: Vec<String>,
}

impl Completer for Names {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let start = line[..at]
            .rfind(|c: char| !is_name(c))
            .map_or(0, |before| before + line[before..].chars().next().map_or(1, char::len_utf8));
        // A column behind the short name of its table, as in `p.spec_node_name`.
        let start = line[start..at].rfind('.').map_or(start, |dot| start + dot + 1);
        let begun = line[start..at].to_lowercase();
        if begun.is_empty() {
            return Ok((at, Vec::new()));
        }
        let found = self.words.iter().filter(|word| word.to_lowercase().starts_with(&begun));
        Ok((start, found.take(100).cloned().collect()))
    }
}
