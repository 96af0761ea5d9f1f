//! How writes change a pod beyond what the client sent.

use crate::causes::Cause;
use crate::fields;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::strategy::Touched;
use crate::kinds::core::pod::{ephemeral_containers, lifecycle, resize, resources};
use crate::kinds::core::pod_spec::app_armor;
use crate::kinds::prelude::*;
use crate::patch::apply::fields::field_paths;
use crate::patch::apply::filter::Filter;

#[derive(Debug)]
pub struct PodHooks;

impl Hooks for PodHooks {
    fn prepare_create(&self, object: &mut ObjectMap, writer: &Writer<'_>) {
        app_armor::sync(object, writer.warnings);
        resources::complete(object);
        lifecycle::prepare_create(object, writer.now);
    }

    fn prepare_update(&self, new: &mut ObjectMap, old: &ObjectMap, _: &Writer<'_>) {
        keep_resources(new, old);
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
            Part::Resize => {
                let is_resize = resize::keep_all_but_resources(new, old);
                keep_resources(new, old);
                resources::complete(new);
                if !is_resize {
                    return Touched::Nothing;
                }
            }
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

/// Restores the resources of the whole pod where a client leaves them out that does not know them.
fn keep_resources(new: &mut ObjectMap, old: &ObjectMap) {
    let (spec, stored) = (fields::object_mut(new, "spec"), fields::object(old, "spec"));
    if spec.get("resources").is_none_or(Value::is_null)
        && let Some(stored) = stored
    {
        fields::restore(spec, stored, "resources");
    }
}
