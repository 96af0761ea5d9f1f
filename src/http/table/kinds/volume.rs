//! Persistent volumes and their claims.

use jiff::Timestamp;

use super::super::Printer;
use super::super::cell::{
    AGE, NAME, PLAIN, age, cells, deleting, list, name, optional_text, scalar_text, text, text_column, wide,
};
use super::super::text::join;
use crate::tree::Value;

/// Still wins over the field where it is set.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Access modes and their short names, in the order of the cell.
const ACCESS_MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

pub static PERSISTENT_VOLUME: Printer = Printer {
    columns: &[
        NAME,
        text_column("Capacity", "Size of the volume."),
        text_column("Access Modes", "How the volume can be mounted."),
        text_column("Reclaim Policy", "What becomes of the volume when its claim is gone."),
        text_column("Status", "Whether the volume is bound."),
        text_column("Claim", "Claim that the volume is bound to."),
        text_column("StorageClass", "Storage class of the volume."),
        text_column("VolumeAttributesClass", "Volume attributes class of the volume."),
        text_column("Reason", "Why the volume failed."),
        AGE,
        wide(text_column("VolumeMode", "Whether the volume holds a file system or raw blocks.")),
    ],
    cells: volume_cells,
    ..PLAIN
};

pub static PERSISTENT_VOLUME_CLAIM: Printer = Printer {
    columns: &[
        NAME,
        text_column("Status", "Whether the claim is bound."),
        text_column("Volume", "Volume that the claim is bound to."),
        text_column("Capacity", "Size of that volume."),
        text_column("Access Modes", "How that volume can be mounted."),
        text_column("StorageClass", "Storage class that was asked for."),
        text_column("VolumeAttributesClass", "Volume attributes class that was asked for."),
        AGE,
        wide(text_column("VolumeMode", "Whether a file system or raw blocks were asked for.")),
    ],
    cells: claim_cells,
    ..PLAIN
};

fn volume_cells(volume: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&volume["spec"], &volume["status"]);
    cells![
        name(volume),
        storage(&spec["capacity"]),
        access_modes(&spec["accessModes"]),
        text(&spec["persistentVolumeReclaimPolicy"]),
        phase(volume),
        claim(&spec["claimRef"]),
        class(volume),
        optional_text(&spec["volumeAttributesClassName"], "<unset>"),
        text(&status["reason"]),
        age(volume, now),
        optional_text(&spec["volumeMode"], "<unset>"),
    ]
}

fn claim_cells(claim: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&claim["spec"], &claim["status"]);
    let volume = text(&spec["volumeName"]);
    let (capacity, modes) = match volume {
        "" => (String::new(), String::new()),
        _ => (storage(&status["capacity"]), access_modes(&status["accessModes"])),
    };
    cells![
        name(claim),
        phase(claim),
        volume,
        capacity,
        modes,
        class(claim),
        optional_text(&spec["volumeAttributesClassName"], "<unset>"),
        age(claim, now),
        optional_text(&spec["volumeMode"], "<unset>"),
    ]
}

fn phase(object: &Value) -> &str {
    if deleting(object) { "Terminating" } else { text(&object["status"]["phase"]) }
}

fn storage(resources: &Value) -> String {
    scalar_text(&resources["storage"]).unwrap_or_else(|| "0".to_owned())
}

fn access_modes(modes: &Value) -> String {
    let modes = list(modes);
    let present = ACCESS_MODES.iter().filter(|(mode, _)| modes.iter().any(|found| found == mode));
    join(present.map(|(_, short)| short), ",")
}

fn claim(reference: &Value) -> String {
    if !reference.is_object() {
        return String::new();
    }
    format!("{}/{}", text(&reference["namespace"]), text(&reference["name"]))
}

fn class(object: &Value) -> &str {
    let annotation = &object["metadata"]["annotations"][CLASS_ANNOTATION];
    optional_text(annotation, text(&object["spec"]["storageClassName"]))
}
