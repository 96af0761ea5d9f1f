//! The body and the form of a statement's request.

use std::collections::BTreeSet;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use rowplane_sql::{Cell, parse_span};
use serde::Deserialize;

use crate::api::error::{Error, Refuser};
use crate::http::request::{accept, header_text};
use crate::tree::Value;

/// A statement and its options.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SqlRequest {
    pub query: String,
    #[serde(default)]
    params: Vec<Value>,
    /// The time of tables that name none.
    pub as_of: Option<String>,
    pub namespaces: Option<BTreeSet<String>>,
    /// Whether a missing right is an error, and not just a warning.
    #[serde(default)]
    pub strict: bool,
    #[serde(default)]
    pub skip_broken: bool,
    /// A shorter time than the server's, such as `5s`.
    timeout: Option<String>,
}

impl SqlRequest {
    pub fn read(parts: &Parts, body: &[u8]) -> Result<Self, Error> {
        let media = header_text(&parts.headers, CONTENT_TYPE).unwrap_or_default();
        match media.split(';').next().unwrap_or_default().trim() {
            "application/json" => serde_json::from_slice(body)
                .map_err(|error| Error::BadRequest(format!("the body is no statement: {error}"))),
            "application/sql" => match std::str::from_utf8(body) {
                Ok(query) => Ok(Self { query: query.to_owned(), ..Self::default() }),
                Err(_) => Err(Error::BadRequest("the statement is not UTF-8".to_owned())),
            },
            _ => Err(Error::UnsupportedMediaType {
                message: "the body has to be application/json or application/sql".to_owned(),
                by: Refuser::Handler,
            }),
        }
    }

    /// The values of the statement's parameters.
    pub fn parameters(&self) -> Vec<Cell<'_>> {
        let cell = |value: &Value| match value {
            Value::Null => Cell::Null,
            Value::Bool(value) => Cell::Integer((*value).into()),
            Value::String(text) => Cell::text(text.as_str().to_owned()),
            value => match (value.as_i64(), value.as_f64()) {
                (Some(value), _) => Cell::Integer(value),
                (None, Some(value)) => Cell::Real(value),
                (None, None) => Cell::text(serde_json::to_string(value).unwrap_or_default()),
            },
        };
        self.params.iter().map(cell).collect()
    }

    /// The time that the statement may take: the shorter one of the request's and the server's.
    pub fn time(&self, limit: Duration) -> Result<Duration, Error> {
        let Some(text) = &self.timeout else { return Ok(limit) };
        let span = parse_span(text).and_then(|span| Duration::try_from(span).ok());
        let span =
            span.ok_or_else(|| Error::BadRequest(format!("timeout: {text:?} is not a length of time")))?;
        Ok(span.min(limit))
    }
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A line with columns, a line per row, and a last line.
    Lines,
    Csv,
    Json,
}

impl Form {
    /// The first form that the request accepts.
    pub fn of(parts: &Parts) -> Result<Self, Error> {
        let Some(accept) = accept(&parts.headers) else { return Ok(Self::Lines) };
        let mut types = accept.split(',').map(|one| one.split(';').next().unwrap_or_default().trim());
        let form = types.find_map(|one| match one {
            "application/x-ndjson" | "*/*" | "application/*" => Some(Self::Lines),
            "text/csv" | "text/*" => Some(Self::Csv),
            "application/json" => Some(Self::Json),
            _ => None,
        });
        form.ok_or_else(|| Error::NotAcceptable {
            message: "rows come as application/x-ndjson, text/csv and application/json".to_owned(),
            by: Refuser::Handler,
        })
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Lines => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Json => "application/json",
        }
    }
}
