//! What other kinds are configured with: data, limits, quotas, accounts, namespaces, nodes.

pub mod config_map;
pub mod limit_range;
pub mod namespace;
pub mod node;
pub mod quota;
pub mod secret;

/// The most that secrets and config maps hold, in bytes.
const DATA_MAX: usize = 1024 * 1024;
