//! What a write through a part of the object can come to own: what it leaves alone, whatever its body says, is nobody's
//! that way (upstream's `GetResetFieldsFilter`).

use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::strategy::status::{StatusMetadata, StatusRule};
use crate::kinds::behavior::strategy::{Special, Strategy};
use crate::patch::apply::fields::{FieldSet, field_paths};
use crate::patch::apply::filter::Filter;

impl Strategy {
    pub fn filter(&self, part: Part) -> Filter {
        Filter::Exclude(match part {
            Part::Main if self.status == StatusRule::Open => FieldSet::default(),
            // Who asks for a certificate asks once; upstream's requests have no owners of their specs at all.
            Part::Main if self.special == Special::CertificateSigningRequest => {
                field_paths(&[&["spec"], &["status"]])
            }
            Part::Main | Part::Finalize => field_paths(&[&["status"]]),
            Part::Scale => FieldSet::default(),
            Part::Status => self.reset_by_status(),
            Part::Approval => field_paths(&[&["spec"], &["status", "certificate"]]),
            Part::EphemeralContainers => {
                return Filter::Include(&[&[Some("spec"), Some("ephemeralContainers")]]);
            }
            Part::Resize => {
                return Filter::Include(&[
                    &[Some("spec"), Some("containers"), None, Some("resources")],
                    &[Some("spec"), Some("containers"), None, Some("resizePolicy")],
                    &[Some("spec"), Some("initContainers"), None, Some("resources")],
                    &[Some("spec"), Some("initContainers"), None, Some("resizePolicy")],
                ]);
            }
        })
    }

    fn reset_by_status(&self) -> FieldSet {
        let spec: &[&str] = &["spec"];
        match (self.special, self.status_metadata) {
            (Special::Pod, _) => {
                field_paths(&[spec, &["metadata", "deletionTimestamp"], &["metadata", "ownerReferences"]])
            }
            (Special::CertificateSigningRequest, _) => field_paths(&[spec, &["status", "conditions"]]),
            (_, StatusMetadata::Except(["labels"])) => field_paths(&[spec, &["metadata", "labels"]]),
            (_, StatusMetadata::Closed) => field_paths(&[spec, &["metadata"]]),
            (Special::CustomResourceDefinition, _) | (_, StatusMetadata::Open) => field_paths(&[spec]),
            (_, StatusMetadata::Except(_)) => field_paths(&[spec, &["metadata"]]),
        }
    }
}
