//! Webhooks and policies from files, which are read again when the files change.

use std::sync::Arc;

use super::reloads::{Reload, Reloads, hash, run_when_changed};
use crate::api::Api;
use crate::metrics::{ReloadMetrics, ReloadedFile};
use crate::runtime::Runtime;

/// Follows the directories of all plugins that have one.
pub fn follow(api: &Arc<Api>, reloads: &Reloads, server: Option<&str>, runtime: &Runtime) {
    for (plugin, files) in api.admission.files() {
        let server = server.map(|id| hash(id.as_bytes())).unwrap_or_default();
        let metrics = runtime.metrics.reloads(ReloadedFile::Manifests(plugin), server);
        metrics.reloaded(true, runtime.clock.timestamp().as_millisecond() as f64 / 1000.0);
        metrics.in_force(files.hash());
        let directory = files.directory().to_owned();
        let followed = Arc::new(Followed { api: api.clone(), plugin, metrics, runtime: runtime.clone() });
        let reload: Reload = Arc::new(move || {
            let followed = followed.clone();
            Box::pin(async move {
                // Files are read and expressions compiled, which takes a while.
                if let Err(error) = tokio::task::spawn_blocking(move || followed.reload()).await {
                    tracing::error!(plugin, %error, "reading admission manifests again has failed");
                }
            })
        });
        reloads.add(reload.clone());
        runtime.tasks.run("admission-manifests", run_when_changed(directory, reload));
    }
}

struct Followed {
    api: Arc<Api>,
    plugin: &'static str,
    metrics: ReloadMetrics,
    runtime: Runtime,
}

impl Followed {
    fn reload(&self) {
        let plugin = self.plugin;
        let Some((_, files)) = self.api.admission.files().find(|(name, _)| *name == plugin) else { return };
        let taken = match files.reload() {
            Ok(None) => return,
            Ok(Some(hash)) => Ok(hash),
            Err(why) => Err(why),
        };
        let now = self.runtime.clock.timestamp().as_millisecond() as f64 / 1000.0;
        self.metrics.reloaded(taken.is_ok(), now);
        match taken {
            Ok(hash) => {
                self.metrics.in_force(hash);
                tracing::info!(plugin, "admission manifests have been read again");
            }
            Err(error) => tracing::error!(
                plugin,
                error,
                "admission manifests cannot be used; those before stay in force"
            ),
        }
    }
}
