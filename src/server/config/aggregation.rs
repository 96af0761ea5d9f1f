//! Settings of the way to extension API servers.

use std::path::PathBuf;

/// How requests are passed on to extension API servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregation {
    pub client: ProxyClient,
    /// Whether a redirect is no answer.
    pub rejects_redirects: bool,
}

impl Default for Aggregation {
    fn default() -> Self {
        Self { client: ProxyClient::Own, rejects_redirects: true }
    }
}

/// The certificate that is shown to extension API servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyClient {
    /// A certificate that a CA of the server's own issues, which other servers are told of; none without a port.
    Own,
    Files {
        certificate: PathBuf,
        key: PathBuf,
    },
    None,
}
