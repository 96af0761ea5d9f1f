//! The store of etcd's API, which is opened when it is needed first.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rowplane_etcd::engine::{self, Etcd};
use sha2::{Digest as _, Sha256};

use super::command_line::Config;
use crate::runtime::Runtime;
use crate::server::commons::Commons;
use crate::server::mark;
use crate::storage::{Backend, HighWaterMark};
use crate::tasks::Failure;

/// How long the end of a store is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

type Opened = (Arc<dyn Backend>, Arc<HighWaterMark>);

/// A store that may be open.
#[derive(Clone)]
pub struct Opening {
    config: Arc<Config>,
    commons: Commons,
    runtime: Runtime,
    opened: Arc<Mutex<Option<Opened>>>,
}

impl Opening {
    pub fn new(config: Arc<Config>) -> Self {
        Self { config, commons: Commons::default(), runtime: Runtime::default(), opened: Arc::default() }
    }

    /// The runtime of the store.
    pub fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// A function that opens the store; the error is one line.
    pub fn opener(&self) -> impl Fn() -> BoxFuture<'static, Result<Etcd, String>> + Send + Sync + 'static {
        let this = self.clone();
        move || {
            let this = this.clone();
            async move { this.open().await.map_err(|error| error.to_string()) }.boxed()
        }
    }

    async fn open(&self) -> Result<Etcd, Box<dyn std::error::Error + Send + Sync>> {
        let Config { datastore, data_dir, .. } = &*self.config;
        std::fs::create_dir_all(data_dir)?;
        // What a broken attempt has begun ends with it.
        let runtime = self.runtime.clone();
        let backend = self.commons.open_store(datastore, None, runtime.clock.clone()).await?;
        let mark = mark::load(datastore, None, Some(data_dir));
        backend.hold_to(&mark).await?;
        mark::repair_clock(&*backend, &mark).await?;
        mark::end_when_broken(&runtime.tasks, &backend);
        let config = engine::Config { member_id: member_id(&self.config), ..self.config.engine.clone() };
        let etcd = Etcd::open(backend.clone(), mark.clone(), &runtime, config).await?;
        runtime.tasks.run("high-water-mark", mark::keep_saved(mark.clone()));
        tracing::info!(store = %datastore, "the store is open");
        *self.opened.lock().unwrap_or_else(PoisonError::into_inner) = Some((backend, mark));
        Ok(etcd)
    }

    /// Completes if the server cannot go on.
    pub async fn failed(&self) -> Failure {
        self.runtime.tasks.failed().await
    }

    /// Ends what works on the store, and closes it.
    pub async fn close(self) {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((backend, mark)) = opened else { return };
        let close = async {
            self.runtime.tasks.stop();
            self.runtime.tasks.ended().await;
            mark::save(&mark).await;
            backend.close().await;
        };
        if tokio::time::timeout(PATIENCE, close).await.is_err() {
            tracing::warn!("not everything has ended in time");
        }
    }
}

/// The number of this server among others on the same store: the same after a restart, and never 0.
fn member_id(config: &Config) -> u64 {
    let host = crate::server::hostname::hostname().unwrap_or_default();
    let urls = config.clients.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let digest = Sha256::digest(format!("{host}\n{}\n{urls}", config.name));
    let bytes = digest.first_chunk::<8>().copied().unwrap_or_default();
    u64::from_be_bytes(bytes).max(1)
}
