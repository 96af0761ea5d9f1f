//! Verdicts of the webhook, for as long as they count.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::fields;
use crate::tree::Value;

/// How many verdicts are kept; the oldest one goes when another comes.
const MOST: usize = 1024;

/// A verdict of the webhook's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub allowed: bool,
    pub reason: String,
    pub annotations: Vec<(String, String)>,
}

impl Verdict {
    /// Reads an ImageReview.
    pub fn read(answer: &[u8]) -> Result<Self, String> {
        let review: Value = serde_json::from_slice(answer)
            .map_err(|error| format!("couldn't get version/kind; json parse error: {error}"))?;
        let form = (review["apiVersion"].as_str(), review["kind"].as_str());
        let (version, kind) = (form.0.unwrap_or_default(), form.1.unwrap_or_default());
        if (version, kind) != ("imagepolicy.k8s.io/v1alpha1", "ImageReview") {
            return Err(format!("no kind {kind:?} is registered for version {version:?}"));
        }
        let status = review.as_object().and_then(|review| fields::object(review, "status"));
        let Some(status) = status else { return Ok(Self::default()) };
        let annotations = fields::object(status, "auditAnnotations").into_iter().flatten();
        let annotations =
            annotations.filter_map(|(name, value)| Some((name.to_string(), value.as_str()?.to_owned())));
        Ok(Self {
            allowed: status.get("allowed") == Some(&Value::Bool(true)),
            reason: fields::text(status, &["reason"]).to_owned(),
            annotations: annotations.collect(),
        })
    }
}

/// Verdicts by the `spec` of the review.
pub struct Verdicts {
    allow: Duration,
    deny: Duration,
    kept: Mutex<HashMap<String, Kept>>,
}

struct Kept {
    verdict: Verdict,
    since: Timestamp,
    until: Timestamp,
}

impl Verdicts {
    pub fn new(allow: Duration, deny: Duration) -> Self {
        Self { allow, deny, kept: Mutex::default() }
    }

    pub fn get(&self, key: &str, now: Timestamp) -> Option<Verdict> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).filter(|kept| now < kept.until).map(|kept| kept.verdict.clone())
    }

    pub fn put(&self, key: String, verdict: Verdict, now: Timestamp) {
        let time = if verdict.allowed { self.allow } else { self.deny };
        let until = now.checked_add(time).unwrap_or(Timestamp::MAX);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST && !kept.contains_key(&key) {
            let oldest = kept.iter().min_by_key(|(_, kept)| kept.since).map(|(key, _)| key.clone());
            oldest.map(|key| kept.remove(&key));
        }
        kept.insert(key, Kept { verdict, since: now, until });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_count_for_their_time_and_are_bounded() {
        let verdicts = Verdicts::new(Duration::from_secs(10), Duration::from_secs(1));
        let at = |seconds: i64| Timestamp::from_second(seconds).expect("a time");
        let allowed = Verdict { allowed: true, ..Verdict::default() };
        verdicts.put("a".to_owned(), allowed.clone(), at(0));
        verdicts.put("b".to_owned(), Verdict::default(), at(0));
        assert_eq!(verdicts.get("a", at(9)), Some(allowed.clone()));
        assert_eq!((verdicts.get("a", at(10)), verdicts.get("b", at(1))), (None, None));
        for number in 0..MOST {
            verdicts.put(number.to_string(), allowed.clone(), at(1));
        }
        assert_eq!(verdicts.kept.lock().expect("a lock").len(), MOST);
        assert_eq!((verdicts.get("a", at(1)), verdicts.get("0", at(1))), (None, Some(allowed)));
    }

    #[test]
    fn answers_are_read() {
        let read = |text: &str| Verdict::read(text.as_bytes());
        let head = r#""kind":"ImageReview","apiVersion":"imagepolicy.k8s.io/v1alpha1""#;
        assert_eq!(read(&format!("{{{head}}}")), Ok(Verdict::default()));
        let full = read(&format!(
            r#"{{{head},"status":{{"allowed":false,"reason":"r","auditAnnotations":{{"k":"v"}}}}}}"#
        ));
        let annotations = vec![("k".to_owned(), "v".to_owned())];
        assert_eq!(full, Ok(Verdict { allowed: false, reason: "r".to_owned(), annotations }));
        assert!(read("[").is_err_and(|why| why.starts_with("couldn't get version/kind")));
        assert!(read("{}").is_err());
    }
}
