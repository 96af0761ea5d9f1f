//! What a kind does beyond the generic path, as pure functions over its objects.
//!
//! A [`Strategy`] is looked up per request ([`Strategy::of`]) and is a handful of copies; the exceptions are the
//! table in `kinds.rs`, the unusual kinds have a file of their own. The rules are those of upstream's
//! `pkg/registry/<group>/<kind>/strategy.go`. Defaulting and validation are not here.
//!
//! Wrong types count as absent throughout.

pub mod generation;
pub mod reset;
pub mod status;

use uuid::Uuid;

use crate::api::meta;
use crate::api::meta::Metadata;
use crate::api::options::delete::DeleteOptions;
use crate::api::strategy::kinds;
use crate::causes::Cause;
use crate::fields;
use crate::fields::ObjectMap;
use crate::kinds::apiextensions::custom_resource_definition;
use crate::kinds::apiregistration::api_service;
use crate::kinds::apps::daemon_set::template_generation;
use crate::kinds::batch::job;
use crate::kinds::behavior::gated_fields;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::strategy::generation::Generation;
use crate::kinds::behavior::strategy::status::{StatusMetadata, StatusRule};
use crate::kinds::certificates::certificate_signing_request::approval;
use crate::kinds::core::persistent_volume_claim::source;
use crate::kinds::core::pod::{ephemeral_containers, lifecycle, resize};
use crate::kinds::core::pod_spec::app_armor;
use crate::kinds::core::pod_template::labels;
use crate::kinds::core::service::normal_form;
use crate::kinds::core::{namespace, persistent_volume};
use crate::kinds::discovery::endpoint_slice::topology;
use crate::kinds::resource::resource_claim;
use crate::schema::resource::ResourceDefinition;
use crate::user::User;
use crate::warnings::Warnings;

/// Who writes, and when.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    pub user: &'a User,
    /// Where to put what they should know.
    pub warnings: &'a Warnings,
    /// RFC 3339, UTC, whole seconds.
    pub now: &'a str,
}

/// The rules of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strategy {
    names: NameFormat,
    status: StatusRule,
    status_metadata: StatusMetadata,
    generation: Generation,
    special: Special,
    closed: &'static [gated_fields::Node],
}

/// Kinds with rules that no other kind shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    Nothing,
    Namespace,
    Pod,
    PersistentVolume,
    PersistentVolumeClaim,
    ResourceClaim,
    Service,
    EndpointSlice,
    ReplicationController,
    LimitRange,
    Job,
    DaemonSet,
    CertificateSigningRequest,
    CustomResourceDefinition,
    ApiService,
    /// Upstream's collector cannot wait for events: they take no finalizers of its.
    Event,
}

impl Strategy {
    pub fn of(definition: &ResourceDefinition) -> Self {
        kinds::strategy(definition)
    }

    /// What the kind demands of its names.
    pub fn names(&self) -> NameFormat {
        self.names
    }

    /// Comes before everything else that the kind does (upstream's `BeginCreate`, but for what waits for the store).
    pub fn begin_create(&self, object: &mut ObjectMap) {
        if self.special == Special::Service {
            normal_form::begin_create(object);
        }
    }

    /// As [`Strategy::begin_create`], for a write to the main resource.
    pub fn begin_update(&self, new: &mut ObjectMap, old: &ObjectMap) {
        if self.special == Special::Service {
            normal_form::begin_update(new, old);
        }
    }

    /// Call it once `metadata` is stamped and the name is generated, and before validation.
    pub fn prepare_create(&self, object: &mut ObjectMap, writer: &Writer<'_>) {
        self.status.create(object);
        gated_fields::drop_unused(self.closed, object, None);
        self.generation.create(object);
        match self.special {
            Special::Namespace => namespace::prepare_create(object),
            Special::Pod => {
                app_armor::sync(object, writer.warnings);
                lifecycle::prepare_create(object, writer.now);
            }
            Special::PersistentVolume => persistent_volume::prepare_create(object, writer.now),
            Special::PersistentVolumeClaim => source::prepare(object, None),
            Special::Job => {
                job::prepare_create(object);
                labels::adopt(object);
            }
            Special::DaemonSet => template_generation::prepare_create(object),
            Special::CertificateSigningRequest => approval::prepare_create(object, writer.user),
            Special::CustomResourceDefinition => custom_resource_definition::remember_stored_version(object),
            Special::ApiService => api_service::prepare_service(object, writer.now),
            Special::EndpointSlice => topology::drop_new(object, None),
            Special::Nothing
            | Special::Event
            | Special::LimitRange
            | Special::ReplicationController
            | Special::ResourceClaim
            | Special::Service => {}
        }
    }

    /// A write to the main resource. Sets `metadata.generation`, whatever the body says.
    pub fn prepare_update(&self, new: &mut ObjectMap, old: &ObjectMap) {
        self.status.update(new, old);
        gated_fields::drop_unused(self.closed, new, Some(old));
        match self.special {
            Special::Namespace => namespace::prepare_update(new, old),
            Special::PersistentVolumeClaim => source::prepare(new, Some(old)),
            Special::Service => normal_form::prepare_update(new, old),
            Special::DaemonSet => template_generation::prepare_update(new, old),
            Special::CertificateSigningRequest => fields::restore(new, old, "spec"),
            Special::CustomResourceDefinition => custom_resource_definition::remember_stored_version(new),
            _ => {}
        }
        self.generation.update(new, old);
        // Upstream counts what it then drops.
        if self.special == Special::EndpointSlice {
            topology::drop_new(new, Some(old));
        }
    }

    /// The name of a new object that neither has one nor asks for one, where the kind gives it.
    pub fn own_name(&self, metadata: &Metadata) -> Option<String> {
        let nameless = ["name", "generateName"].iter().all(|field| meta::text(metadata, field).is_empty());
        (self.special == Special::LimitRange && nameless).then(|| Uuid::new_v4().to_string())
    }

    /// A write to `/status`: only the status changes, and of the metadata what upstream lets through.
    pub fn prepare_status_update(&self, new: &mut ObjectMap, old: &ObjectMap, writer: &Writer<'_>) {
        status::keep_all_but_status(new, old);
        self.status_metadata.update(new, old);
        gated_fields::drop_unused(self.closed, new, Some(old));
        match self.special {
            Special::Namespace => namespace::label(new),
            Special::Pod => lifecycle::prepare_status_update(new, old),
            Special::PersistentVolume => persistent_volume::prepare_status_update(new, old, writer.now),
            Special::ResourceClaim => resource_claim::prepare_status_update(new, old),
            Special::DaemonSet => template_generation::keep_template_generation(new, old),
            Special::Job | Special::ReplicationController => labels::adopt(new),
            Special::CertificateSigningRequest => {
                approval::keep_approval(new, old);
                approval::stamp_conditions(new, old, writer.now);
            }
            _ => {}
        }
    }

    /// A write to `certificatesigningrequests/approval`: only the conditions change.
    pub fn prepare_approval(&self, new: &mut ObjectMap, old: &ObjectMap, writer: &Writer<'_>) {
        approval::stamp_conditions(new, old, writer.now);
        approval::keep_all_but_conditions(new, old);
    }

    /// A write to `pods/ephemeralcontainers`.
    pub fn prepare_debugging(&self, new: &mut ObjectMap, old: &ObjectMap) {
        ephemeral_containers::keep_all_else(new, old);
        gated_fields::drop_unused(self.closed, new, Some(old));
        status::RESET.update(new, old);
        self.generation.update(new, old);
    }

    /// A write to `pods/resize`.
    pub fn prepare_resize(&self, new: &mut ObjectMap, old: &ObjectMap) {
        if resize::keep_all_but_resources(new, old) {
            status::RESET.update(new, old);
        }
        self.generation.update(new, old);
    }

    /// What is wrong with a change made through a part that only this kind has.
    pub fn part_causes(&self, part: Part, new: &ObjectMap, old: &ObjectMap) -> Vec<Cause> {
        match part {
            Part::Approval => approval::removed_decisions(new, old),
            Part::EphemeralContainers => ephemeral_containers::causes(new, old),
            Part::Resize => resize::causes(new, old),
            Part::Main | Part::Status | Part::Finalize | Part::Scale => Vec::new(),
        }
    }

    /// A write to `namespaces/finalize`: the status stays.
    pub fn prepare_finalize(&self, new: &mut ObjectMap, old: &ObjectMap) {
        fields::restore(new, old, "status");
        fields::restore_metadata(new, old, "generation");
        if self.special == Special::Namespace {
            namespace::label(new);
        }
    }

    /// Whether the kind's own finalizers are gone. A terminating object disappears when this and
    /// [`super::meta::update::completes_deletion`] hold (upstream `ShouldDeleteNamespaceDuringUpdate`).
    pub fn finalized(&self, object: &ObjectMap) -> bool {
        self.special != Special::Namespace || !namespace::has_finalizers(object)
    }

    /// Seconds between the first DELETE and the end; `None` for kinds that end at once.
    pub fn graceful_period(&self, object: &ObjectMap, requested: Option<i64>) -> Option<i64> {
        (self.special == Special::Pod).then(|| lifecycle::graceful_period(object, requested))
    }

    /// Whether DELETE waits for the garbage collector when asked to.
    pub fn garbage_collected(&self) -> bool {
        self.special != Special::Event
    }

    /// For kinds whose DELETE starts in a way of its own: the object as it then stands, or `None` where the
    /// generic rules go on.
    pub fn begin_deletion(
        &self,
        object: &ObjectMap,
        options: &DeleteOptions,
        now: &str,
    ) -> Option<ObjectMap> {
        if self.special == Special::Namespace {
            namespace::begin_deletion(object, options, now)
        } else {
            None
        }
    }

    /// Upstream's namespaces compare preconditions in their own handler, with other texts.
    pub fn checks_preconditions_like_writes(&self) -> bool {
        self.special == Special::Namespace
    }
}

#[cfg(test)]
mod tests;
