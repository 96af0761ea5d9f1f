//! What tells people and programs that a server is ready, and where.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::config::ServeConfig;
use crate::auth::pki::{Admin, Error, Kubeconfig, client_url};
use crate::http::discovery::version;

/// The banner and the admin's kubeconfig.
#[derive(Clone, Debug)]
pub struct Announcement {
    address: SocketAddr,
    /// `None` if our own CA is not trusted, so that there is no admin.
    kubeconfig: Option<Kubeconfig>,
    path: PathBuf,
    store: String,
}

impl Announcement {
    pub fn new(config: &ServeConfig, admin: Option<&Admin>, address: SocketAddr) -> Self {
        let kubeconfig = admin.map(|admin| Kubeconfig::of(admin, address));
        Self { address, kubeconfig, path: config.kubeconfig(), store: config.datastore.to_string() }
    }

    /// Only now that the store is ours: a second server on the same directory must not get here.
    pub fn withdraw_outdated(&self) -> Result<(), Error> {
        Kubeconfig::remove_outdated(&self.path, self.kubeconfig.as_ref())
    }

    pub fn publish(&self) -> Result<(), Error> {
        self.write()?;
        tracing::info!(url = client_url(self.address), store = self.store, "ready");
        Ok(())
    }

    /// The admin has another certificate, or is none any more.
    pub fn renew(&mut self, admin: Option<&Admin>) -> Result<(), Error> {
        self.kubeconfig = admin.map(|admin| Kubeconfig::of(admin, self.address));
        self.write()
    }

    fn write(&self) -> Result<(), Error> {
        match &self.kubeconfig {
            Some(kubeconfig) => kubeconfig.write(&self.path),
            None => self.withdraw_outdated(),
        }
    }

    pub fn print(&self) {
        // Whoever started the server may have closed its standard output; that is no reason to end.
        let mut out = std::io::stdout().lock();
        let _ = write!(out, "{}", self.banner()).and_then(|()| out.flush());
    }

    fn banner(&self) -> String {
        let path = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let clients = match self.kubeconfig {
            Some(_) => format!("export KUBECONFIG={}", for_shell(&path.to_string_lossy())),
            None => "  users  of --client-ca-file and --token-auth-file".to_owned(),
        };
        format!(
            "rowplane {} (Kubernetes {})\n  store  {}\n  url    {}\n{clients}\n",
            env!("CARGO_PKG_VERSION"),
            version::release(),
            self.store,
            client_url(self.address),
        )
    }
}

/// Quoted where a shell would otherwise take it apart.
fn for_shell(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+,:@%".contains(c);
    if text.chars().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
