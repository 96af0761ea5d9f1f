//! Volumes of every sort, and drivers of them.

use super::{Remarks, node_labels, whole_bytes};
use crate::api::ObjectMap;
use crate::api::validation::at::At;
use crate::fields;

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const BETA_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
const TOKENS: &str = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent \
                      possible logging of tokens in volume attributes";

/// Sources that nobody serves any more, and what upstream says of them.
const OF_PODS: [(&str, &str); 9] = [
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

const OF_VOLUMES: [&str; 6] = ["cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"];

/// A volume of a Pod.
pub(super) fn source(volume: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    // Nearly all volumes are of other sorts: a look at each of their few members is enough.
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

/// One name is written otherwise in upstream's words than in its API.
fn spelled(name: &str) -> &str {
    if name == "storageos" { "storageOS" } else { name }
}

pub(super) fn volume(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let (metadata, spec) = (At::member(object, "metadata"), At::member(object, "spec"));
    let annotations = metadata.get("annotations");
    let old = [
        (BETA_CLASS, r#"deprecated since v1.8; use "storageClassName" attribute instead"#),
        (BETA_OPTIONS, r#"deprecated since v1.31; use "mountOptions" attribute instead"#),
    ];
    for (key, why) in old {
        let at = annotations.key(key);
        if at.is_set() {
            remarks.on(&at, why);
        }
    }
    let policy = spec.get("persistentVolumeReclaimPolicy");
    if policy.text() == "Recycle" {
        let why = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic \
                   provisioning.";
        remarks.on(&policy, why);
    }
    for term in spec.dig(&["nodeAffinity", "required", "nodeSelectorTerms"]).items() {
        node_labels::term(&term, false, remarks);
    }
    for name in OF_VOLUMES {
        let source = spec.get(name);
        let why = OF_PODS.iter().find(|(known, _)| *known == name).map(|(_, why)| why);
        if let Some(why) = why.filter(|_| source.is_set()) {
            remarks.on(&source.called(spelled(name)), why);
        }
    }
}

pub(super) fn claim(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let metadata = At::member(object, "metadata");
    let annotations = metadata.get("annotations");
    let class = annotations.key(BETA_CLASS);
    if class.is_set() {
        remarks.on(&class, r#"deprecated since v1.8; use "storageClassName" attribute instead"#);
    }
    requests(&At::member(object, "spec"), remarks);
}

/// What the spec of a claim asks for.
pub(super) fn requests(spec: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let resources = spec.get("resources");
    for list in ["requests", "limits"] {
        whole_bytes(&resources.get(list).key("storage"), remarks);
    }
}

pub(super) fn csi_driver(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let spec = At::member(object, "spec");
    if !spec.get("tokenRequests").is_empty() && !spec.get("serviceAccountTokenInSecrets").is_set() {
        remarks.say(TOKENS);
    }
}

pub(super) fn csi_driver_update(new: &ObjectMap, old: &ObjectMap, remarks: &mut Remarks<'_>) {
    let requests = ["spec", "tokenRequests"];
    if fields::at(new, &requests) != fields::at(old, &requests) {
        csi_driver(new, remarks);
    }
}
