//! Changes while a server runs: of its configuration, and of the answers of key management services.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::configuration::{Configuration, Reload, hash_of};
use super::kms::Kms;
use super::transformer::Transformers;
use super::{Encryption, Shared};
use crate::storage::ResourceId;

/// Upstream's interval between two looks at the file.
const INTERVAL: Duration = Duration::from_secs(60);
/// The pause before a file that could not be used is tried again, at first.
const RETRY: Duration = Duration::from_secs(1);
/// For how long the services of a new configuration may take to be healthy, at least.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two looks at their health.
const LOOK: Duration = Duration::from_millis(100);

/// When the file is looked at next.
pub struct Reloading {
    due: Instant,
    retry: Duration,
}

impl Default for Reloading {
    fn default() -> Self {
        Self { due: Instant::now() + INTERVAL, retry: RETRY }
    }
}

impl Transformers {
    /// Asks those services for their status whose turn it is. Returns whether values that could not be opened may be
    /// readable now.
    pub async fn probe(&self, is_due: impl Fn(&Kms) -> bool) -> bool {
        let due = self.services.iter().filter(|kms| is_due(kms));
        join_all(due.map(|kms| kms.probe())).await.contains(&true)
    }

    /// Upstream's text of all services that are not healthy.
    async fn check(&self) -> Result<(), String> {
        let results = join_all(self.services.iter().map(|kms| kms.check())).await;
        let failed = results
            .into_iter()
            .enumerate()
            .filter_map(|(index, result)| Some(format!("kms-provider-{index}: {}", result.err()?)));
        let failed: Vec<String> = failed.collect();
        match &*failed {
            [] => Ok(()),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    /// How long the services of this configuration may take together, twice.
    fn patience(&self) -> Duration {
        2 * self.services.iter().map(|kms| kms.timeout()).sum::<Duration>()
    }
}

impl Encryption {
    /// Whether the health of key management services is told.
    pub fn has_health(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| {
            shared.config.reload == Reload::Yes || !shared.current.load().services.is_empty()
        })
    }

    /// The health of all key management services, not older than upstream has it.
    pub async fn check(&self) -> Result<(), String> {
        match &self.0 {
            Some(shared) => shared.current.load_full().check().await,
            None => Ok(()),
        }
    }

    /// Follows the file and the services. `reread` is called with the resources whose rows are to be read again: some of
    /// them could not be opened before, or may not be readable any more.
    pub async fn follow(self, reread: impl AsyncFn(Vec<ResourceId>)) {
        let Some(shared) = self.0 else { return std::future::pending().await };
        loop {
            tokio::time::sleep_until(shared.due().await.into()).await;
            let now = Instant::now();
            shared.look(now, &reread).await;
        }
    }

    /// Does at once what [`Encryption::follow`] does after a while.
    pub async fn look_now(&self, reread: impl AsyncFn(Vec<ResourceId>)) {
        let Some(shared) = &self.0 else { return };
        shared.reloading.lock().await.due = Instant::now();
        let now = Instant::now();
        let recovered = shared.current.load_full().probe(|_| true).await;
        if recovered {
            shared.reread(&reread).await;
        }
        shared.look(now, &reread).await;
    }
}

impl Shared {
    async fn due(&self) -> Instant {
        let services = self.current.load().services.iter().map(|kms| kms.due()).min();
        let file = match self.config.reload {
            Reload::Yes => Some(self.reloading.lock().await.due),
            Reload::No => None,
        };
        let far = Instant::now() + INTERVAL;
        services.into_iter().chain(file).fold(far, Instant::min)
    }

    async fn look(&self, now: Instant, reread: &impl AsyncFn(Vec<ResourceId>)) {
        let recovered = self.current.load_full().probe(|kms| kms.due() <= now).await;
        let reloaded = self.config.reload == Reload::Yes && self.reload_when_due(now).await;
        if recovered || reloaded {
            self.reread(reread).await;
        }
    }

    async fn reread(&self, reread: &impl AsyncFn(Vec<ResourceId>)) {
        let doubtful = std::mem::take(&mut *self.doubtful.lock().unwrap_or_else(PoisonError::into_inner));
        if !doubtful.is_empty() {
            reread(doubtful.into_iter().collect()).await;
        }
    }

    /// Has the resources of a configuration read again. A key that has come or gone decides what is readable of them, and
    /// the cache holds plain objects.
    fn mark_all_of(&self, transformers: &Transformers) {
        let known = self.resources.read().unwrap_or_else(PoisonError::into_inner);
        let configured = known.iter().filter(|(_, resource)| transformers.of(resource.name()).is_some());
        self.doubtful.lock().unwrap_or_else(PoisonError::into_inner).extend(configured.map(|(id, _)| *id));
    }

    /// Returns whether there is another configuration now.
    async fn reload_when_due(&self, now: Instant) -> bool {
        let mut reloading = self.reloading.lock().await;
        if reloading.due > now {
            return false;
        }
        let reloaded = self.reload().await;
        match &reloaded {
            Ok(_) => *reloading = Reloading::default(),
            Err(error) => {
                let file = self.config.file.display();
                tracing::error!(%error, %file, "error processing encryption config file; the configuration of before is used");
                self.runtime.metrics.encryption_reloaded(false);
                reloading.due = Instant::now() + reloading.retry;
                reloading.retry = (2 * reloading.retry).min(INTERVAL);
            }
        }
        reloaded.unwrap_or_default()
    }

    async fn reload(&self) -> Result<bool, String> {
        let path = self.config.file.clone();
        let read = move || {
            let text = std::fs::read(&path).map_err(|error| {
                let path = crate::gotext::quote(&path.display().to_string());
                format!("error reading encryption provider configuration file {path}: {error}")
            })?;
            let hash = hash_of(&text);
            Ok::<_, String>((hash, Configuration::parse(&text, &path, Reload::Yes)))
        };
        let read = tokio::task::spawn_blocking(read).await.map_err(|died| died.to_string())?;
        let (hash, configuration) = read?;
        if hash == self.current.load().hash {
            return Ok(false);
        }
        let next = Transformers::new(configuration?, &self.runtime);
        let until = Instant::now() + next.patience().max(PATIENCE);
        while let Err(error) = next.check().await {
            if Instant::now() >= until {
                return Err(format!("health check for new transformers failed: {error}"));
            }
            tokio::time::sleep(LOOK).await;
        }
        self.runtime.metrics.encryption_in_force(&next.hash);
        // Whoever still uses the old transformers holds them.
        let old = self.current.swap(Arc::new(next));
        self.mark_all_of(&old);
        self.mark_all_of(&self.current.load());
        self.runtime.metrics.encryption_reloaded(true);
        tracing::info!(file = %self.config.file.display(), "loaded new encryption config content");
        Ok(true)
    }
}
