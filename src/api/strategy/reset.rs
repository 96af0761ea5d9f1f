//! Fields that a write through a part of the object leaves alone, whatever its body says: nobody comes to own them
//! that way (upstream's `GetResetFields`).

use super::{Special, Strategy};
use crate::api::update::Part;
use crate::patch::apply::fields::{FieldSet, field_paths};

use super::status::{StatusMetadata, StatusRule};

impl Strategy {
    pub fn reset_fields(&self, part: Part) -> FieldSet {
        match part {
            Part::Main if self.status == StatusRule::Open => FieldSet::default(),
            Part::Main | Part::Finalize => field_paths(&[&["status"]]),
            Part::Scale => FieldSet::default(),
            Part::Status => self.reset_by_status(),
        }
    }

    fn reset_by_status(&self) -> FieldSet {
        let spec: &[&str] = &["spec"];
        match (self.special, self.status_metadata) {
            (Special::Pod, _) => {
                field_paths(&[spec, &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
            }
            (_, StatusMetadata::Except(["labels"])) => field_paths(&[spec, &["metadata", "labels"]]),
            (_, StatusMetadata::Closed) => field_paths(&[spec, &["metadata"]]),
            (Special::CustomResourceDefinition, _) | (_, StatusMetadata::Open) => field_paths(&[spec]),
            (_, StatusMetadata::Except(_)) => field_paths(&[spec, &["metadata"]]),
        }
    }
}
