//! Fields of features that are off, in the status of pods.

use crate::kinds::behavior::gated_fields::Feature::{
    CsiVolumeHealth, DraNodeAllocatableResources, ImageVolumeWithDigest,
};
use crate::kinds::behavior::gated_fields::Node;
use crate::kinds::behavior::gated_fields::Node::{Each, Of, Under};

pub const STATUS: &[Node] = &[
    Under("containerStatuses", &[Each(CONTAINER_STATUS)]),
    Under("initContainerStatuses", &[Each(CONTAINER_STATUS)]),
    Under("ephemeralContainerStatuses", &[Each(CONTAINER_STATUS)]),
    Of(DraNodeAllocatableResources, "nodeAllocatableResourceClaimStatuses"),
    Of(CsiVolumeHealth, "volumeHealth"),
];

const CONTAINER_STATUS: &[Node] =
    &[Under("volumeMounts", &[Each(&[Of(ImageVolumeWithDigest, "volumeStatus")])])];
