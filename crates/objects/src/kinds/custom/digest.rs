//! Digests of the part of a definition that its meaning depends on.

use sha2::{Digest as _, Sha256};

use super::has_condition;
use crate::fields::ObjectMap;
use crate::json::scan;

/// Two definitions with the same digest mean the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    /// The hash of the spec and the accepted names, which decide what objects look like.
    form: [u8; 32],
    /// Whether their conditions are true: `NamesAccepted`, `Established`, `Terminating`.
    conditions: [bool; 3],
}

impl Digest {
    /// Whether objects look the same by both definitions, as watches show and select them.
    pub fn has_form_of(&self, other: &Self) -> bool {
        self.form == other.form
    }

    /// The digest of a definition's JSON, of which only the status is parsed; `None` if that is not the JSON of a
    /// definition.
    pub fn of(json: &[u8]) -> Option<Self> {
        let mut form = Sha256::new();
        form.update(&json[scan::member(json, 0, "spec")?]);
        let mut conditions = [false; 3];
        if let Some(status) = scan::member(json, 0, "status") {
            if let Some(names) = scan::member(json, status.start, "acceptedNames") {
                form.update(&json[names]);
            }
            let status: ObjectMap = serde_json::from_slice(&json[status]).ok()?;
            let object: ObjectMap = [("status", status.into())].into_iter().collect();
            conditions =
                ["NamesAccepted", "Established", "Terminating"].map(|kind| has_condition(&object, kind));
        }
        Some(Self { form: form.finalize().into(), conditions })
    }
}
