//! The admin's kubeconfig: what tells programs that a server is ready, and where.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::auth::pki::{Admin, Error, Kubeconfig};

/// The admin's kubeconfig, and the file that it is written to.
#[derive(Clone, Debug)]
pub struct Announcement {
    address: SocketAddr,
    /// `None` if our own CA is not trusted, so that there is no admin.
    kubeconfig: Option<Kubeconfig>,
    path: Option<PathBuf>,
}

impl Announcement {
    pub fn new(path: Option<PathBuf>, admin: Option<&Admin>, address: SocketAddr) -> Self {
        let kubeconfig = admin.map(|admin| Kubeconfig::of(admin, address));
        Self { address, kubeconfig, path }
    }

    /// Only now that the store is ours: a second server on the same directory must not get here.
    pub fn withdraw_outdated(&self) -> Result<(), Error> {
        let Some(path) = &self.path else { return Ok(()) };
        Kubeconfig::remove_outdated(path, self.kubeconfig.as_ref())
    }

    pub fn publish(&self) -> Result<(), Error> {
        match (&self.path, &self.kubeconfig) {
            (Some(path), Some(kubeconfig)) => kubeconfig.write(path),
            _ => self.withdraw_outdated(),
        }
    }

    /// The admin has another certificate, or is none any more.
    pub fn renew(&mut self, admin: Option<&Admin>) -> Result<(), Error> {
        self.kubeconfig = admin.map(|admin| Kubeconfig::of(admin, self.address));
        self.publish()
    }

    pub fn kubeconfig(&self) -> Option<&Kubeconfig> {
        self.kubeconfig.as_ref()
    }

    /// Where the kubeconfig is, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.kubeconfig.is_some())
    }
}
