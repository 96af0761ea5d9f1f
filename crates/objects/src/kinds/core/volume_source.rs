//! Volume sources that pods and persistent volumes share.

pub mod columns;
pub mod warnings;

use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain};
use crate::kinds::behavior::rules::path_text::{descending, no_backsteps};
use crate::kinds::prelude::*;

const RANGE_255: &str = "must be between 0 and 255, inclusive";

/// Validates that these texts are present.
pub fn require(at: &At<'_, '_>, names: &[&str], errors: &mut Errors) {
    for name in names {
        errors.present(&at.get(name), "");
    }
}

pub fn host_path(at: &At<'_, '_>, errors: &mut Errors) {
    let path = at.get("path");
    if path.text().is_empty() {
        errors.required(&path, "");
        return;
    }
    no_backsteps(&path, path.text(), errors);
    const TYPES: [&str; 8] =
        ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    errors.one_of(&at.get("type"), at.get("type").text(), &TYPES);
}

pub fn git_repo(at: &At<'_, '_>, errors: &mut Errors) {
    require(at, &["repository"], errors);
    descending(&at.get("directory"), at.get("directory").text(), errors);
}

pub fn gce_disk(at: &At<'_, '_>, errors: &mut Errors) {
    partitioned(&at.called("persistentDisk"), "pdName", errors);
}

pub fn aws_disk(at: &At<'_, '_>, errors: &mut Errors) {
    partitioned(at, "volumeID", errors);
}

fn partitioned(at: &At<'_, '_>, name: &str, errors: &mut Errors) {
    require(at, &[name], errors);
    let partition = at.get("partition");
    if !(0..=255).contains(&partition.int()) {
        errors.invalid(&partition, partition.int(), "must be between 1 and 255, inclusive");
    }
}

pub fn nfs(at: &At<'_, '_>, errors: &mut Errors) {
    require(at, &["server", "path"], errors);
    let path = at.get("path");
    if !path.text().starts_with('/') {
        errors.invalid(&path, path.text(), "must be an absolute path");
    }
}

pub fn iscsi(at: &At<'_, '_>, errors: &mut Errors) {
    let prefix = "must be valid format starting with iqn, eui, or naa";
    iscsi_common(at, prefix, errors);
    let chap = at.get("chapAuthDiscovery").flag() || at.get("chapAuthSession").flag();
    if chap && !at.get("secretRef").is_set() {
        errors.required(&at.get("secretRef"), "");
    }
    initiator(at, prefix, errors);
}

/// The iSCSI source of persistent volumes, whose errors contain less detail.
pub fn persistent_iscsi(at: &At<'_, '_>, volume: &str, errors: &mut Errors) {
    let prefix = "must be valid format";
    let portal = at.get("targetPortal");
    require(at, &["targetPortal"], errors);
    if at.get("initiatorName").is_set() && volume.len() + 1 + portal.text().len() > 64 {
        errors.invalid(&portal.called("targetportal"), portal.text(), INITIATOR_TOO_LONG);
    }
    iscsi_target(at, prefix, errors);
    let secret = at.get("secretRef");
    let chap = at.get("chapAuthDiscovery").flag() || at.get("chapAuthSession").flag();
    if chap && !secret.is_set() {
        errors.required(&secret, "");
    }
    if secret.is_set() {
        require(&secret, &["name"], errors);
    }
    initiator(at, prefix, errors);
}

const INITIATOR_TOO_LONG: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";

/// Validates that the name formed of volume and portal is not too long.
pub fn iscsi_name_fits(at: &At<'_, '_>, name: &At<'_, '_>, volume: &str, errors: &mut Errors) {
    let length = volume.len() + 1 + at.get("targetPortal").text().len();
    if at.get("initiatorName").is_set() && length > 64 {
        errors.invalid(name, volume, INITIATOR_TOO_LONG);
    }
}

fn iscsi_common(at: &At<'_, '_>, prefix: &str, errors: &mut Errors) {
    require(at, &["targetPortal"], errors);
    iscsi_target(at, prefix, errors);
}

fn iscsi_target(at: &At<'_, '_>, prefix: &str, errors: &mut Errors) {
    let iqn = at.get("iqn");
    if errors.present(&iqn, "") {
        iscsi_name(&iqn, iqn.text(), prefix, errors);
    }
    let lun = at.get("lun");
    if !(0..=255).contains(&lun.int()) {
        errors.invalid(&lun, lun.int(), RANGE_255);
    }
}

fn initiator(at: &At<'_, '_>, prefix: &str, errors: &mut Errors) {
    let name = at.get("initiatorName");
    if let Some(text) = name.opt_text() {
        iscsi_name(&at.get("initiatorname"), text, prefix, errors);
    }
}

fn iscsi_name(at: &At<'_, '_>, name: &str, prefix: &str, errors: &mut Errors) {
    let alphanumeric =
        |text: &str, length| text.len() == length && text.bytes().all(|b| b.is_ascii_alphanumeric());
    let rest = name.get(4..).unwrap_or_default();
    let why = match name.get(..3) {
        Some("iqn") if !is_iqn(name) => "must be valid format",
        Some("eui") if !alphanumeric(rest, 16) => "must be valid format",
        Some("naa") if !alphanumeric(rest, 32) => "must be valid format",
        Some("iqn" | "eui" | "naa") => return,
        _ => prefix,
    };
    errors.invalid(at, name, why);
}

/// Whether the text contains a name such as `iqn.2004-10.com.example:target`. Upstream's expression is anchored only at
/// the end.
fn is_iqn(name: &str) -> bool {
    let Some(start) = name.find("iqn.") else { return false };
    let rest = &name.as_bytes()[start + 4..];
    let digit = |at: usize| rest.get(at).is_some_and(u8::is_ascii_digit);
    let date = (0..4).all(digit) && rest.get(4) == Some(&b'-') && digit(5) && digit(6);
    let Some(rest) = rest.get(8..).filter(|_| date && rest.get(7) == Some(&b'.')) else { return false };
    let end = rest.iter().position(|b| *b == b':').unwrap_or(rest.len());
    let authority = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.');
    let target = |b: &u8| !b.is_ascii_whitespace() && !b",;*&$|".contains(b);
    end > 0 && rest[..end].iter().all(authority) && rest.len() > end + 1 && rest[end + 1..].iter().all(target)
}

pub fn fibre_channel(at: &At<'_, '_>, errors: &mut Errors) {
    let (names, ids, lun) = (at.get("targetWWNs"), at.get("wwids"), at.get("lun"));
    if names.is_empty() && ids.is_empty() {
        errors.required(&names, "must specify either targetWWNs or wwids, but not both");
    }
    if !names.is_empty() && !ids.is_empty() {
        let why = "targetWWNs and wwids can not be specified simultaneously";
        errors.invalid(&names, names.value(), why);
    }
    if names.is_empty() {
        return;
    }
    match lun.opt_int() {
        None => errors.required(&lun, "lun is required if targetWWNs is specified"),
        Some(number) if !(0..=255).contains(&number) => errors.invalid(&lun, number, RANGE_255),
        Some(_) => {}
    }
}

pub fn flocker(at: &At<'_, '_>, errors: &mut Errors) {
    let (name, uuid) = (at.get("datasetName"), at.get("datasetUUID"));
    if name.text().is_empty() && uuid.text().is_empty() {
        errors.required(at, "one of datasetName and datasetUUID is required");
    }
    if !name.text().is_empty() && !uuid.text().is_empty() {
        errors.invalid(at, "resource", "datasetName and datasetUUID can not be specified simultaneously");
    }
    if name.text().contains('/') {
        errors.invalid(&name, name.text(), "must not contain '/'");
    }
}

pub fn rbd(at: &At<'_, '_>, errors: &mut Errors) {
    errors.present(&at.get("monitors"), "");
    require(at, &["image"], errors);
}

pub fn cephfs(at: &At<'_, '_>, errors: &mut Errors) {
    errors.present(&at.get("monitors"), "");
}

/// `secret` names the fields that a reference to a secret must have.
pub fn cinder(at: &At<'_, '_>, secret: &[&str], errors: &mut Errors) {
    require(at, &["volumeID"], errors);
    if at.get("secretRef").is_set() {
        require(&at.get("secretRef"), secret, errors);
    }
}

pub fn quobyte(at: &At<'_, '_>, errors: &mut Errors) {
    let pairs = "must be a host:port pair or multiple pairs separated by commas";
    let registry = at.get("registry");
    if registry.text().is_empty() {
        errors.required(&registry, pairs);
    } else if at.get("tenant").text().len() >= 65 {
        errors.required(&at.get("tenant"), "must be a UUID and may not exceed a length of 64 characters");
    } else {
        for _ in registry.text().split(',').filter(|pair| !is_host_and_port(pair)) {
            errors.invalid(&registry, registry.text(), pairs);
        }
    }
    require(at, &["volume"], errors);
}

/// Whether Go's `net.SplitHostPort` succeeds.
fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(inner) => match inner.strip_suffix(']') {
            Some(inner) => inner,
            None => return false,
        },
        None if host.contains(':') => return false,
        None => host,
    };
    !host.contains(['[', ']']) && !port.contains(['[', ']'])
}

pub fn flex(at: &At<'_, '_>, errors: &mut Errors) {
    require(at, &["driver"], errors);
    for (key, option) in at.get("options").entries() {
        let namespace = key.split_once('/').map_or(key, |(namespace, _)| namespace);
        let namespace = format!(".{}", namespace.to_lowercase());
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            errors.invalid(&option, key, "kubernetes.io and k8s.io namespaces are reserved");
        }
    }
}

pub fn azure_disk(at: &At<'_, '_>, errors: &mut Errors) {
    require(at, &["diskName", "diskURI"], errors);
    let (caching, kind, uri) = (at.get("cachingMode"), at.get("kind"), at.get("diskURI"));
    errors.one_of(&caching, caching.opt_text().unwrap_or("ReadWrite"), &["None", "ReadOnly", "ReadWrite"]);
    let kind_text = kind.opt_text().unwrap_or("Shared");
    errors.one_of(&kind, kind_text, &["Dedicated", "Managed", "Shared"]);
    let managed =
        "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    let blob = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let (prefix, form) =
        if kind_text == "Managed" { ("/subscriptions/", managed) } else { ("https://", blob) };
    if !uri.text().starts_with(prefix) {
        errors.not_supported(&uri, uri.text(), &[form]);
    }
}

/// `secret` names the fields that a reference to a secret must have.
pub fn storage_os(at: &At<'_, '_>, secret: &[&str], errors: &mut Errors) {
    let (name, namespace) = (at.get("volumeName"), at.get("volumeNamespace"));
    errors.required_in_format(&name, dns1123_label);
    errors.in_format_if_given(&namespace, dns1123_label);
    if at.get("secretRef").is_set() {
        require(&at.get("secretRef"), secret, errors);
    }
}

pub fn csi_driver(at: &At<'_, '_>, errors: &mut Errors) {
    driver_name(at, at.text(), errors);
}

/// Validates the name of a driver for storage or devices.
pub fn driver_name(at: &At<'_, '_>, name: &str, errors: &mut Errors) {
    if name.is_empty() {
        errors.required(at, "");
        return;
    }
    if name.len() > 63 {
        errors.too_long(at, 63);
    }
    errors.invalid_each(at, name, dns1123_subdomain(&name.to_lowercase()));
}
