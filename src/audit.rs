//! Audit: who did what, as a policy wants it recorded, in events of upstream's form.
//!
//! A request that the policy wants gets a [`Record`], which grows while it is answered and is sent to all backends at each
//! stage. A request that nobody wants costs the evaluation of the policy and nothing else.

mod backend;
mod batch;
pub mod config;
mod event;
mod log;
mod policy;
mod record;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use self::backend::{Backend, Receipt};
use self::config::Config;
use self::log::Log;
use self::policy::Policy;
use crate::auth::authorizer::Attributes;
use crate::metrics::AuditMetrics;
use crate::runtime::Runtime;
use crate::tasks::Tasks;

pub use self::event::{Head, ObjectReference, source_ips, user_agent};
pub use self::policy::{Level, Stage};
pub use self::record::{Lost, Record, Stored};

/// The time between two looks at the policy file.
const RELOAD_PERIOD: Duration = Duration::from_secs(10);

/// Why auditing cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Policy(#[from] policy::Error),
    #[error(transparent)]
    Config(#[from] config::Invalid),
    #[error(transparent)]
    Log(#[from] log::OpenError),
}

/// The policy of now, and where events go.
pub struct Audit {
    policy: ArcSwap<Policy>,
    policy_file: PathBuf,
    /// In the order in which they get an event.
    backends: Vec<Box<dyn Backend>>,
    metrics: AuditMetrics,
    /// The tasks of the backends, which end after all requests.
    tasks: Tasks,
}

impl Audit {
    /// Starts auditing; `None` if no policy is configured, since nothing is recorded then.
    pub fn start(config: &Config, runtime: &Runtime) -> Result<Option<Arc<Self>>, Error> {
        config.check()?;
        let Some(policy_file) = &config.policy_file else { return Ok(None) };
        let policy = Policy::load(policy_file)?;
        let metrics = runtime.metrics.audit();
        let tasks = runtime.tasks.group();
        let mut backends: Vec<Box<dyn Backend>> = Vec::new();
        if let Some(log) = &config.log {
            let delivery = Log::open(log, &tasks)?;
            backends.push(backend::of(delivery, &log.delivery, &tasks, &metrics));
        }
        let audit = Arc::new(Self {
            policy: ArcSwap::from_pointee(policy),
            policy_file: policy_file.clone(),
            backends,
            metrics,
            tasks,
        });
        runtime.tasks.run("audit-policy", audit.clone().follow_policy());
        Ok(Some(audit))
    }

    /// The record of a request, if the policy wants one. `head` is asked only then.
    pub fn record(
        self: &Arc<Self>,
        attributes: &Attributes<'_>,
        head: impl FnOnce(Level) -> Head,
    ) -> Option<Arc<Record>> {
        let verdict = self.policy.load().evaluate(attributes);
        self.metrics.level(verdict.map_or(Level::None, |verdict| verdict.level).as_str());
        let verdict = verdict?;
        let object = (!attributes.resource.is_empty()).then(|| ObjectReference::of(attributes));
        Some(Arc::new(Record::new(self.clone(), verdict, head(verdict.level), object)))
    }

    /// Counts a request that is refused since its first event could not be stored.
    pub fn rejected(&self) {
        self.metrics.rejected.increment(1);
    }

    /// Delivers what is buffered, and ends the backends. No request may be running any more.
    pub async fn close(&self) {
        for backend in &self.backends {
            backend.close().await;
        }
        self.tasks.stop();
        self.tasks.ended().await;
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
        let path = self.policy_file.clone();
        let loaded = tokio::task::spawn_blocking(move || Policy::load(Path::new(&path))).await;
        match loaded {
            Ok(Ok(policy)) if **self.policy.load() != policy => {
                tracing::info!(path = %self.policy_file.display(), "the audit policy has changed");
                self.policy.store(Arc::new(policy));
            }
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::error!(%error, "the audit policy stays as it was"),
            Err(error) => tracing::error!(%error, "reading the audit policy has failed"),
        }
    }
}
