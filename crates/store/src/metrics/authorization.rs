//! Metrics of authorizers, and of files of settings that are read again.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use metrics::{Counter, Histogram};

use super::catalog::head;
use super::{Registry, labels_of};

pub const DECISIONS: &str = "apiserver_authorization_decisions_total";
pub const WEBHOOK_EVALUATIONS: &str = "apiserver_authorization_webhook_evaluations_total";
pub const WEBHOOK_SECONDS: &str = "apiserver_authorization_webhook_duration_seconds";
pub const WEBHOOK_FAIL_OPEN: &str = "apiserver_authorization_webhook_evaluations_fail_open_total";
pub const CONDITION_ERRORS: &str = "apiserver_authorization_match_condition_evaluation_errors_total";
pub const CONDITION_EXCLUSIONS: &str = "apiserver_authorization_match_condition_exclusions_total";
pub const CONDITION_SECONDS: &str = "apiserver_authorization_match_condition_evaluation_seconds";

/// Upstream's buckets.
pub const WEBHOOK_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
pub const CONDITION_BUCKETS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/// Counts the decisions of an authorizer.
#[derive(Clone, Debug)]
pub struct DecisionMetrics {
    pub allowed: Counter,
    pub denied: Counter,
}

impl DecisionMetrics {
    pub(super) fn new(registry: &Registry, mode: &str, name: &str) -> Self {
        let counter = |decision| {
            registry.counter(DECISIONS, labels_of(&[("type", mode), ("name", name), ("decision", decision)]))
        };
        Self { allowed: counter("allowed"), denied: counter("denied") }
    }
}

/// Records the calls of a webhook that authorizes. Its name comes from a file of settings.
#[derive(Clone)]
pub struct WebhookMetrics {
    registry: Arc<Registry>,
    name: String,
}

impl WebhookMetrics {
    pub(super) fn new(registry: &Arc<Registry>, name: &str) -> Self {
        Self { registry: registry.clone(), name: name.to_owned() }
    }

    pub fn called(&self, result: &'static str, took: Duration) {
        self.of_result(WEBHOOK_EVALUATIONS, result).increment(1);
        let labels = labels_of(&[("name", &self.name), ("result", result)]);
        self.histogram(WEBHOOK_SECONDS, labels).record(took);
    }

    /// A failed call left the decision to others.
    pub fn failed_open(&self, result: &'static str) {
        self.of_result(WEBHOOK_FAIL_OPEN, result).increment(1);
    }

    pub fn conditions_judged(&self, took: Duration) {
        self.histogram(CONDITION_SECONDS, self.of_webhook()).record(took);
    }

    pub fn conditions_failed(&self) {
        self.registry.counter(CONDITION_ERRORS, self.of_webhook()).increment(1);
    }

    pub fn excluded(&self) {
        self.registry.counter(CONDITION_EXCLUSIONS, self.of_webhook()).increment(1);
    }

    fn of_webhook(&self) -> Vec<metrics::Label> {
        labels_of(&[("type", "Webhook"), ("name", &self.name)])
    }

    fn of_result(&self, name: &'static str, result: &'static str) -> Counter {
        self.registry.counter(name, labels_of(&[("name", &self.name), ("result", result)]))
    }

    fn histogram(&self, name: &'static str, labels: Vec<metrics::Label>) -> Histogram {
        self.registry.histogram(name, labels)
    }
}

/// The file of settings that is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReloadedFile {
    Authentication,
    Authorization,
    /// The files of a directory that configure an admission plugin.
    Manifests(&'static str),
}

/// Records what comes of reading a file of settings again.
#[derive(Clone)]
pub struct ReloadMetrics {
    registry: Arc<Registry>,
    file: ReloadedFile,
    /// The hash of the server's id; empty if it has none.
    server: String,
    infos: ConfigInfos,
}

pub const AUTHENTICATION_RELOADS: &str = "apiserver_authentication_config_controller_automatic_reloads_total";
pub const AUTHORIZATION_RELOADS: &str = "apiserver_authorization_config_controller_automatic_reloads_total";
pub const AUTHENTICATION_RELOADED: &str =
    "apiserver_authentication_config_controller_automatic_reload_last_timestamp_seconds";
pub const AUTHORIZATION_RELOADED: &str =
    "apiserver_authorization_config_controller_automatic_reload_last_timestamp_seconds";
pub const MANIFEST_RELOADS: &str = "apiserver_manifest_admission_config_controller_automatic_reloads_total";
pub const MANIFESTS_RELOADED: &str =
    "apiserver_manifest_admission_config_controller_automatic_reload_last_timestamp_seconds";
pub const MANIFESTS_CONFIG: &str = "apiserver_manifest_admission_config_controller_last_config_info";
pub const AUTHENTICATION_CONFIG: &str = "apiserver_authentication_config_controller_last_config_info";
pub const AUTHORIZATION_CONFIG: &str = "apiserver_authorization_config_controller_last_config_info";

impl ReloadMetrics {
    pub(super) fn new(
        registry: &Arc<Registry>,
        infos: &ConfigInfos,
        file: ReloadedFile,
        server: String,
    ) -> Self {
        Self { registry: registry.clone(), file, server, infos: infos.clone() }
    }

    pub fn reloaded(&self, is_success: bool, seconds: f64) {
        let (total, last) = match self.file {
            ReloadedFile::Authentication => (AUTHENTICATION_RELOADS, AUTHENTICATION_RELOADED),
            ReloadedFile::Authorization => (AUTHORIZATION_RELOADS, AUTHORIZATION_RELOADED),
            ReloadedFile::Manifests(_) => (MANIFEST_RELOADS, MANIFESTS_RELOADED),
        };
        let status = if is_success { "success" } else { "failure" };
        let (status, server) = (("status", status), ("apiserver_id_hash", &*self.server));
        let labels = || match self.file {
            ReloadedFile::Manifests(plugin) => labels_of(&[status, ("plugin", plugin), server]),
            _ => labels_of(&[status, server]),
        };
        self.registry.counter(total, labels()).increment(1);
        self.registry.gauge(last, labels()).set(seconds);
    }

    /// The text with this hash is in force.
    pub fn in_force(&self, hash: String) {
        let (name, plugin) = match self.file {
            ReloadedFile::Authentication => (AUTHENTICATION_CONFIG, None),
            ReloadedFile::Authorization => (AUTHORIZATION_CONFIG, None),
            ReloadedFile::Manifests(plugin) => (MANIFESTS_CONFIG, Some(plugin)),
        };
        self.infos.set(ConfigInfo { name, plugin, server: Some(self.server.clone()), hash });
    }
}

/// Hashes of the texts that are in force. They change, so that they are no metrics of the registry, which keeps all.
#[derive(Clone, Debug, Default)]
pub struct ConfigInfos(Arc<Mutex<Vec<ConfigInfo>>>);

/// The text of a kind of settings that is in force, by its hash.
#[derive(Debug)]
pub struct ConfigInfo {
    pub name: &'static str,
    /// The admission plugin that it configures.
    pub plugin: Option<&'static str>,
    /// The hash of the server's id; `None` where it was not known yet.
    pub server: Option<String>,
    pub hash: String,
}

impl ConfigInfos {
    pub fn set(&self, info: ConfigInfo) {
        let mut infos = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        infos.retain(|known| (known.name, known.plugin) != (info.name, info.plugin));
        infos.push(info);
        infos.sort_by_key(|info| (info.name, info.plugin));
    }

    /// Adds the text of `/metrics`. `own` is the hash of the server's id.
    pub fn render(&self, out: &mut String, own: &str) {
        let mut before = "";
        for info in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let ConfigInfo { name, plugin, server, hash } = info;
            if *name != before {
                head(out, name, "gauge");
            }
            before = name;
            let plugin = plugin.map(|plugin| format!("plugin=\"{plugin}\",")).unwrap_or_default();
            let server = server.as_deref().unwrap_or(own);
            let _ = write!(out, "{name}{{{plugin}apiserver_id_hash=\"{server}\",hash=\"{hash}\"}} 1\n\n");
        }
    }
}
