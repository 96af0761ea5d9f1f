//! The configuration that a plugin is made with.

use std::path::PathBuf;

use crate::tree::Value;

/// The configuration of one plugin.
#[derive(Clone, Debug)]
pub struct Configuration {
    pub content: Value,
    /// The file that it stands in.
    pub file: PathBuf,
}

/// How long Pods stay on a Node that is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TolerationSeconds {
    pub not_ready: i64,
    pub unreachable: i64,
}

impl Default for TolerationSeconds {
    fn default() -> Self {
        Self { not_ready: 300, unreachable: 300 }
    }
}
