//! Files of settings that are read again while the server runs. One that cannot be used changes nothing, and is logged.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use futures_util::future::BoxFuture;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;

use crate::metrics::{ReloadMetrics, ReloadedFile};
use crate::runtime::Runtime;
use crate::watched_file::{WatchedFile, WatchedPaths};

/// Reads something again, if it has changed.
pub type Reload = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// Uses the new text of a file.
pub type Take = Box<dyn FnMut(Vec<u8>) -> BoxFuture<'static, Result<(), Unusable>> + Send>;

/// Everything that is read again at somebody's wish. Clones share it.
#[derive(Clone, Default)]
pub struct Reloads(Arc<std::sync::Mutex<Vec<Reload>>>);

/// A file of settings and the text that the server was started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsFile {
    pub path: PathBuf,
    pub text: Vec<u8>,
}

/// Why a new text is not in force.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// It never will be.
    #[error("{0}")]
    Wrong(String),
    /// It may be later, so that it is tried again.
    #[error("{0}")]
    NotYet(String),
}

impl From<String> for Unusable {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

impl Reloads {
    pub fn add(&self, reload: Reload) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(reload);
    }

    /// Reads everything now.
    pub async fn run(&self) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for reload in all {
            reload().await;
        }
    }

    /// Follows a file. `take` is never called twice at once.
    pub fn follow(
        &self,
        file: &SettingsFile,
        kind: ReloadedFile,
        server: Option<&str>,
        runtime: &Runtime,
        take: Take,
    ) {
        let metrics = runtime.metrics.reloads(kind, server.map(|id| hash(id.as_bytes())).unwrap_or_default());
        metrics.in_force(hash(&file.text));
        let watched = WatchedFile::new(file.path.clone(), file.text.clone());
        let followed = Followed { watched, take, metrics, runtime: runtime.clone(), kind };
        let followed = Arc::new(Mutex::new(followed));
        let reload: Reload = Arc::new(move || {
            let followed = followed.clone();
            Box::pin(async move { followed.lock().await.reload().await })
        });
        self.add(reload.clone());
        let name = match kind {
            ReloadedFile::Authentication => "authentication-config",
            ReloadedFile::Authorization => "authorization-config",
            ReloadedFile::Manifests(_) => "admission-manifests",
        };
        runtime.tasks.run(name, run_when_changed(file.path.clone(), reload));
    }
}

/// Runs a reload for ever: now, when the file changes, and now and then.
pub async fn run_when_changed(path: PathBuf, reload: Reload) {
    let mut watched = WatchedPaths::of(vec![path]).await;
    loop {
        // What has changed before the first look is found, too.
        reload().await;
        watched.changed().await;
    }
}

struct Followed {
    watched: WatchedFile,
    take: Take,
    metrics: ReloadMetrics,
    runtime: Runtime,
    kind: ReloadedFile,
}

impl Followed {
    async fn reload(&mut self) {
        let taken = match self.watched.read().await {
            Ok(None) => return,
            Ok(Some(text)) => {
                let hash = hash(&text);
                (self.take)(text).await.map(|()| hash)
            }
            Err(error) => Err(Unusable::NotYet(error.to_string())),
        };
        let now = self.runtime.clock.timestamp().as_millisecond() as f64 / 1000.0;
        self.metrics.reloaded(taken.is_ok(), now);
        match taken {
            Ok(hash) => {
                self.metrics.in_force(hash);
                tracing::info!(file = ?self.kind, "settings have been read again");
            }
            Err(error) => {
                if matches!(error, Unusable::NotYet(_)) {
                    self.watched.forget();
                }
                tracing::error!(file = ?self.kind, %error, "settings cannot be used; those before stay in force");
            }
        }
    }
}

/// The hash of a file, as upstream's metrics show it.
pub fn hash(text: &[u8]) -> String {
    if text.is_empty() {
        return String::new();
    }
    let digest = Sha256::digest(text);
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}
