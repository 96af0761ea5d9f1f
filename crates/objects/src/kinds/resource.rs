//! The group `resource.k8s.io`.

pub mod device_class;
pub mod device_taint_rule;
pub mod name;
pub mod resource_claim;
pub mod resource_claim_template;
pub mod resource_slice;
pub mod shared;
pub mod taint;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "resource.k8s.io",
    priority: 16_200,
    versions: &[Version {
        name: "v1",
        kinds: &[
            &device_class::KIND,
            &device_taint_rule::KIND,
            &resource_claim::KIND,
            &resource_claim_template::KIND,
            &resource_slice::KIND,
        ],
    }],
};
