//! Which kind has which of them.

use super::Feature::{
    AtomicWriteVolumeUserFields, ContainerStopSignals, CsiVolumeHealth, DraDerivedAttributes,
    DraDeviceCompatibilityGroups, DraListTypeAttributes, DraNodeAllocatableResources,
    DraOptionalNodeOperations, DraPartitionableDevicesType, ElectionStrategy, EmptyDirVolumeMode,
    EvictionRequestApi, GenericWorkload, GrpcContainerProbeTls, H2cContainerProbe, ImageVolumeWithDigest,
    InPlacePodVerticalScalingSchedulerPreemption, PreferredHolder, VolumeBindMountOptions, WorkloadWithJob,
};
use super::Node::{self, Each, Of, OnlyOf, Under};

pub fn fields(group: &str, kind: &str) -> &'static [Node] {
    match (group, kind) {
        ("", "Pod") => &[Under("spec", POD), Under("status", POD_STATUS)],
        ("", "PodTemplate") => TEMPLATED,
        ("", "ReplicationController")
        | ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet") => &[Under("spec", TEMPLATED)],
        ("batch", "Job") => &[Under("spec", JOB)],
        ("batch", "CronJob") => &[Under("spec", &[Under("jobTemplate", &[Under("spec", JOB)])])],
        ("", "Node") => {
            &[Under("spec", &[Of(InPlacePodVerticalScalingSchedulerPreemption, "podPreemptionPolicy")])]
        }
        ("", "PersistentVolumeClaim") => &[Under("status", &[Of(CsiVolumeHealth, "healthStatus")])],
        ("storage.k8s.io", "CSINode") => &[Under("status", &[Of(CsiVolumeHealth, "storageHealth")])],
        ("coordination.k8s.io", "Lease") => {
            &[Under("spec", &[Of(ElectionStrategy, "strategy"), Of(PreferredHolder, "preferredHolder")])]
        }
        ("resource.k8s.io", "ResourceSlice") => &[Under("spec", SLICE)],
        ("resource.k8s.io", "ResourceClaim") => &[Under("spec", CLAIM), Under("status", CLAIM_STATUS)],
        ("resource.k8s.io", "ResourceClaimTemplate") => &[Under("spec", &[Under("spec", CLAIM)])],
        _ => &[],
    }
}

const TEMPLATED: &[Node] = &[Under("template", &[Under("spec", POD)])];

const JOB: &[Node] = &[Under("template", &[Under("spec", POD)]), Of(WorkloadWithJob, "scheduling")];

const POD: &[Node] = &[
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

const POD_STATUS: &[Node] = &[
    Under("containerStatuses", &[Each(CONTAINER_STATUS)]),
    Under("initContainerStatuses", &[Each(CONTAINER_STATUS)]),
    Under("ephemeralContainerStatuses", &[Each(CONTAINER_STATUS)]),
    Of(DraNodeAllocatableResources, "nodeAllocatableResourceClaimStatuses"),
    Of(CsiVolumeHealth, "volumeHealth"),
];

const CONTAINER_STATUS: &[Node] =
    &[Under("volumeMounts", &[Each(&[Of(ImageVolumeWithDigest, "volumeStatus")])])];

const SLICE: &[Node] = &[
    Under("devices", &[Each(DEVICE)]),
    Of(DraPartitionableDevicesType, "partitionTypeAttribute"),
    Of(DraOptionalNodeOperations, "skipNodeOperations"),
];

const DEVICE: &[Node] = &[
    Under(
        "attributes",
        &[Each(&[
            Of(DraListTypeAttributes, "bools"),
            Of(DraListTypeAttributes, "ints"),
            Of(DraListTypeAttributes, "strings"),
            Of(DraListTypeAttributes, "versions"),
        ])],
    ),
    Under("consumesCounters", &[Each(&[Of(DraDeviceCompatibilityGroups, "compatibilityGroups")])]),
    Of(DraNodeAllocatableResources, "nodeAllocatableResources"),
];

const CLAIM: &[Node] = &[Under(
    "devices",
    &[Under(
        "requests",
        &[Each(&[
            Under("exactly", &[Of(DraDerivedAttributes, "derivedAttributes")]),
            Under("firstAvailable", &[Each(&[Of(DraDerivedAttributes, "derivedAttributes")])]),
        ])],
    )],
)];

const CLAIM_STATUS: &[Node] = &[Under(
    "allocation",
    &[Under("devices", &[Under("results", &[Each(&[Of(DraOptionalNodeOperations, "skipNodeOperations")])])])],
)];
