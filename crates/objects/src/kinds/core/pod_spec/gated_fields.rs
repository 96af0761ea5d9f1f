//! Fields of features that are off, in the specs of pods.

use crate::kinds::behavior::gated_fields::Feature::{
    AtomicWriteVolumeUserFields, ContainerStopSignals, EmptyDirVolumeMode, EvictionRequestApi,
    GenericWorkload, GrpcContainerProbeTls, H2cContainerProbe, OldInitContainers, VolumeBindMountOptions,
};
use crate::kinds::behavior::gated_fields::Node;
use crate::kinds::behavior::gated_fields::Node::{Each, Of, OnlyOf, Under};

pub const TEMPLATED: &[Node] = &[Under("template", TEMPLATE)];

pub const TEMPLATE: &[Node] = &[Under("metadata", METADATA), Under("spec", POD)];

/// Annotations from the time when they contained the init containers (`DropInitContainerAnnotations`).
pub const OLD_ANNOTATIONS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

pub const METADATA: &[Node] = &[
    OnlyOf(OldInitContainers, "annotations", OLD_ANNOTATIONS[0]),
    OnlyOf(OldInitContainers, "annotations", OLD_ANNOTATIONS[1]),
    OnlyOf(OldInitContainers, "annotations", OLD_ANNOTATIONS[2]),
    OnlyOf(OldInitContainers, "annotations", OLD_ANNOTATIONS[3]),
];

pub const POD: &[Node] = &[
    Under("containers", &[Each(CONTAINER)]),
    Under("initContainers", &[Each(CONTAINER)]),
    Under("ephemeralContainers", &[Each(CONTAINER)]),
    Under("volumes", &[Each(VOLUME)]),
    Of(GenericWorkload, "schedulingGroup"),
    Of(EvictionRequestApi, "evictionResponders"),
];

const CONTAINER: &[Node] = &[
    Under("volumeMounts", &[Each(&[Of(VolumeBindMountOptions, "bindMountOptions")])]),
    Under("livenessProbe", PROBE),
    Under("readinessProbe", PROBE),
    Under("startupProbe", PROBE),
    Under("lifecycle", &[Under("postStart", HANDLER), Under("preStop", HANDLER)]),
    OnlyOf(ContainerStopSignals, "lifecycle", "stopSignal"),
];

const PROBE: &[Node] = &[
    Under("httpGet", &[Of(H2cContainerProbe, "protocol")]),
    Under("grpc", &[Of(GrpcContainerProbeTls, "mode")]),
];

const HANDLER: &[Node] = &[Under("httpGet", &[Of(H2cContainerProbe, "protocol")])];

const USER: Node = Of(AtomicWriteVolumeUserFields, "user");

const ITEMS: Node = Under("items", &[Each(&[USER])]);

const DEFAULT_USER: Node = Of(AtomicWriteVolumeUserFields, "defaultUser");

const FILES: &[Node] = &[ITEMS, DEFAULT_USER];

const VOLUME: &[Node] = &[
    Under("emptyDir", &[Of(EmptyDirVolumeMode, "mode")]),
    Under("configMap", FILES),
    Under("secret", FILES),
    Under("downwardAPI", FILES),
    Under("projected", &[Under("sources", &[Each(PROJECTION)]), DEFAULT_USER]),
];

const PROJECTION: &[Node] = &[
    Under("configMap", &[ITEMS]),
    Under("secret", &[ITEMS]),
    Under("downwardAPI", &[ITEMS]),
    Under("serviceAccountToken", &[USER]),
    Under("clusterTrustBundle", &[USER]),
    Under("podCertificate", &[USER]),
];
