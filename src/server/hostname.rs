//! The name of this host, by which replicas know each other.

use super::config::IdentityConfig;
use super::error::Error;
use crate::identity::ServerIdentity;
use crate::kinds::behavior::format;

/// Read from a file on Linux, or from a variable that shells often set, to avoid a dependency for one system call.
pub fn hostname() -> Option<String> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    kernel.or_else(|| std::env::var("HOSTNAME").ok()).map(|name| name.trim().to_owned())
}

/// The server's identity. The override was validated when it was parsed.
pub(super) fn identity(config: &IdentityConfig) -> Result<ServerIdentity, Error> {
    if let Some(hostname) = &config.hostname_override {
        return Ok(ServerIdentity::of_host(hostname));
    }
    let hostname = hostname().unwrap_or_default();
    let refused = if hostname.is_empty() {
        Some("it is empty".to_owned())
    } else {
        format::label_value(&hostname).into_iter().next()
    };
    match refused {
        Some(why) => Err(Error::Hostname(hostname, why)),
        None => Ok(ServerIdentity::of_host(&hostname)),
    }
}
