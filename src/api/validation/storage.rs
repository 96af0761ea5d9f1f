//! Volumes, and what provides them.

pub mod attachment;
pub mod capacity;
pub mod class;
pub mod csi_driver;
pub mod csi_node;
pub mod volume;
