//! VolumeAttachments.

use crate::kinds::behavior::columns::Column;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, boolean_column, text_column};
use crate::kinds::behavior::format::dns1123_subdomain;
use crate::kinds::behavior::strategy::status::{RESET, StatusRule};
use crate::kinds::core::persistent_volume;
use crate::kinds::core::persistent_volume::VolumeSpecIn;
use crate::kinds::core::volume_source::csi_driver;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("volumeattachments", "VolumeAttachment")
        .sub(&["status"])
        .conditional()
        .returns_deleted(),
    strategy: Strategy {
        status_metadata: RESET,
        status: StatusRule::Reset(r#"{"attached":false}"#),
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update).with_status(update),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const METADATA_SIZE: usize = 256 * 1024;

const MESSAGE_SIZE: usize = 1024;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    source(&spec.get("source"), errors);
    let node = spec.get("nodeName");
    errors.in_format(&node, dns1123_subdomain);
    let state = At::member(object, "status");
    let metadata = state.get("attachmentMetadata");
    let size: usize = metadata.entries().map(|(key, value)| key.len() + value.text().len()).sum();
    if size > METADATA_SIZE {
        errors.too_long(&metadata, METADATA_SIZE);
    }
    for name in ["attachError", "detachError"] {
        let error = state.get(name);
        if error.get("message").text().len() > MESSAGE_SIZE {
            errors.too_long(&error.get("message"), METADATA_SIZE);
        }
        let code = error.get("errorCode");
        if code.int() < 0 {
            errors.within(&code, 0, i64::from(i32::MAX));
        }
    }
    let volume = spec.dig(&["source", "persistentVolumeName"]);
    errors.in_format_if_set(&volume, dns1123_subdomain);
}

fn source(at: &At<'_, '_>, errors: &mut Errors) {
    let (inline, volume) = (at.get("inlineVolumeSpec"), at.get("persistentVolumeName"));
    let one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline.is_set(), volume.opt_text()) {
        (false, None) => errors.required(at, one),
        (true, Some(_)) => errors.forbidden(at, one),
        (false, Some("")) => errors.required(&volume, "must specify non empty persistentVolumeName"),
        (false, Some(_)) => {}
        (true, None) => persistent_volume::spec(&inline, VolumeSpecIn::Inline, errors),
    }
}

/// The declared rules end with the error that the spec is immutable, so that its attacher is judged here.
pub fn update(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    csi_driver(&At::member(new, "spec").get("attacher"), errors);
    create(new, errors);
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        Column { format: "name", ..text_column("Attacher", "Driver that attaches the volume.") }
            .at("spec.attacher"),
        text_column("PV", "Volume to attach.").at("spec.source.persistentVolumeName"),
        text_column("Node", "Node to attach the volume to.").at("spec.nodeName"),
        boolean_column("Attached", "Whether the volume is attached.").at("status.attached"),
        AGE,
    ],
    ..PLAIN
};
