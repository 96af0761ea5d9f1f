//! Fields that a write through a part of an object cannot come to own: the fields that the write leaves alone, whatever
//! its body says (upstream's `GetResetFieldsFilter`).

use super::Strategy;
use super::status::{StatusMetadata, StatusRule};
use crate::kinds::behavior::part::Part;
use crate::patch::apply::fields::{FieldSet, field_paths};
use crate::patch::apply::filter::Filter;

impl Strategy {
    pub fn filter(&self, part: Part) -> Filter {
        // The status of a kind that has no subresource for it belongs to whoever writes the object.
        let own = if part == Part::Main && self.status == StatusRule::Open {
            None
        } else {
            self.hooks.not_owned_through(part)
        };
        own.unwrap_or_else(|| Filter::Exclude(self.left_alone_by(part)))
    }

    fn left_alone_by(&self, part: Part) -> FieldSet {
        let spec: &[&str] = &["spec"];
        match (part, self.status_metadata) {
            (Part::Main, _) if self.status == StatusRule::Open => FieldSet::default(),
            (Part::Main | Part::Finalize, _) => field_paths(&[&["status"]]),
            (Part::Status, StatusMetadata::Open) => field_paths(&[spec]),
            (Part::Status, StatusMetadata::Except(["labels"])) => {
                field_paths(&[spec, &["metadata", "labels"]])
            }
            (Part::Status, StatusMetadata::Closed | StatusMetadata::Except(_)) => {
                field_paths(&[spec, &["metadata"]])
            }
            // Only kinds with hooks have the last three.
            (Part::Scale | Part::Approval | Part::EphemeralContainers | Part::Resize, _) => {
                FieldSet::default()
            }
        }
    }
}
