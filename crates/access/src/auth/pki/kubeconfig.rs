//! The admin's kubeconfig.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::files::{self, Access};
use super::{Admin, Error};

/// The address that a client on this machine uses for a server bound to `bound`.
fn client_address(bound: SocketAddr) -> SocketAddr {
    let ip = match bound.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, bound.port())
}

/// The URL that a client on this machine uses for a server bound to `bound`.
pub fn client_url(bound: SocketAddr) -> String {
    format!("https://{}", client_address(bound))
}

/// A kubeconfig with embedded certificates, so that it can be copied as a single file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kubeconfig {
    content: String,
}

impl Kubeconfig {
    /// The admin's kubeconfig for the server at this URL.
    pub fn of(admin: &Admin, server: &str) -> Self {
        Self::of_user("kubernetes-admin", admin, server)
    }

    /// The kubeconfig of a user with this name in the file.
    pub(super) fn of_user(user: &str, admin: &Admin, server: &str) -> Self {
        let content = format!(
            "apiVersion: v1
kind: Config
clusters:
- name: rowplane
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {user}@rowplane
  context:
    cluster: rowplane
    user: {user}
current-context: {user}@rowplane
",
            ca = STANDARD.encode(&admin.server_authority),
            certificate = STANDARD.encode(&admin.certificate),
            key = STANDARD.encode(&admin.key),
        );
        Self { content }
    }

    pub fn text(&self) -> &str {
        &self.content
    }

    /// Writes the file, readable only by its owner.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        files::replace(path, self.content.as_bytes(), Access::Owner)
    }

    /// Removes a file that differs from `kubeconfig`: a program that waits for the file must not find an old address.
    pub fn remove_outdated(path: &Path, kubeconfig: Option<&Self>) -> Result<(), Error> {
        match files::try_read(path)? {
            Some(content)
                if Some(&*content) != kubeconfig.map(|kubeconfig| kubeconfig.content.as_bytes()) =>
            {
                std::fs::remove_file(path).map_err(|source| Error::Write { path: path.to_owned(), source })
            }
            _ => Ok(()),
        }
    }
}
