//! Volumes attached to nodes.

use super::super::at::At;
use super::super::errors::{Errors, Verbatim};
use super::super::format::dns1123_subdomain;
use super::super::same::{IMMUTABLE, same};
use super::super::volume_source::csi_driver;
use super::volume::{self, Place};
use crate::api::ObjectMap;
use crate::gotext;

const METADATA_SIZE: usize = 256 * 1024;
const MESSAGE_SIZE: usize = 1024;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    csi_driver(&spec.get("attacher"), errors);
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
    if let Some(name) = volume.opt_text() {
        errors.invalid_each(&volume, name, dns1123_subdomain(name));
    }
}

fn source(at: &At<'_, '_>, errors: &mut Errors) {
    let (inline, volume) = (at.get("inlineVolumeSpec"), at.get("persistentVolumeName"));
    let one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (inline.is_set(), volume.opt_text()) {
        (false, None) => errors.required(at, one),
        (true, Some(_)) => errors.forbidden(at, one),
        (false, Some("")) => errors.required(&volume, "must specify non empty persistentVolumeName"),
        (false, Some(_)) => {}
        (true, None) => volume::spec(&inline, Place::Inline, errors),
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    create(new, errors);
    let spec = At::member(new, "spec");
    if !same(spec.value(), At::member(old, "spec").value()) {
        errors.invalid(&spec, internal(&spec), IMMUTABLE);
    }
}

/// As Go has it, but for a volume that is spelled out.
fn internal(spec: &At<'_, '_>) -> Verbatim {
    let text = |name: &str| gotext::json(&spec.get(name).text().into());
    let (attacher, node) = (text("attacher"), text("nodeName"));
    let source = |name: &str| gotext::json(spec.dig(&["source", name]).value());
    let (volume, inline) = (source("persistentVolumeName"), source("inlineVolumeSpec"));
    Verbatim(format!(
        "{{\"Attacher\":{attacher},\"Source\":{{\"PersistentVolumeName\":{volume},\"InlineVolumeSpec\":{inline}}},\"NodeName\":{node}}}"
    ))
}
