//! Writes that carry a mark of their own: the record tells whether one was done whose answer said that nothing was.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use rowplane::codec::at_rest;
use serde_json::Value;

use super::history::{Promise, Violation};
use super::load::is_refusal;
use super::log::Row;
use crate::support::rest::{Answer, Broken, Client};

const MARK: &str = "attempt-";

#[derive(Default)]
pub struct Refusals {
    last: AtomicU64,
    /// The answers, by the marks.
    refused: Mutex<BTreeMap<u64, String>>,
}

impl Refusals {
    pub async fn post(&self, server: &Client, path: &str, body: &Value) -> Result<Answer, Broken> {
        let (mark, body) = self.mark(body);
        self.note(mark, server.post(path, &body).await)
    }

    pub async fn put(&self, server: &Client, path: &str, body: &Value) -> Result<Answer, Broken> {
        let (mark, body) = self.mark(body);
        self.note(mark, server.put(path, &body).await)
    }

    /// A merge patch.
    pub async fn merge(&self, server: &Client, path: &str, body: &Value) -> Result<Answer, Broken> {
        let (mark, body) = self.mark(body);
        self.note(mark, server.merge(path, &body).await)
    }

    fn mark(&self, body: &Value) -> (u64, Value) {
        let mark = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let mut body = body.clone();
        body["metadata"]["annotations"]["attempt"] = format!("{MARK}{mark};").into();
        (mark, body)
    }

    fn note(&self, mark: u64, answer: Result<Answer, Broken>) -> Result<Answer, Broken> {
        if let Ok(answer) = &answer
            && is_refusal(answer.status)
        {
            let said = format!("{}: {}", answer.status, answer.body["message"]);
            self.refused.lock().unwrap().insert(mark, said);
        }
        answer
    }

    /// The number of marked writes, and of those that were refused, and what was done all the same.
    pub fn judge(&self, rows: &[Row]) -> ([usize; 2], Vec<Violation>) {
        let refused = self.refused.lock().unwrap();
        let mut violations = Vec::new();
        for row in rows {
            let found = match at_rest::open(&row.value) {
                Ok(opened) => find(&opened.message),
                Err(_) => find(&row.value),
            };
            if let Some(said) = found.and_then(|mark| refused.get(&mark)) {
                let story = format!("refused with {said}, and is at revision {}", row.revision);
                violations.push(Violation::new(Promise::Durable, story));
            }
        }
        ([self.last.load(Ordering::Relaxed) as usize, refused.len()], violations)
    }
}

/// The mark in these bytes, which are of any encoding.
fn find(bytes: &[u8]) -> Option<u64> {
    let mut windows = bytes.windows(MARK.len());
    let start = windows.position(|window| window == MARK.as_bytes())? + MARK.len();
    let length = bytes[start..].iter().position(|byte| *byte == b';')?;
    std::str::from_utf8(&bytes[start..start + length]).ok()?.parse().ok()
}

#[test]
fn a_refused_write_that_was_done_is_found() {
    use http::StatusCode;
    use serde_json::json;

    let refusals = Refusals::default();
    let row = |mark: u64| Row {
        revision: mark,
        key: None,
        deleted: false,
        uid: String::new(),
        value: format!("{{\"attempt\":\"{MARK}{mark};\"}}").into_bytes(),
    };
    for status in [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE, StatusCode::GATEWAY_TIMEOUT] {
        let (mark, _) = refusals.mark(&json!({"metadata": {}}));
        refusals.note(mark, Ok(Answer { status, body: Value::Null })).expect("an answer");
    }
    assert_eq!(refusals.judge(&[row(1), row(3)]), ([3, 1], Vec::new()));
    assert_eq!(refusals.judge(&[row(1), row(2)]).1.len(), 1);
}
