//! `/healthz`, `/livez` and `/readyz`, in the text format of upstream's `healthz` package.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::api::options::query::Query;
use crate::gotext::quote;

/// One of the three health endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// Deprecated upstream, and still asked for by load balancers.
    Healthz,
    /// If this fails, the process should be restarted.
    Livez,
    /// While this fails, no requests should be sent to the server.
    Readyz,
}

impl Endpoint {
    pub const ALL: [Endpoint; 3] = [Endpoint::Healthz, Endpoint::Livez, Endpoint::Readyz];

    pub fn name(self) -> &'static str {
        match self {
            Endpoint::Healthz => "healthz",
            Endpoint::Livez => "livez",
            Endpoint::Readyz => "readyz",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|endpoint| endpoint.name() == name)
    }
}

/// Names of kube-apiserver's checks, and of the checks here that ask the same.
const ALIASES: [(&str, &str); 2] = [("etcd", "datastore"), ("etcd-readiness", "datastore")];

/// Names of kube-apiserver's checks that are not needed here: by the first answer, all that they wait for is done.
/// Callers may exclude them all the same.
const NOT_NEEDED: [&str; 27] = [
    "informer-sync",
    "log",
    "poststarthook/aggregator-reload-proxy-client-cert",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/bootstrap-controller",
    "poststarthook/crd-informer-synced",
    "poststarthook/kube-apiserver-autoregistration",
    "poststarthook/max-in-flight-filter",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/storage-readiness",
];

fn name_here(name: &str) -> &str {
    ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, own)| own)
}

type CheckFn = dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// The time and result of a shared check's last run.
type LastResult = Option<(Instant, Result<(), String>)>;

struct Check {
    name: String,
    endpoints: Vec<Endpoint>,
    run: Box<CheckFn>,
}

/// The named checks of a server, in the order in which they run.
pub struct HealthChecks {
    checks: Vec<Check>,
    /// Lines for operators in the verbose answer of `/readyz`, which change no status.
    warnings: Vec<String>,
}

impl Default for HealthChecks {
    /// Contains upstream's check `ping`, which always passes.
    fn default() -> Self {
        let mut checks = Self { checks: Vec::new(), warnings: Vec::new() };
        checks.add("ping", &Endpoint::ALL, || async { Ok(()) });
        checks
    }
}

impl HealthChecks {
    /// Adds a check. Its error is logged, and sent to clients that request this single check.
    pub fn add<F, R>(&mut self, name: &str, endpoints: &[Endpoint], check: F)
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), String>> + Send + 'static,
    {
        let run = Box::new(move || check().boxed());
        self.checks.push(Check { name: name.to_owned(), endpoints: endpoints.to_vec(), run });
    }

    /// The variant of [`Self::add`] for an expensive check: its result is used for a `period`, and callers that arrive while
    /// it runs share the result. The endpoints can be called by anybody.
    pub fn add_shared<F, R>(&mut self, name: &str, endpoints: &[Endpoint], period: Duration, check: F)
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), String>> + Send + 'static,
    {
        let last: Arc<Mutex<LastResult>> = Arc::default();
        let check = Arc::new(check);
        self.add(name, endpoints, move || {
            let (last, check) = (last.clone(), check.clone());
            async move {
                let mut last = last.lock().await;
                if let Some((at, result)) = &*last
                    && at.elapsed() < period
                {
                    return result.clone();
                }
                let result = check().await;
                *last = Some((Instant::now(), result.clone()));
                result
            }
        });
    }

    /// Adds upstream's check of a post-start hook, which fails until the hook is finished.
    pub fn add_post_start_hook(&mut self, name: &str) -> PostStartHook {
        let hook = PostStartHook::default();
        let finished = hook.clone();
        self.add(&format!("poststarthook/{name}"), &Endpoint::ALL, move || {
            let result = if finished.is_finished() { Ok(()) } else { Err("not finished".to_owned()) };
            async { result }
        });
        hook
    }

    /// Adds a line to the verbose answer of `/readyz`, in the form of upstream's about checks that cannot be excluded.
    pub fn warn(&mut self, text: &str) {
        self.warnings.push(format!("warn: {text}\n"));
    }

    /// Answers `/readyz`, `/readyz/<check>` and the like; `None` if the path does not exist.
    pub async fn answer(&self, path: &str, query: &str) -> Option<Answer> {
        let path = path.strip_prefix('/')?;
        let (endpoint, check) = match path.split_once('/') {
            None => (path, None),
            Some((endpoint, check)) => (endpoint, Some(check)),
        };
        let endpoint = Endpoint::from_name(endpoint)?;
        match check {
            None => Some(self.all(endpoint, &Query::parse(query)).await),
            Some(name) => self.single(endpoint, name).await,
        }
    }

    async fn all(&self, endpoint: Endpoint, query: &Query) -> Answer {
        let name = endpoint.name();
        let mut excluded: BTreeSet<&str> = query.all("exclude").map(name_here).collect();
        let mut lines = String::new();
        let mut healthy = true;
        for check in self.checks.iter().filter(|check| check.endpoints.contains(&endpoint)) {
            if excluded.remove(check.name.as_str()) {
                lines.push_str(&format!("[+]{} excluded: ok\n", check.name));
            } else if let Err(reason) = (check.run)().await {
                tracing::info!(endpoint = name, check = check.name, reason, "health check failed");
                lines.push_str(&format!("[-]{} failed: reason withheld\n", check.name));
                healthy = false;
            } else {
                lines.push_str(&format!("[+]{} ok\n", check.name));
            }
        }
        excluded.retain(|name| !NOT_NEEDED.contains(name));
        if !excluded.is_empty() {
            let names: Vec<String> = excluded.into_iter().map(quote).collect();
            let names = names.join(",");
            lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {names}\n"));
        }
        if endpoint == Endpoint::Readyz {
            lines.extend(self.warnings.iter().map(String::as_str));
        }
        match (healthy, query.get("verbose")) {
            (false, _) => Answer::failed(format!("{lines}{name} check failed\n")),
            (true, None) => Answer::passed("ok".to_owned()),
            (true, Some(_)) => Answer::passed(format!("{lines}{name} check passed\n")),
        }
    }

    async fn single(&self, endpoint: Endpoint, name: &str) -> Option<Answer> {
        let name = name_here(name);
        let check = self.checks.iter().find(|c| c.name == name && c.endpoints.contains(&endpoint))?;
        Some(match (check.run)().await {
            Ok(()) => Answer::passed("ok".to_owned()),
            Err(reason) => Answer::failed(format!("internal server error: {reason}\n")),
        })
    }
}

impl fmt::Debug for HealthChecks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.checks.iter().map(|check| &check.name)).finish()
    }
}

/// A task that must be finished before the server is healthy. Clones are the same hook.
#[derive(Clone, Debug, Default)]
pub struct PostStartHook(Arc<AtomicBool>);

impl PostStartHook {
    pub fn finish(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_finished(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A plain text answer with its status code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: StatusCode,
    pub body: String,
}

impl Answer {
    fn passed(body: String) -> Self {
        Self { status: StatusCode::OK, body }
    }

    fn failed(body: String) -> Self {
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, body }
    }

    fn not_found() -> Self {
        Self { status: StatusCode::NOT_FOUND, body: "404 page not found\n".to_owned() }
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }
}

/// The routes of the three endpoints and of their single checks.
pub fn routes<S>(checks: Arc<HealthChecks>) -> Router<S>
where
    S: Clone + Send + Sync + 'static,
{
    let answer = move |uri: Uri| {
        let checks = checks.clone();
        async move { checks.answer(uri.path(), uri.query().unwrap_or("")).await.unwrap_or_else(Answer::not_found) }
    };
    Endpoint::ALL.into_iter().fold(Router::new(), |router, endpoint| {
        let name = endpoint.name();
        router
            .route(&format!("/{name}"), any(answer.clone()))
            .route(&format!("/{name}/"), any(answer.clone()))
            .route(&format!("/{name}/{{*check}}"), any(answer.clone()))
    })
}
