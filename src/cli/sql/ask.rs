//! Statements sent to a server, whose rows are read as they come.

use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::cli::error::Error;
use crate::cli::past::session::Session;

/// The longest line that is read: one row.
const LONGEST_LINE: usize = 256 << 20;

/// A session with the options of its statements.
pub struct Asker {
    pub session: Session,
    pub options: Options,
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub as_of: Option<String>,
    /// All of them if there are none here.
    pub namespaces: Vec<String>,
    pub is_strict: bool,
    pub skips_broken: bool,
}

/// A line of an answer before its last one.
pub enum Line {
    /// Names and types of the columns.
    Columns(Vec<(String, String)>),
    Row(Vec<Value>),
}

impl Asker {
    /// Runs a statement and hands over each line. Returns the warnings.
    pub async fn ask(
        &self,
        statement: &str,
        mut take: impl FnMut(Line) -> Result<(), Error>,
    ) -> Result<Vec<String>, Error> {
        let Options { as_of, namespaces, is_strict, skips_broken } = &self.options;
        let mut body = json!({"query": statement, "strict": is_strict, "skipBroken": skips_broken});
        if let Some(time) = as_of {
            body["asOf"] = time.as_str().into();
        }
        if !namespaces.is_empty() {
            body["namespaces"] = json!(namespaces);
        }
        let answer =
            self.session.client().post("/rowplane/sql", body.to_string()).await.map_err(Error::Refused)?;
        let (head, mut body) = answer.into_parts();
        let mut buffer: Vec<u8> = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Error::Refused(format!("the answer breaks off: {error}")))?;
            buffer.extend_from_slice(&frame.into_data().unwrap_or_default());
            if buffer.len() > LONGEST_LINE {
                return Err(Error::Refused("a row of the answer is too long".to_owned()));
            }
            if !head.status.is_success() {
                continue;
            }
            let end = buffer.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            for line in buffer[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                if let Some(warnings) = read(line, &mut take)? {
                    return Ok(warnings);
                }
            }
            buffer.drain(..end);
        }
        if head.status.is_success() {
            return Err(Error::Refused("the answer breaks off before its last line".to_owned()));
        }
        let status: Value = serde_json::from_slice(&buffer).unwrap_or_default();
        let told = status["message"].as_str().map(str::to_owned);
        let told = told.unwrap_or_else(|| String::from_utf8_lossy(&buffer).trim().to_owned());
        let told = if told.is_empty() { head.status.to_string() } else { told };
        Err(Error::Refused(told))
    }
}

/// Reads a line. Returns the warnings of the last one.
fn read(line: &[u8], take: &mut impl FnMut(Line) -> Result<(), Error>) -> Result<Option<Vec<String>>, Error> {
    let line: Value = serde_json::from_slice(line)
        .map_err(|error| Error::Refused(format!("the server's answer cannot be read: {error}")))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match line {
        Value::Array(row) => take(Line::Row(row)).map(|()| None),
        line if line["columns"].is_array() => {
            let columns = line["columns"].as_array().into_iter().flatten();
            let columns = columns.map(|column| (text(&column["name"]), text(&column["type"])));
            take(Line::Columns(columns.collect())).map(|()| None)
        }
        line if line["end"] == true => {
            Ok(Some(line["warnings"].as_array().into_iter().flatten().map(text).collect()))
        }
        line => Err(Error::Refused(text(&line["error"]["message"]))),
    }
}
