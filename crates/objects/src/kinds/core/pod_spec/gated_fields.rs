//! Fields of features that are off, in the specs of pods.

use crate::kinds::behavior::gated_fields::Feature::{
    AtomicWriteVolumeUserFields, ContainerStopSignals, EmptyDirVolumeMode, EvictionRequestApi,
    GenericWorkload, GrpcContainerProbeTls, H2cContainerProbe, VolumeBindMountOptions,
};
use crate::kinds::behavior::gated_fields::Node;
use crate::kinds::behavior::gated_fields::Node::{Each, Of, OnlyOf, Under};

pub const TEMPLATED: &[Node] = &[Under("template", &[Under("spec", POD)])];

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
