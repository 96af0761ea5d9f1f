//! Writes that carry a mark of their own: the record tells whether one was done whose answer said that nothing was, or whose
//! body broke off.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rowplane::codec::at_rest;
use serde_json::Value;

use super::history::{Promise, Violation};
use super::load::is_refusal;
use super::log::Row;
use crate::support::rest::{Answer, Broken, Client};

const MARK: &str = "attempt-";
/// One POST of so many is sent byte by byte.
const SELDOM: u32 = 12;

#[derive(Default)]
pub struct Refusals {
    last: AtomicU64,
    /// The answers, by the marks.
    refused: Mutex<BTreeMap<u64, String>>,
    in_bytes: AtomicUsize,
}

/// How many of the writes there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    pub writes: usize,
    /// Those that were refused, or did not come to their end.
    pub refused: usize,
    /// Those whose bodies were sent byte by byte.
    pub in_bytes: usize,
}

impl fmt::Display for Marked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { writes, refused, in_bytes } = self;
        write!(
            f,
            "{writes} marked writes, {in_bytes} of them byte by byte; {refused} were refused or broke off"
        )
    }
}

/// A write whose body is under way. If it is given up before, it must never be done.
struct InBytes<'a> {
    refusals: &'a Refusals,
    mark: u64,
    whole: Arc<AtomicBool>,
}

impl Drop for InBytes<'_> {
    fn drop(&mut self) {
        if !self.whole.load(Ordering::SeqCst) {
            let said = "a body that broke off".to_owned();
            self.refusals.refused.lock().unwrap().insert(self.mark, said);
        }
    }
}

impl Refusals {
    pub async fn post(&self, server: &Client, path: &str, body: &Value) -> Result<Answer, Broken> {
        let (mark, body) = self.mark(body);
        if !rand::random_ratio(1, SELDOM) {
            return self.note(mark, server.post(path, &body).await);
        }
        self.in_bytes.fetch_add(1, Ordering::Relaxed);
        // From some milliseconds, so that bodies come to their end before their clients lose patience, up to a second.
        let pause = Duration::from_millis(1 << rand::random_range(0..11));
        let whole = Arc::new(AtomicBool::new(false));
        let _in_bytes = InBytes { refusals: self, mark, whole: whole.clone() };
        self.note(mark, server.post_in_bytes(path, &body, pause, whole).await)
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

    /// What was done, though it was refused.
    pub fn judge(&self, rows: &[Row]) -> (Marked, Vec<Violation>) {
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
        let marked = Marked {
            writes: self.last.load(Ordering::Relaxed) as usize,
            refused: refused.len(),
            in_bytes: self.in_bytes.load(Ordering::Relaxed),
        };
        (marked, violations)
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
    for whole in [true, false] {
        let (mark, _) = refusals.mark(&json!({"metadata": {}}));
        drop(InBytes { refusals: &refusals, mark, whole: Arc::new(AtomicBool::new(whole)) });
    }
    let marked = Marked { writes: 5, refused: 2, in_bytes: 0 };
    assert_eq!(refusals.judge(&[row(1), row(3), row(4)]), (marked, Vec::new()));
    assert_eq!(refusals.judge(&[row(1), row(2)]).1.len(), 1);
    assert_eq!(refusals.judge(&[row(4), row(5)]).1.len(), 1);
}
