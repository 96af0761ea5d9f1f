//! Cells that persistent volumes and their claims share.

use crate::kinds::behavior::columns::cell::{deleting, list, optional_text, scalar_text, text};
use crate::kinds::behavior::columns::text::join;
use crate::tree::Value;

/// The annotation takes precedence over the field.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// Access modes and their short names, in the order of the cell.
const ACCESS_MODES: [(&str, &str); 4] = [
    ("ReadWriteOnce", "RWO"),
    ("ReadOnlyMany", "ROX"),
    ("ReadWriteMany", "RWX"),
    ("ReadWriteOncePod", "RWOP"),
];

pub fn phase(object: &Value) -> &str {
    if deleting(object) { "Terminating" } else { text(&object["status"]["phase"]) }
}

pub fn storage(resources: &Value) -> String {
    scalar_text(&resources["storage"]).unwrap_or_else(|| "0".to_owned())
}

pub fn access_modes(modes: &Value) -> String {
    let modes = list(modes);
    let present = ACCESS_MODES.iter().filter(|(mode, _)| modes.iter().any(|found| found == mode));
    join(present.map(|(_, short)| short), ",")
}

pub fn class(object: &Value) -> &str {
    let annotation = &object["metadata"]["annotations"][CLASS_ANNOTATION];
    optional_text(annotation, text(&object["spec"]["storageClassName"]))
}
