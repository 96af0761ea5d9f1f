//! Mounts of volumes in containers.

use std::collections::BTreeSet;

use crate::kinds::behavior::rules::path_text::{descending, has_backsteps};
use crate::kinds::core::pod_spec::volume::VolumesByName;
use crate::kinds::prelude::*;

/// Validates `volumeMounts` of a container.
pub fn mounts(container: &At<'_, '_>, volumes: &VolumesByName<'_>, errors: &mut Errors) {
    let (list, devices) = (container.get("volumeMounts"), container.get("volumeDevices"));
    let (device_names, device_paths) = (texts(&devices, "name"), texts(&devices, "devicePath"));
    let mut paths = BTreeSet::new();
    for mount in list.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        errors.present(&name, "");
        if !volumes.contains_key(name.text()) {
            errors.not_found(&name, name.text());
        }
        errors.present(&path, "");
        if !paths.insert(path.text()) {
            errors.invalid(&path, path.text(), "must be unique");
        }
        if device_names.contains(name.text()) {
            errors.invalid(&name, name.text(), "must not already exist in volumeDevices");
        }
        if device_paths.contains(path.text()) {
            errors.invalid(&path, path.text(), "must not already exist as a path in volumeDevices");
        }
        sub_paths(&mount, &list, errors);
        propagation(&mount, &list, container, errors);
    }
}

/// Validates paths within a volume. Upstream's errors name the list instead of the mount, except in one case.
fn sub_paths(mount: &At<'_, '_>, list: &At<'_, '_>, errors: &mut Errors) {
    let (path, expression) = (mount.get("subPath").text(), mount.get("subPathExpr"));
    if !path.is_empty() {
        descending(&list.get("subPath"), path, errors);
    }
    if !expression.text().is_empty() {
        if !path.is_empty() {
            errors.invalid(&expression, expression.text(), "subPathExpr and subPath are mutually exclusive");
        }
        descending(&list.get("subPathExpr"), expression.text(), errors);
    }
}

fn propagation(mount: &At<'_, '_>, list: &At<'_, '_>, container: &At<'_, '_>, errors: &mut Errors) {
    let mode = mount.get("mountPropagation").opt_text();
    if let Some(mode) = mode {
        let at = list.get("mountPropagation");
        errors.one_of(&at, mode, &["Bidirectional", "HostToContainer", "None"]);
        if mode == "Bidirectional" && !container.dig(&["securityContext", "privileged"]).flag() {
            errors
                .forbidden(&at, "Bidirectional mount propagation is available only to privileged containers");
        }
    }
    let at = list.get("recursiveReadOnly");
    match mount.get("recursiveReadOnly").opt_text() {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount.get("readOnly").flag() {
                errors.forbidden(&at, "may only be specified when readOnly is true");
            }
            if mode.is_some_and(|mode| mode != "None") {
                errors.forbidden(&at, "may only be specified when mountPropagation is None or not specified");
            }
        }
        Some(other) => errors.not_supported(&at, other, &["Disabled", "Enabled", "IfPossible"]),
    }
}

/// Validates `volumeDevices` of a container.
pub fn devices(container: &At<'_, '_>, volumes: &VolumesByName<'_>, errors: &mut Errors) {
    let mounts = container.get("volumeMounts");
    let (mount_names, mount_paths) = (texts(&mounts, "name"), texts(&mounts, "mountPath"));
    let (mut names, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for device in container.get("volumeDevices").items() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        errors.present(&name, "");
        if names.contains(name.text()) {
            errors.invalid(&name, name.text(), "must be unique");
        }
        match volumes.get(name.text()) {
            None => errors.not_found(&name, name.text()),
            Some(volume) => {
                let claims = ["persistentVolumeClaim", "ephemeral"];
                if !claims.iter().any(|field| volume.get(field).is_some_and(|value| !value.is_null())) {
                    let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                    errors.invalid(&name, name.text(), why);
                }
            }
        }
        errors.present(&path, "");
        if paths.contains(path.text()) {
            errors.invalid(&path, path.text(), "must be unique");
        }
        if has_backsteps(path.text()) {
            errors.invalid(&path, path.text(), "can not contain backsteps ('..')");
        } else {
            paths.insert(path.text());
        }
        if mount_names.contains(name.text()) {
            errors.invalid(&name, name.text(), "must not already exist in volumeMounts");
        }
        if mount_paths.contains(path.text()) {
            errors.invalid(&path, path.text(), "must not already exist as a path in volumeMounts");
        }
        if !name.text().is_empty() {
            names.insert(name.text());
        }
    }
}

/// The values of a field in all elements.
fn texts<'v>(list: &At<'v, '_>, field: &str) -> BTreeSet<&'v str> {
    list.items().map(|item| item.get(field).text()).collect()
}
