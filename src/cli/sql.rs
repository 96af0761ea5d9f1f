//! `rowplane sql`: SELECT statements over a cluster, as one command or in a shell.

mod ask;
mod print;
mod shell;

use std::io::{self, IsTerminal as _, Read as _, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tokio::runtime::Runtime;

use self::ask::{Asker, Options};
use self::print::Printer;
use super::error::Error;
use super::past::session::{ServerArgs, Session};
use super::past::when::When;

/// The format of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned text for people.
    Table,
    /// An object on a line for each row.
    Json,
    Csv,
}

#[derive(Clone, Debug, Args)]
pub struct StatementArgs {
    /// The statement, a SELECT of SQLite's dialect; without one a shell is opened, or standard input is read
    #[arg(value_name = "STATEMENT")]
    statement: Option<String>,

    /// The format of rows: table for people, json (an object on a line) or csv for programs
    #[arg(
        long,
        short = 'o',
        value_name = "FORMAT",
        value_enum,
        default_value = "table",
        hide_possible_values = true
    )]
    output: Format,

    /// The time of all tables that name none: -15m, yesterday 18:00, 2026-11-22T10:00:00Z, rv-123456
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    as_of: Option<String>,

    /// Rows of these namespaces only
    #[arg(long, short = 'n', value_name = "NAMESPACE", value_delimiter = ',')]
    namespace: Vec<String>,

    /// Fails where rows are missing because you may not list them, instead of warning
    #[arg(long)]
    strict: bool,

    /// Leaves out objects that cannot be decoded, instead of failing
    #[arg(long)]
    skip_broken: bool,

    /// The kubeconfig [default: those of the variable KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// Runs a statement, the statements of standard input, or a shell.
pub fn run(arguments: StatementArgs, runtime: &Runtime) -> Result<(), Error> {
    let server = ServerArgs::new(arguments.kubeconfig, arguments.context);
    let session = runtime.block_on(Session::open(&server))?;
    let as_of = arguments.as_of.as_deref().map(|text| time(&session, text)).transpose()?;
    let options = Options {
        as_of: as_of.flatten(),
        namespaces: arguments.namespace,
        is_strict: arguments.strict,
        skips_broken: arguments.skip_broken,
    };
    let mut asker = Asker { session, options };
    if let Some(statement) = &arguments.statement {
        return runtime.block_on(execute(&asker, statement, arguments.output, &mut io::stdout().lock()));
    }
    if io::stdin().is_terminal() {
        return shell::run(&mut asker, arguments.output, runtime);
    }
    let mut text = String::new();
    io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Error::Refused(format!("standard input: {error}")))?;
    for statement in statements(&text) {
        runtime.block_on(execute(&asker, statement, arguments.output, &mut io::stdout().lock()))?;
    }
    Ok(())
}

/// Runs a statement and prints its rows; warnings go to standard error.
async fn execute(asker: &Asker, statement: &str, format: Format, out: &mut dyn Write) -> Result<(), Error> {
    let mut printer = Printer::new(format, out);
    let warnings = asker.ask(statement, |line| printer.line(line)).await?;
    printer.end()?;
    for warning in warnings {
        let _ = writeln!(io::stderr(), "Warning: {warning}");
    }
    Ok(())
}

/// A time as the server takes it; `None` for the present.
fn time(session: &Session, text: &str) -> Result<Option<String>, Error> {
    Ok(When::parse(text, &session.now).map_err(Error::Usage)?.segment())
}

/// The statements of a text, which semicolons end.
fn statements(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (statement, behind) = match end_of_statement(rest) {
            Some(end) => rest.split_at(end + 1),
            None => (rest, ""),
        };
        rest = behind;
        (!statement.is_empty()).then(|| statement.trim().trim_end_matches(';'))
    })
    .filter(|statement| !statement.trim().is_empty())
}

/// The place of the semicolon that ends the first statement; it is in no text, name or comment.
fn end_of_statement(text: &str) -> Option<usize> {
    let mut rest = text.char_indices().peekable();
    while let Some((at, letter)) = rest.next() {
        let next = rest.peek().map(|(_, next)| *next);
        match letter {
            ';' => return Some(at),
            '\'' | '"' | '`' => _ = rest.by_ref().find(|(_, other)| *other == letter),
            '[' => _ = rest.by_ref().find(|(_, other)| *other == ']'),
            '-' if next == Some('-') => _ = rest.by_ref().find(|(_, other)| *other == '\n'),
            '/' if next == Some('*') => {
                rest.next();
                let mut before = ' ';
                let is_end = |(_, other): &(usize, char)| {
                    std::mem::replace(&mut before, *other) == '*' && *other == '/'
                };
                let _ = rest.by_ref().find(is_end);
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_end_at_semicolons_of_their_own() {
        let text = "SELECT ';' ; SELECT \"a;\" -- ;\n FROM b; /* ; */ SELECT 'it''s;';;\n ";
        let found: Vec<&str> = statements(text).collect();
        assert_eq!(found, ["SELECT ';' ", "SELECT \"a;\" -- ;\n FROM b", "/* ; */ SELECT 'it''s;'"]);
        assert_eq!(statements("SELECT 1").collect::<Vec<_>>(), ["SELECT 1"]);
        assert_eq!(end_of_statement("SELECT 'open;"), None);
    }
}
