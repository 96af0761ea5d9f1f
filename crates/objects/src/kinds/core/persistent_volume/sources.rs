//! Sources of volumes.

use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain};
use crate::kinds::behavior::rules::format::Check;
use crate::kinds::behavior::rules::path_text::no_backsteps;
use crate::kinds::core::volume_source;
use crate::kinds::prelude::*;

/// The place where the spec of a volume occurs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum VolumeSpecIn<'a> {
    /// In a PersistentVolume of this name.
    Volume(&'a str),
    /// In an attachment, as an inline volume.
    Inline,
}

type Rule = fn(&At<'_, '_>, &str, &mut Errors);

/// The possible sources, in the order in which upstream checks them. The second name is used in errors about a second
/// source.
pub(super) const SOURCES: [(&str, &str, Rule); 22] = [
    ("hostPath", "hostPath", |at, _, errors| volume_source::host_path(at, errors)),
    ("gcePersistentDisk", "gcePersistentDisk", |at, _, errors| volume_source::gce_disk(at, errors)),
    ("awsElasticBlockStore", "awsElasticBlockStore", |at, _, errors| volume_source::aws_disk(at, errors)),
    ("glusterfs", "glusterfs", |at, _, errors| gluster(at, errors)),
    ("flocker", "flocker", |at, _, errors| volume_source::flocker(at, errors)),
    ("nfs", "nfs", |at, _, errors| volume_source::nfs(at, errors)),
    ("rbd", "rbd", |at, _, errors| volume_source::rbd(at, errors)),
    ("quobyte", "quobyte", |at, _, errors| volume_source::quobyte(at, errors)),
    ("cephfs", "cephFS", |at, _, errors| volume_source::cephfs(at, errors)),
    ("iscsi", "iscsi", volume_source::persistent_iscsi),
    ("cinder", "cinder", |at, _, errors| volume_source::cinder(at, &["name", "namespace"], errors)),
    ("fc", "fc", |at, _, errors| volume_source::fibre_channel(at, errors)),
    ("flexVolume", "flexVolume", |at, _, errors| volume_source::flex(at, errors)),
    ("azureFile", "azureFile", |at, _, errors| azure_file(at, errors)),
    ("vsphereVolume", "vsphereVolume", |at, _, errors| volume_source::require(at, &["volumePath"], errors)),
    ("photonPersistentDisk", "photonPersistentDisk", |at, _, errors| {
        volume_source::require(at, &["pdID"], errors)
    }),
    ("portworxVolume", "portworxVolume", |at, _, errors| volume_source::require(at, &["volumeID"], errors)),
    ("azureDisk", "azureDisk", |at, _, errors| volume_source::azure_disk(at, errors)),
    ("scaleIO", "scaleIO", |at, _, errors| {
        volume_source::require(at, &["gateway", "system", "volumeName"], errors)
    }),
    ("local", "local", |at, _, errors| local(at, errors)),
    ("storageos", "storageos", |at, _, errors| volume_source::storage_os(at, &["name", "namespace"], errors)),
    ("csi", "csi", |at, _, errors| csi(at, errors)),
];

pub(super) fn sources(spec: &At<'_, '_>, name: &str, errors: &mut Errors) {
    let mut found = false;
    for (field, called, rule) in SOURCES {
        let at = spec.get(field);
        if !at.is_set() {
            continue;
        }
        // Upstream does not count sources before a flex volume.
        if found && field != "flexVolume" {
            errors.forbidden(&spec.get(called), "may not specify more than 1 volume type");
            continue;
        }
        found = true;
        rule(&at, name, errors);
        let affinity = spec.get("nodeAffinity");
        if field == "local" && !affinity.is_set() {
            errors.required(&affinity, "Local volume requires node affinity");
        }
    }
    if !found {
        errors.required(spec, "must specify a volume type");
    }
}

/// Refuses fields that an inline volume cannot have.
pub(super) fn inline(spec: &At<'_, '_>, errors: &mut Errors) {
    let why = "may not be specified in the context of inline volumes";
    for name in ["claimRef", "nodeAffinity"] {
        if spec.get(name).is_set() {
            errors.forbidden(&spec.get(name), why);
        }
    }
    if !spec.get("capacity").is_empty() {
        errors.forbidden(&spec.get("capacity"), why);
    }
    if !spec.get("csi").is_set() {
        errors.required(&spec.get("csi"), "has to be specified in the context of inline volumes");
    }
    let (policy, class, mode) =
        (spec.get("persistentVolumeReclaimPolicy"), spec.get("storageClassName"), spec.get("volumeMode"));
    if !matches!(policy.text(), "" | "Retain") {
        errors.forbidden(&policy, "may only be Retain in the context of inline volumes");
    }
    if !class.text().is_empty() {
        errors.forbidden(&class, why);
    }
    if !matches!(mode.text(), "" | "Filesystem") {
        errors.forbidden(
            &mode,
            "may not specify volumeMode other than Filesystem in the context of inline volumes",
        );
    }
}

/// Whether Go's `path.Clean` would turn the path into the root.
pub(super) fn is_root(path: &str) -> bool {
    let mut depth = 0usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    path.starts_with('/') && depth == 0
}

fn gluster(at: &At<'_, '_>, errors: &mut Errors) {
    volume_source::require(at, &["endpoints", "path"], errors);
    let namespace = at.get("endpointsNamespace");
    match namespace.opt_text() {
        None => {}
        Some("") => {
            let why = "if the endpointnamespace is set, it must be a valid namespace name";
            errors.invalid(&namespace, "", why);
        }
        Some(name) => errors.invalid_each(&namespace, name, dns1123_label(name)),
    }
}

fn azure_file(at: &At<'_, '_>, errors: &mut Errors) {
    volume_source::require(at, &["secretName", "shareName"], errors);
    let namespace = at.get("secretNamespace");
    if namespace.opt_text() == Some("") {
        errors.required(&namespace, "");
    }
}

fn local(at: &At<'_, '_>, errors: &mut Errors) {
    let path = at.get("path");
    if errors.present(&path, "") {
        no_backsteps(&path, path.text(), errors);
    }
}

fn csi(at: &At<'_, '_>, errors: &mut Errors) {
    volume_source::csi_driver(&at.get("driver"), errors);
    volume_source::require(at, &["volumeHandle"], errors);
    const SECRETS: [&str; 4] = [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ];
    for secret in SECRETS.iter().map(|name| at.get(name)).filter(At::is_set) {
        let checks: [(&str, Check); 2] = [("name", dns1123_subdomain), ("namespace", dns1123_label)];
        for (name, check) in checks {
            errors.required_in_format(&secret.get(name), check);
        }
    }
}
