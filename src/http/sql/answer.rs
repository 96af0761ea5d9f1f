//! Rows as text: lines of JSON, CSV, or one JSON object, in pieces of some size, for a client that takes them as fast as
//! it can.

use std::time::Instant;

use axum::body::Bytes;
use rowplane_sql::{Cell, Error as SqlError, ResultColumn, Sink, Stop, Summary};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout_at;

use super::request::Form;
use super::session::timed_out;
use crate::api::error::Error;
use crate::http::response::status::Failure;

/// The size of pieces, in bytes.
const PIECE: usize = 64 << 10;
/// The most bytes of an answer.
const MOST_BYTES: usize = 256 << 20;
/// The most rows of an answer.
const MOST_ROWS: u64 = 10_000_000;

/// A piece of an answer. An error comes first, in place of an answer, or ends it.
pub type Piece = Result<Bytes, Error>;

/// The state of which the rows are.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub revision: String,
    /// The time that the statement asks for.
    pub as_of: Option<String>,
}

/// Writes rows, and hands them to the answer of the request.
pub struct Writer {
    form: Form,
    told: Told,
    answer: mpsc::Sender<Piece>,
    runtime: Handle,
    deadline: Instant,
    out: Vec<u8>,
    sent: usize,
    rows: u64,
}

impl Writer {
    pub fn new(
        form: Form,
        told: Told,
        answer: mpsc::Sender<Piece>,
        runtime: Handle,
        deadline: Instant,
    ) -> Self {
        Self { form, told, answer, runtime, deadline, out: Vec::new(), sent: 0, rows: 0 }
    }

    /// Ends the answer, after the last row or an error.
    pub fn end(mut self, done: Result<Summary, SqlError>, milliseconds: u128, warnings: &[String]) {
        match done {
            Ok(Summary { rows }) => {
                self.write_end(rows, milliseconds, warnings);
                // Nobody waits for it any more if this fails.
                let _ = self.flush();
            }
            Err(SqlError::Stopped(Stop::Gone)) => {}
            Err(error) => self.fail(&api_error(error)),
        }
    }

    fn write_end(&mut self, rows: u64, milliseconds: u128, warnings: &[String]) {
        match self.form {
            Form::Lines => {
                let end = json!({"end": true, "rows": rows, "ms": milliseconds as u64, "warnings": warnings});
                self.line(&end);
            }
            Form::Csv => {}
            Form::Json => {
                self.out.extend_from_slice(b"],\"warnings\":");
                self.out.extend_from_slice(json!(warnings).to_string().as_bytes());
                self.out.extend_from_slice(b"}\n");
            }
        }
    }

    /// Tells of an error where something was sent already: in the last line, or by breaking the connection.
    fn fail(mut self, error: &Error) {
        if self.sent > 0 && self.form == Form::Lines {
            let failure = Failure::from(error);
            let message = error.for_clients();
            self.line(&json!({"error": {"reason": failure.reason, "message": message}}));
            let _ = self.flush();
            return;
        }
        let error = error.clone();
        let _ = self.runtime.block_on(self.answer.send(Err(error)));
    }

    fn line(&mut self, value: &serde_json::Value) {
        self.out.extend_from_slice(value.to_string().as_bytes());
        self.out.push(b'\n');
    }

    /// Sends what is written. The client has until the deadline to take it.
    fn flush(&mut self) -> Result<(), SqlError> {
        if self.out.is_empty() {
            return Ok(());
        }
        let piece = Bytes::from(std::mem::take(&mut self.out));
        self.sent += piece.len();
        if self.sent > MOST_BYTES {
            return Err(SqlError::TooLarge(format!("the answer has more than {MOST_BYTES} bytes")));
        }
        let deadline = tokio::time::Instant::from_std(self.deadline);
        let sending = async { timeout_at(deadline, self.answer.send(Ok(piece))).await };
        match self.runtime.block_on(sending) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(SqlError::Stopped(Stop::Gone)),
            Err(_) => Err(SqlError::Stopped(Stop::Deadline)),
        }
    }

    fn write_row(&mut self, cells: &[Cell<'_>]) {
        let is_csv = self.form == Form::Csv;
        if self.form == Form::Json && self.rows > 1 {
            self.out.push(b',');
        }
        if !is_csv {
            self.out.push(b'[');
        }
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                self.out.push(b',');
            }
            if is_csv { write_csv(&mut self.out, cell) } else { write_json(&mut self.out, cell) }
        }
        self.out.extend_from_slice(match self.form {
            Form::Lines => b"]\n",
            Form::Csv => b"\r\n",
            Form::Json => b"]",
        });
    }
}

impl Sink for Writer {
    fn columns(&mut self, columns: &[ResultColumn]) -> Result<(), SqlError> {
        let names: Vec<_> =
            columns.iter().map(|column| json!({"name": column.name, "type": column.kind})).collect();
        let Told { revision, as_of } = &self.told;
        let head = json!({"columns": names, "revision": revision, "asOf": as_of});
        match self.form {
            Form::Lines => self.line(&head),
            Form::Csv => {
                let names: Vec<Cell<'_>> = columns.iter().map(|column| Cell::text(&*column.name)).collect();
                self.write_row(&names);
            }
            Form::Json => {
                let mut head = head.to_string();
                head.pop();
                self.out.extend_from_slice(head.as_bytes());
                self.out.extend_from_slice(b",\"rows\":[");
            }
        }
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> Result<(), SqlError> {
        self.rows += 1;
        if self.rows > MOST_ROWS {
            return Err(SqlError::TooLarge(format!("the answer has more than {MOST_ROWS} rows")));
        }
        self.write_row(cells);
        if self.out.len() >= PIECE { self.flush() } else { Ok(()) }
    }
}

fn write_json(out: &mut Vec<u8>, cell: &Cell<'_>) {
    match cell {
        Cell::Null => out.extend_from_slice(b"null"),
        Cell::Integer(value) => out.extend_from_slice(value.to_string().as_bytes()),
        // JSON has no infinities.
        Cell::Real(value) if !value.is_finite() => out.extend_from_slice(b"null"),
        Cell::Real(value) => out.extend_from_slice(format!("{value:?}").as_bytes()),
        Cell::Text(text) => {
            out.extend_from_slice(&serde_json::to_vec(&**text).unwrap_or_default());
        }
    }
}

fn write_csv(out: &mut Vec<u8>, cell: &Cell<'_>) {
    match cell {
        Cell::Null => {}
        Cell::Integer(value) => out.extend_from_slice(value.to_string().as_bytes()),
        Cell::Real(value) => out.extend_from_slice(format!("{value:?}").as_bytes()),
        Cell::Text(text) if text.is_empty() || text.contains([',', '"', '\r', '\n']) => {
            out.push(b'"');
            out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
            out.push(b'"');
        }
        Cell::Text(text) => out.extend_from_slice(text.as_bytes()),
    }
}

/// The error of a statement as one of the API.
pub fn api_error(error: SqlError) -> Error {
    match error {
        SqlError::Statement { message, offset: Some(offset) } => {
            Error::BadRequest(format!("{message}, at character {}", offset + 1))
        }
        SqlError::Statement { message, offset: None } => Error::BadRequest(message),
        SqlError::Stopped(_) => timed_out(),
        SqlError::TooLarge(why) => Error::AnswerTooLarge(why),
        SqlError::Table(error) => match error.downcast_ref::<Error>() {
            Some(error) => error.clone(),
            None => Error::Internal(error.to_string()),
        },
        SqlError::Engine(why) => Error::Internal(why),
    }
}
