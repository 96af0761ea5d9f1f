//! The group `batch`.

pub mod cron_job;
pub mod job;

use crate::kinds::prelude::*;

pub static GROUP: Group = Group {
    name: "batch",
    priority: 17_400,
    versions: &[Version { name: "v1", kinds: &[&cron_job::KIND, &job::KIND] }],
};
