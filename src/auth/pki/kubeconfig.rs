//! The admin's kubeconfig.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::files::{self, Access};
use super::{Error, Pki};

/// The address a client on this machine uses for a server bound to `bound`.
pub fn client_address(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}

/// A kubeconfig with everything embedded, so that it can be copied alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubeconfig {
    content: String,
    server: String,
}

impl Kubeconfig {
    /// For the admin of `pki`, to a server bound to `bound`.
    pub fn admin(pki: &Pki, bound: SocketAddr) -> Self {
        let server = format!("https://{}", client_address(bound));
        let content = format!(
            "apiVersion: v1
kind: Config
clusters:
- name: rowplane
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: kubernetes-admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: kubernetes-admin@rowplane
  context:
    cluster: rowplane
    user: kubernetes-admin
current-context: kubernetes-admin@rowplane
",
            ca = STANDARD.encode(&pki.server_authority),
            certificate = STANDARD.encode(&pki.admin_certificate),
            key = STANDARD.encode(&pki.admin_key),
        );
        Self { content, server }
    }

    /// `https://ADDRESS:PORT`.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Writes the file, readable by its owner alone.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        files::replace(path, self.content.as_bytes(), Access::Owner)
    }

    /// Removes a file that says something else: whoever waits for it must not find an old address.
    pub fn remove_outdated(&self, path: &Path) -> Result<(), Error> {
        match files::try_read(path)? {
            Some(content) if content != self.content.as_bytes() => {
                std::fs::remove_file(path).map_err(|source| Error::Write { path: path.to_owned(), source })
            }
            _ => Ok(()),
        }
    }
}
