//! Audit: who did what, as a policy wants it recorded, in events of upstream's form.
//!
//! A request that the policy wants gets a [`Record`], which grows while it is answered and is sent to all sinks at each
//! stage. A request that nobody wants costs the evaluation of the policy and nothing else.

mod batch;
mod bounded;
pub mod config;
mod database;
mod delivery;
mod event;
mod head;
mod json;
mod log;
mod policy;
mod record;
mod sink;
mod webhook;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;

use self::config::{Config, DatabaseConfig};
use self::database::Database;
use self::policy::Policy;
use self::sink::{Receipt, Sink};
use self::webhook::Hook;
use crate::auth::authorizer::Attributes;
use crate::egress::Network;
use crate::metrics::AuditMetrics;
use crate::runtime::Runtime;
use crate::storage;
use crate::tasks::Tasks;
use crate::wall_clock::WallClock;
use crate::webhook::KubeconfigError;

pub use self::event::ObjectReference;
pub use self::head::{Head, Sources, address};
pub use self::policy::{Level, Stage};
pub use self::record::{Lost, Record, Storing};

/// The time between two looks at the policy file.
const RELOAD_PERIOD: Duration = Duration::from_secs(10);

/// Why auditing cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Policy(#[from] policy::Error),
    #[error(transparent)]
    Config(#[from] config::Invalid),
    #[error("initializing audit webhook: {0}")]
    Webhook(#[from] KubeconfigError),
    #[error(transparent)]
    Log(#[from] log::OpenError),
}

/// The policy of now, and where events go.
pub struct Audit {
    policy: ArcSwap<Policy>,
    /// `None` means the policy for the database alone.
    policy_file: Option<PathBuf>,
    /// In the order in which they get an event.
    sinks: Vec<Box<dyn Sink>>,
    database_config: Option<DatabaseConfig>,
    /// Set once the database is open.
    database: OnceLock<Arc<Database>>,
    metrics: AuditMetrics,
    clock: WallClock,
    /// The tasks of the sinks, which end after all requests.
    tasks: Tasks,
}

impl Audit {
    /// Starts auditing; `None` if no policy is configured, since nothing is recorded then.
    pub fn start(config: &Config, runtime: &Runtime) -> Result<Option<Arc<Self>>, Error> {
        config.check()?;
        let policy = match (&config.policy_file, config.database) {
            (Some(path), _) => Policy::load(path)?,
            (None, Some(_)) => Policy::of_writes(),
            (None, None) => return Ok(None),
        };
        let metrics = runtime.metrics.audit();
        let tasks = runtime.tasks.group();
        let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
        // As upstream's, these record nothing without a policy.
        let has_policy = config.policy_file.is_some();
        if let Some(log) = config.log.as_ref().filter(|_| has_policy) {
            sinks.push(log::open(log, &runtime.clock, &tasks, &metrics)?);
        }
        if let Some(webhook) = config.webhook.as_ref().filter(|_| has_policy) {
            let hook = Hook::open(webhook, runtime.egresses.to(Network::ControlPlane))?;
            sinks.push(sink::of(hook, &webhook.delivery, &tasks, &metrics));
        }
        let audit = Arc::new(Self {
            policy: ArcSwap::from_pointee(policy),
            policy_file: config.policy_file.clone(),
            sinks,
            database_config: config.database,
            database: OnceLock::new(),
            metrics,
            clock: runtime.clock.clone(),
            tasks,
        });
        if config.policy_file.is_some() {
            runtime.tasks.run("audit-policy", audit.clone().follow_policy());
        }
        Ok(Some(audit))
    }

    /// From now on events go to the database, too, if that is configured.
    pub fn open_database(&self, store: &Arc<dyn storage::Backend>) {
        if let Some(config) = self.database_config {
            let database = Database::start(store.clone(), config, &self.clock, &self.tasks, &self.metrics);
            let _ = self.database.set(Arc::new(database));
        }
    }

    /// The record of a request, if the policy wants one. `head` is asked only then.
    pub fn record(
        self: &Arc<Self>,
        attributes: &Attributes<'_>,
        head: impl FnOnce(Level) -> Head,
    ) -> Option<Arc<Record>> {
        let verdict = self.policy.load().evaluate(attributes);
        self.metrics.level(verdict.map_or(Level::None, |verdict| verdict.level) as usize);
        let verdict = verdict?;
        let object = (!attributes.resource.is_empty()).then(|| ObjectReference::of(attributes));
        Some(Arc::new(Record::new(self.clone(), verdict, head(verdict.level), object)))
    }

    /// Counts a request that is refused since its first event could not be stored.
    pub fn rejected(&self) {
        self.metrics.rejected.increment(1);
    }

    /// Delivers what is buffered, and ends the sinks. No request may be running any more.
    pub async fn close(&self) {
        for sink in self.all_sinks() {
            sink.close().await;
        }
        self.tasks.stop();
        self.tasks.ended().await;
    }

    fn all_sinks(&self) -> impl Iterator<Item = &dyn Sink> {
        let database = self.database.get().map(|database| &**database as &dyn Sink);
        self.sinks.iter().map(|sink| &**sink).chain(database)
    }

    /// Reads the policy file again while the server runs. A file that cannot be used changes nothing, and is logged.
    async fn follow_policy(self: Arc<Self>) {
        loop {
            tokio::time::sleep(RELOAD_PERIOD).await;
            self.reload_policy().await;
        }
    }

    /// Reads the policy file now.
    pub async fn reload_policy(self: &Arc<Self>) {
        let Some(path) = self.policy_file.clone() else { return };
        let read = path.clone();
        let loaded = tokio::task::spawn_blocking(move || Policy::load(&read)).await;
        match loaded {
            Ok(Ok(policy)) if **self.policy.load() != policy => {
                tracing::info!(path = %path.display(), "the audit policy has changed");
                self.policy.store(Arc::new(policy));
            }
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::error!(%error, "the audit policy stays as it was"),
            Err(error) => tracing::error!(%error, "reading the audit policy has failed"),
        }
    }
}
