//! The group `autoscaling`.

pub mod conversion;
pub mod horizontal_pod_autoscaler;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "autoscaling",
    priority: 17_500,
    versions: &[
        Version { name: "v1", kinds: &[&horizontal_pod_autoscaler::V1] },
        Version { name: "v2", kinds: &[&horizontal_pod_autoscaler::V2] },
    ],
};
