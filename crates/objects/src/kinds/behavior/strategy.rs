//! A kind's treatment of its objects beyond the generic path: plain values for what most kinds share, [`Hooks`] for
//! what no other kind does. The rules are those of upstream's `pkg/registry/<group>/<kind>/strategy.go`.
//!
//! Wrong types count as absent throughout.

pub mod generation;
mod hooks;
mod ownership;
pub mod status;

pub use hooks::{Hooks, NoHooks, Touched, Writer};

use crate::causes::Cause;
use crate::fields::{self, ObjectMap};
use crate::kinds::behavior::deletion::Dependents;
use crate::kinds::behavior::gated_fields;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::strategy::generation::Generation;
use crate::kinds::behavior::strategy::status::{StatusMetadata, StatusRule};
use crate::schema::resource::ResourceDefinition;

/// The strategy of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Strategy {
    /// The format that the kind demands of its names.
    pub names: NameFormat,
    /// The treatment of the status by writes to the main resource.
    pub status: StatusRule,
    pub status_metadata: StatusMetadata,
    /// The rule by which `metadata.generation` starts and grows.
    pub generation: Generation,
    /// Fields of features that are off.
    pub gated_fields: &'static [gated_fields::Node],
    pub hooks: &'static dyn Hooks,
}

impl Strategy {
    pub const PLAIN: Self = Self {
        names: NameFormat::Dns1123Subdomain,
        status: StatusRule::Reset("{}"),
        status_metadata: StatusMetadata::Open,
        generation: Generation::Content,
        gated_fields: &[],
        hooks: &NoHooks,
    };

    /// Custom resources (apiextensions-apiserver `customresource/strategy.go`).
    pub fn custom(definition: &ResourceDefinition) -> Self {
        let status = definition.subresource("status").is_some();
        Self {
            status: if status { StatusRule::Dropped } else { StatusRule::Open },
            status_metadata: StatusMetadata::Closed,
            generation: Generation::Custom { status: !status },
            ..Self::PLAIN
        }
    }

    /// The strategy as far as the resource has use for it: a status that is no subresource is a field like others, and
    /// not every kind counts its changes.
    pub fn fitting(self, definition: &ResourceDefinition) -> Self {
        let status = definition.subresource("status").is_some();
        Self {
            status: if status { self.status } else { StatusRule::Open },
            generation: if definition.behavior.generation { self.generation } else { Generation::Untouched },
            ..self
        }
    }

    /// Call it once `metadata` is stamped and the name is generated, and before validation.
    pub fn prepare_create(&self, object: &mut ObjectMap, writer: &Writer<'_>) {
        self.status.create(object);
        gated_fields::drop_unused(self.gated_fields, object, None);
        self.generation.create(object);
        self.hooks.prepare_create(object, writer);
    }

    /// A write to the main resource. Sets `metadata.generation`, whatever the body says.
    pub fn prepare_update(&self, new: &mut ObjectMap, old: &ObjectMap, writer: &Writer<'_>) {
        self.status.update(new, old);
        gated_fields::drop_unused(self.gated_fields, new, Some(old));
        self.hooks.prepare_update(new, old, writer);
        self.generation.update(new, old);
        self.hooks.finish_update(new, old);
    }

    /// The name of a new object that neither has one nor asks for one, where the kind gives it.
    pub fn own_name(&self, metadata: &ObjectMap, uuid: &dyn Fn() -> String) -> Option<String> {
        let nameless =
            ["name", "generateName"].iter().all(|field| fields::text(metadata, &[*field]).is_empty());
        if nameless { self.hooks.own_name(uuid) } else { None }
    }

    /// A write to `/status`: only the status changes, and of the metadata what upstream lets through.
    pub fn prepare_status_update(&self, new: &mut ObjectMap, old: &ObjectMap, writer: &Writer<'_>) {
        status::keep_all_but_status(new, old);
        self.status_metadata.update(new, old);
        gated_fields::drop_unused(self.gated_fields, new, Some(old));
        self.hooks.prepare_status_update(new, old, writer);
    }

    /// A write to a part of the object that only some kinds have.
    pub fn prepare_part_update(&self, part: Part, new: &mut ObjectMap, old: &ObjectMap, writer: &Writer<'_>) {
        if part == Part::Finalize {
            fields::restore(new, old, "status");
            fields::restore_metadata(new, old, "generation");
        }
        let touched = self.hooks.prepare_part_update(part, new, old, writer);
        if part == Part::EphemeralContainers {
            gated_fields::drop_unused(self.gated_fields, new, Some(old));
        }
        if matches!(part, Part::EphemeralContainers | Part::Resize) {
            if touched == Touched::Part {
                status::RESET.update(new, old);
            }
            self.generation.update(new, old);
        }
    }

    /// Errors of a change made through a part that only this kind has.
    pub fn part_causes(&self, part: Part, new: &ObjectMap, old: &ObjectMap) -> Vec<Cause> {
        self.hooks.part_causes(part, new, old)
    }

    /// Whether the kind's own finalizers are gone. A terminating object disappears when this and
    /// `meta::update::completes_deletion` hold (upstream `ShouldDeleteNamespaceDuringUpdate`).
    pub fn finalized(&self, object: &ObjectMap) -> bool {
        self.hooks.finalized(object)
    }

    /// Seconds between the first DELETE and the end; `None` for kinds that end at once.
    pub fn graceful_period(&self, object: &ObjectMap, requested: Option<i64>) -> Option<i64> {
        self.hooks.graceful_period(object, requested)
    }

    /// Whether DELETE waits for the garbage collector when asked to.
    pub fn garbage_collected(&self) -> bool {
        self.hooks.garbage_collected()
    }

    /// For kinds whose DELETE starts in a way of its own: the object as it then stands, or `None` where the
    /// generic rules go on.
    pub fn begin_deletion(&self, object: &ObjectMap, dependents: Dependents, now: &str) -> Option<ObjectMap> {
        self.hooks.begin_deletion(object, dependents, now)
    }
}
