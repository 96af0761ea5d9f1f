//! Pods (`pkg/apis/core/validation`, `pkg/registry/core/pod/strategy.go`).

pub mod columns;
pub mod condition;
pub mod ephemeral_containers;
pub mod gated_status;
pub mod hooks;
pub mod label_keys;
pub mod lifecycle;
pub mod qos;
pub mod resize;
pub mod resources;
pub mod status;
pub mod update;
pub mod warnings;

use crate::kinds::behavior::gated_fields::Node::Under;
use crate::kinds::behavior::selectable::{field, field_or};
use crate::kinds::behavior::strategy::status::{StatusMetadata, StatusRule};
use crate::kinds::core::pod_spec::{Owner, annotation, container, extra, gated_fields};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("pods", "Pod")
        .short(&["po"])
        .category("all")
        .sub(&[
            "attach",
            "binding",
            "ephemeralcontainers",
            "eviction",
            "exec",
            "log",
            "portforward",
            "proxy",
            "resize",
            "status",
        ])
        .generation()
        .returns_deleted(),
    strategy: Strategy {
        status: StatusRule::Reset(r#"{"phase":"Pending"}"#),
        status_metadata: StatusMetadata::Except(&["ownerReferences"]),
        gated_fields: &[
            Under("metadata", gated_fields::METADATA),
            Under("spec", gated_fields::POD),
            Under("status", gated_status::STATUS),
        ],
        hooks: &hooks::PodHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update::update).with_status(status::status).with_part(whole),
    warnings: KindWarnings::on_create(warnings::warn).with_status(warnings::warn_status),
    columns: &columns::COLUMNS,
    fields: selectable_fields,
    other_version: None,
};

fn selectable_fields() -> SelectableFields {
    let texts = [
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        // Upstream accepts this field label, but never sets its value.
        "status.podIPs",
        "status.nominatedNodeName",
    ];
    let fields = texts.into_iter().map(field).chain([field_or("spec.hostNetwork", "false")]);
    SelectableFields::namespaced(fields.collect()).with_aliases(vec![("spec.host".into(), "spec.nodeName")])
}

/// Rules for a new pod.
pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let (metadata, spec) = (At::member(object, "metadata"), At::member(object, "spec"));
    metadata_and_spec(&metadata, &spec, errors);
    if !spec.get("ephemeralContainers").is_empty() {
        errors.forbidden(&spec.get("ephemeralContainers"), "cannot be set on create");
    }
    if !spec.get("nodeName").text().is_empty() && !spec.get("schedulingGates").is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.forbidden(&spec.get("nodeName"), why);
    }
    extra::annotations_match(&metadata.get("annotations"), &spec, errors);
}

/// Rules for a pod after a write of one of its subresources.
pub fn whole(object: &ObjectMap, errors: &mut Errors) {
    metadata_and_spec(&At::member(object, "metadata"), &At::member(object, "spec"), errors);
}

pub fn metadata_and_spec(metadata: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    annotation::validate(&metadata.get("annotations"), spec, errors);
    let owner = Owner::Pod(metadata.get("name").text());
    let mirror = metadata.get("annotations").key(annotation::MIRROR).is_set();
    crate::kinds::core::pod_spec::spec(spec, owner, mirror, errors);
    // The deprecated name is still accepted.
    if ["serviceAccountName", "serviceAccount"].iter().all(|name| spec.get(name).text().is_empty()) {
        tokens_without_account(spec, errors);
    }
    for name in ["containers", "initContainers"] {
        for container in spec.get(name).items() {
            container::trimmed_image(&container, errors);
        }
    }
}

fn tokens_without_account(spec: &At<'_, '_>, errors: &mut Errors) {
    for volume in spec.get("volumes").items() {
        for source in volume.dig(&["projected", "sources"]).items() {
            let token = source.get("serviceAccountToken");
            if token.is_set() {
                errors.forbidden(&token, "must not be specified when serviceAccountName is not set");
            }
        }
    }
}
