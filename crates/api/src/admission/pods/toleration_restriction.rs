//! PodTolerationRestriction: a namespace says what its Pods tolerate, and what they may tolerate.

use super::runtime_class::{includes, merged};
use super::tolerations::list_mut;
use crate::admission::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::cache::State;
use crate::error::Error;
use crate::request::Request;
use crate::schema::names::Gvr;
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

const NAMESPACES: Gvr = Gvr::fixed("v1", "namespaces");
const DEFAULTS: &str = "scheduler.alpha.kubernetes.io/defaultTolerations";
const ALLOWED: &str = "scheduler.alpha.kubernetes.io/tolerationsWhitelist";

/// The plugin with its configuration, which counts where a namespace says nothing.
#[derive(Default)]
pub(in crate::admission) struct PodTolerationRestriction {
    defaults: Vec<Value>,
    allowed: Vec<Value>,
}

impl PodTolerationRestriction {
    /// Reads a Configuration.
    pub fn new(content: Option<&Value>) -> Self {
        let Some(content) = content else { return Self::default() };
        let list = |name: &str| content[name].as_array().cloned().unwrap_or_default();
        Self { defaults: list("default"), allowed: list("whitelist") }
    }

    fn complete(&self, attempt: &mut Attempt<'_>, state: &State) -> Result<(), Error> {
        let mut added = match attempt.operation {
            Operation::Create => {
                of_namespace(attempt, state, DEFAULTS)?.unwrap_or_else(|| self.defaults.clone())
            }
            Operation::Update | Operation::Delete | Operation::Connect => Vec::new(),
        };
        let pod = attempt.object_mut()?;
        if !is_best_effort(pod) {
            let key = "node.kubernetes.io/memory-pressure";
            added.push(json!({"key": key, "operator": "Exists", "effect": "NoSchedule"}));
        }
        if !added.is_empty() {
            let tolerations = list_mut(fields::object_mut(pod, "spec"), "tolerations");
            let all: Vec<Value> = tolerations.drain(..).chain(added).collect();
            *tolerations = merged(&all);
        }
        self.check(attempt, state)
    }

    /// Upstream answers with 500, since its error is no API status.
    fn check(&self, attempt: &Attempt<'_>, state: &State) -> Result<(), Error> {
        let Some(pod) = &attempt.object else { return Ok(()) };
        let tolerations = fields::items(pod, &["spec", "tolerations"]);
        if tolerations.is_empty() {
            return Ok(());
        }
        let own = of_namespace(attempt, state, ALLOWED)?;
        let scope = if own.is_some() { "namespace" } else { "cluster" };
        let allowed = own.as_ref().unwrap_or(&self.allowed);
        let is_allowed = |toleration: &Value| allowed.iter().any(|other| includes(other, toleration));
        match allowed.is_empty() || tolerations.iter().all(is_allowed) {
            true => Ok(()),
            false => Err(Error::Internal(format!(
                "pod tolerations (possibly merged with namespace default tolerations) conflict with its {scope} \
                 whitelist"
            ))),
        }
    }
}

impl Admission for PodTolerationRestriction {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation != Operation::Delete && of_kind(request, "", "Pod")
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        let cluster = attempt.cluster;
        match self.complete(attempt, &cluster.cache.any()) {
            Err(_) if cluster.store.backend().shared() => Verdict::Later(Box::pin(async move {
                let fresh = cluster.cache.fresh().await?;
                self.complete(attempt, &fresh)
            })),
            verdict => Verdict::Now(verdict),
        }
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let cluster = attempt.cluster;
        match self.check(attempt, &cluster.cache.any()) {
            Err(_) if cluster.store.backend().shared() => Verdict::Later(Box::pin(async move {
                let fresh = cluster.cache.fresh().await?;
                self.check(attempt, &fresh)
            })),
            verdict => Verdict::Now(verdict),
        }
    }
}

/// The tolerations in an annotation of the namespace; `None` if it has none.
fn of_namespace(attempt: &Attempt<'_>, state: &State, annotation: &str) -> Result<Option<Vec<Value>>, Error> {
    let Some(namespaces) = attempt.cluster.resources.get(&NAMESPACES) else { return Ok(None) };
    let Some(found) = state.get(namespaces.id, "", attempt.target.namespace) else { return Ok(None) };
    let namespace = namespaces.decode(&found)?;
    match fields::at(&namespace, &["metadata", "annotations", annotation]).and_then(Value::as_str) {
        None => Ok(None),
        Some("") => Ok(Some(Vec::new())),
        Some(text) => match serde_json::from_str::<Value>(text) {
            Ok(Value::Array(tolerations)) => Ok(Some(tolerations)),
            Ok(_) => Err(Error::Internal(format!("the annotation {annotation} is no list"))),
            Err(error) => Err(Error::Internal(error.to_string())),
        },
    }
}

/// Whether a Pod requests nothing and limits nothing.
fn is_best_effort(pod: &ObjectMap) -> bool {
    let asks = |holder: &Value| {
        ["requests", "limits"].iter().any(|list| {
            let amounts = holder["resources"][*list].as_object();
            amounts.into_iter().flatten().any(|(name, amount)| {
                matches!(name.as_str(), "cpu" | "memory")
                    && amount.as_str().and_then(crate::quantity::nanos).is_some_and(|amount| amount > 0)
            })
        })
    };
    let mut containers =
        ["containers", "initContainers"].into_iter().flat_map(|list| fields::items(pod, &["spec", list]));
    !pod.get("spec").is_some_and(asks) && !containers.any(asks)
}
