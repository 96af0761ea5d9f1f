//! Connections that the server makes for its clients: to kubelets, Pods and Services one for each request, to extension
//! servers those of a [`pool`]. What goes wrong is told in the words of Go's `net/http`, as clients of kube-apiserver read them.

pub mod call;
pub mod dial;
pub mod exchange;
pub mod pool;
pub mod spdy;
pub mod tunnel;

use std::net::IpAddr;
use std::sync::Arc;

use rustls::ClientConfig;

use crate::egress::Egress;

/// How a server is reached.
#[derive(Clone, Debug)]
pub struct Address {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// Empty for that of the scheme.
    pub port: String,
    /// `None` means plain HTTP.
    pub tls: Option<Arc<ClientConfig>>,
    /// The addresses of the host that were checked, in the order in which they are dialled; empty if the host is to be
    /// looked up when it is dialled. A second look-up may answer differently (CVE-2020-8562).
    pub checked: Vec<IpAddr>,
    /// The way there.
    pub egress: Egress,
}

impl Address {
    /// The scheme of URLs.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// The host of URLs, with the port if there is one.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port.is_empty() { host } else { format!("{host}:{}", self.port) }
    }

    /// The address to connect to, with its port.
    fn socket(&self) -> String {
        match (self.port.as_str(), &self.tls) {
            ("", Some(_)) => format!("{}:443", self.authority()),
            ("", None) => format!("{}:80", self.authority()),
            _ => self.authority(),
        }
    }
}
