//! The listener that the clusters of a process share, and its certificates.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::commons::Commons;
use super::config::Https;
use super::credentials::{Served, Shared};
use super::data_dir::{self, Temporary};
use super::error::Error;
use super::network;
use crate::http::router::Router;
use crate::http::server::Ending;
use crate::http::tls::Authorities;
use crate::runtime::Runtime;
use crate::wall_clock::WallClock;
use crate::watched_file::WatchedPaths;

/// The listener of a process.
pub(super) struct Listener {
    pub address: SocketAddr,
    /// The certificates in PEM by which clients verify it.
    pub authority: String,
    /// The path of the first of them.
    pub ca: PathBuf,
    certificates: Arc<Mutex<Shared>>,
    _data_dir: Option<Temporary>,
}

pub(super) async fn listen(
    https: &Https,
    data_dir: Option<PathBuf>,
    router: &Router,
    ending: &Ending,
    commons: &Commons,
    runtime: &Runtime,
) -> Result<Listener, Error> {
    let temporary = data_dir.is_none().then(Temporary::create).transpose()?;
    let dir = data_dir.or_else(|| Some(temporary.as_ref()?.path().to_owned())).unwrap_or_default();
    data_dir::create(&dir)?;
    let sources = network::listener_sources(https, dir.join("pki"));
    // Each cluster has CAs of its own, of which the others learn nothing: the handshake announces none.
    let served = Served::ensure(&sources, &Authorities::default(), https.tls.clone(), &runtime.clock)?;
    let authority = sources.server_authority(&served.serving)?;
    let address = network::serve(https, &served.tls, router.clone(), ending, commons, runtime).await?;
    let ca = sources.server_ca();
    let files = sources.overrides.files().cloned().collect();
    let certificates = Arc::new(Mutex::new(Shared { sources, served }));
    runtime.tasks.run("certificates", renew(certificates.clone(), files, runtime.clock.clone()));
    Ok(Listener { address, authority, ca, certificates, _data_dir: temporary })
}

impl Listener {
    /// Has this name in the listener's own certificate from now on.
    pub async fn answer_to(&self, name: String, clock: &WallClock) {
        {
            let names = &mut lock(&self.certificates).sources.names.extra;
            if names.contains(&name) {
                return;
            }
            names.push(name);
        }
        reload(&self.certificates, clock).await;
    }
}

/// Renews the listener's certificates for ever.
async fn renew(certificates: Arc<Mutex<Shared>>, files: Vec<PathBuf>, clock: WallClock) {
    let mut watched = WatchedPaths::of(files).await;
    loop {
        reload(&certificates, &clock).await;
        watched.changed().await;
    }
}

async fn reload(certificates: &Arc<Mutex<Shared>>, clock: &WallClock) {
    let (certificates, now) = (certificates.clone(), clock.now());
    let reading = tokio::task::spawn_blocking(move || lock(&certificates).reload(now));
    if let Err(error) = reading.await {
        tracing::error!(%error, "reading the listener's certificates has failed");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
