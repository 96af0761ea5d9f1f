//! Warnings about volume sources that are not supported any more.

use crate::kinds::core::persistent_volume_claim::requests;
use crate::kinds::prelude::*;

/// Unsupported sources, and upstream's texts.
pub const OF_PODS: [(&str, &str); 9] = [
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// Warns about a volume of a Pod.
pub fn source(volume: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    // Nearly all volumes have other sources, so their few members are compared with the table.
    let old = volume.value().as_object().into_iter().flatten();
    for (name, why) in old.filter_map(|(name, _)| OF_PODS.iter().find(|(known, _)| known == name)) {
        let source = volume.get(name);
        if source.is_set() {
            remarks.on(&source.called(spelled(name)), why);
        }
    }
    let claim = volume.dig(&["ephemeral", "volumeClaimTemplate", "spec"]);
    if claim.is_set() {
        requests(&claim, remarks);
    }
}

/// The name in upstream's warnings, which in one case differs from the API's.
pub fn spelled(name: &str) -> &str {
    if name == "storageos" { "storageOS" } else { name }
}
