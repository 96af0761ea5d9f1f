//! The admin's kubeconfig, whose appearance tells other programs that a server is ready, and at which address.

use std::path::{Path, PathBuf};

use crate::auth::pki::{Admin, Error, Kubeconfig};

/// The admin's kubeconfig, and the path of its file.
#[derive(Clone, Debug)]
pub struct Announcement {
    url: String,
    /// `None` if the server's own CA is not trusted, so that there is no admin.
    kubeconfig: Option<Kubeconfig>,
    path: Option<PathBuf>,
}

impl Announcement {
    pub fn new(path: Option<PathBuf>, admin: Option<&Admin>, url: String) -> Self {
        let kubeconfig = admin.map(|admin| Kubeconfig::of(admin, &url));
        Self { url, kubeconfig, path }
    }

    /// Removes an outdated kubeconfig. Called only once the store is opened: a second server on the same directory
    /// fails before that.
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

    /// Writes the kubeconfig again after the admin's certificate has changed, or removes it if there is no admin any
    /// more.
    pub fn renew(&mut self, admin: Option<&Admin>) -> Result<(), Error> {
        self.kubeconfig = admin.map(|admin| Kubeconfig::of(admin, &self.url));
        self.publish()
    }

    pub fn kubeconfig(&self) -> Option<&Kubeconfig> {
        self.kubeconfig.as_ref()
    }

    /// The path of the kubeconfig, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref().filter(|_| self.kubeconfig.is_some())
    }
}
