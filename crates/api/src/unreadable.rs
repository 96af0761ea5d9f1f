//! Stored objects that this server cannot read: damaged ones and, in a rolling upgrade, those of a newer release.
//!
//! An unreadable object is neither absent nor empty. Code that would decide something by such an object decides
//! nothing, and reports it here; writes that depend on the object fail.

use std::collections::HashSet;
use std::fmt::Display;
use std::sync::{Arc, Mutex};

use crate::codec::object::Object;
use crate::metrics::Metrics;
use crate::revision::Revision;

/// How many objects are remembered, so that each is logged only once. Beyond that, all are forgotten and logged again.
const MOST: usize = 10_000;

#[derive(Debug, Default)]
pub struct Unreadable {
    metrics: Arc<Metrics>,
    /// The objects that each part of the server has reported. A revision belongs to one version of one object.
    told: Mutex<HashSet<(&'static str, Revision)>>,
}

impl Unreadable {
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, told: Mutex::default() }
    }

    /// Logs and counts an object about which `by` cannot decide; once for each version of the object.
    pub fn tell(&self, by: &'static str, object: &Object, why: impl Display) {
        if self.is_first(by, object.revision()) {
            self.metrics.unreadable_objects(by).increment(1);
            tracing::error!(
                by,
                namespace = object.namespace(),
                name = object.name(),
                revision = %object.revision(),
                %why,
                "cannot be read, so nothing is decided by it"
            );
        }
    }

    fn is_first(&self, by: &'static str, revision: Revision) -> bool {
        let mut told = self.told.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if told.len() >= MOST {
            told.clear();
        }
        told.insert((by, revision))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::object::Draft;

    #[test]
    fn each_version_is_told_once_by_each() {
        let unreadable = Unreadable::default();
        let first = |by, revision| unreadable.is_first(by, Revision(revision));
        assert!(first("a", 1) && first("b", 1) && first("a", 2));
        assert!(!first("a", 1) && !first("b", 1) && !first("a", 2));
        for revision in 0..2 * MOST as u64 {
            first("c", revision);
        }
        assert!(unreadable.told.lock().expect("told").len() <= MOST);
    }

    #[test]
    fn what_cannot_be_read_is_counted_once() {
        let object = |revision| Draft::parse("ns", "a", "{{".into()).into_object(Revision(revision));
        let metrics = Arc::new(Metrics::default());
        let unreadable = Unreadable::new(metrics.clone());
        for _ in 0..3 {
            unreadable.tell("garbage-collector", &object(1), "text");
        }
        unreadable.tell("garbage-collector", &object(2), "text");
        unreadable.tell("admission", &object(1), "text");
        let text = metrics.render();
        for line in [
            r#"rowplane_unreadable_objects_total{by="garbage-collector"} 2"#,
            r#"rowplane_unreadable_objects_total{by="admission"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }
}
