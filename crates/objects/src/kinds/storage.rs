//! The group `storage.k8s.io`.

pub mod csi_driver;
pub mod csi_node;
pub mod csi_storage_capacity;
pub mod storage_class;
pub mod volume_attachment;
pub mod volume_attributes_class;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "storage.k8s.io",
    priority: 16_800,
    versions: &[Version {
        name: "v1",
        kinds: &[
            &csi_driver::KIND,
            &csi_node::KIND,
            &csi_storage_capacity::KIND,
            &storage_class::KIND,
            &volume_attachment::KIND,
            &volume_attributes_class::KIND,
        ],
    }],
};
