//! How writes change a pod beyond what the client sent.

use crate::causes::Cause;
use crate::fields::ObjectMap;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::strategy::{Hooks, Touched, Writer};
use crate::kinds::core::pod::{ephemeral_containers, lifecycle, resize};
use crate::kinds::core::pod_spec::app_armor;
use crate::patch::apply::fields::field_paths;
use crate::patch::apply::filter::Filter;

#[derive(Debug)]
pub struct PodHooks;

impl Hooks for PodHooks {
    fn prepare_create(&self, object: &mut ObjectMap, writer: &Writer<'_>) {
        app_armor::sync(object, writer.warnings);
        lifecycle::prepare_create(object, writer.now);
    }

    fn prepare_status_update(&self, new: &mut ObjectMap, old: &ObjectMap, _: &Writer<'_>) {
        lifecycle::prepare_status_update(new, old);
    }

    fn prepare_part_update(
        &self,
        part: Part,
        new: &mut ObjectMap,
        old: &ObjectMap,
        _: &Writer<'_>,
    ) -> Touched {
        match part {
            Part::EphemeralContainers => ephemeral_containers::keep_all_else(new, old),
            Part::Resize if !resize::keep_all_but_resources(new, old) => return Touched::Nothing,
            _ => {}
        }
        Touched::Part
    }

    fn part_causes(&self, part: Part, new: &ObjectMap, old: &ObjectMap) -> Vec<Cause> {
        match part {
            Part::EphemeralContainers => ephemeral_containers::causes(new, old),
            Part::Resize => resize::causes(new, old),
            _ => Vec::new(),
        }
    }

    fn graceful_period(&self, object: &ObjectMap, requested: Option<i64>) -> Option<i64> {
        Some(lifecycle::graceful_period(object, requested))
    }

    fn not_owned_through(&self, part: Part) -> Option<Filter> {
        Some(match part {
            Part::Status => Filter::Exclude(field_paths(&[
                &["spec"],
                &["metadata", "deletionTimestamp"],
                &["metadata", "ownerReferences"],
            ])),
            Part::EphemeralContainers => Filter::Include(&[&[Some("spec"), Some("ephemeralContainers")]]),
            Part::Resize => Filter::Include(&[
                &[Some("spec"), Some("containers"), None, Some("resources")],
                &[Some("spec"), Some("containers"), None, Some("resizePolicy")],
                &[Some("spec"), Some("initContainers"), None, Some("resources")],
                &[Some("spec"), Some("initContainers"), None, Some("resizePolicy")],
            ]),
            _ => return None,
        })
    }
}
