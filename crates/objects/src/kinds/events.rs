//! The group `events.k8s.io`.

pub mod conversion;
pub mod event;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "events.k8s.io",
    priority: 17_750,
    versions: &[Version { name: "v1", kinds: &[&event::KIND] }],
};
