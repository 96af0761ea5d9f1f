//! PodNodeSelector: the Pods of a namespace run only on the nodes that the namespace names.

use crate::admission::view::{self, View};
use crate::admission::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::request::Request;
use crate::schema::names::Gvr;
use crate::tree::Value;
use crate::{ObjectMap, fields};

const NAMESPACES: Gvr = Gvr::fixed("v1", "namespaces");
const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";
const DEFAULT: &str = "clusterDefaultNodeSelector";

/// The plugin with its configuration: a selector for all namespaces, and what the Pods of a namespace may select.
#[derive(Default)]
pub(in crate::admission) struct PodNodeSelector {
    selectors: ObjectMap,
}

impl PodNodeSelector {
    /// Reads the member `podNodeSelectorPluginConfig` of a configuration.
    pub fn new(content: Option<&Value>) -> Self {
        let Some(content) = content else { return Self::default() };
        Self { selectors: content["podNodeSelectorPluginConfig"].as_object().cloned().unwrap_or_default() }
    }

    fn complete(&self, view: &View<'_>, pod: &mut ObjectMap) -> Result<(), String> {
        let wanted = self.wanted(view)?;
        check_conflict(&wanted, pod)?;
        if !wanted.is_empty() {
            let selector = fields::object_mut(fields::object_mut(pod, "spec"), "nodeSelector");
            for (key, value) in wanted {
                if !selector.contains_key(&key) {
                    selector.insert(key, value.into());
                }
            }
            selector.sort_keys();
        }
        self.check(view, pod)
    }

    fn check(&self, view: &View<'_>, pod: &ObjectMap) -> Result<(), String> {
        check_conflict(&self.wanted(view)?, pod)?;
        let allowed = parse(fields::text(&self.selectors, &[view.namespace()]))?;
        let selector = fields::at(pod, &["spec", "nodeSelector"]).and_then(Value::as_object);
        let is_allowed =
            |key: &str, value: &Value| allowed.iter().any(|(own, only)| own == key && value == &**only);
        match allowed.is_empty() || selector.into_iter().flatten().all(|(key, value)| is_allowed(key, value))
        {
            true => Ok(()),
            false => Err("pod node label selector labels conflict with its namespace whitelist".to_owned()),
        }
    }

    /// The node selector of the namespace, or else that of the configuration.
    fn wanted(&self, view: &View<'_>) -> Result<Vec<(String, String)>, String> {
        let namespace = view.get(&NAMESPACES, view.namespace()).unwrap_or_default();
        let own = fields::at(&namespace, &["metadata", "annotations", ANNOTATION]).and_then(Value::as_str);
        parse(own.unwrap_or_else(|| fields::text(&self.selectors, &[DEFAULT])))
    }
}

impl Admission for PodNodeSelector {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation == Operation::Create && of_kind(request, "", "Pod")
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        view::complete(attempt, |view, pod| self.complete(view, pod))
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        view::check(attempt, |view, pod| self.check(view, pod))
    }
}

fn check_conflict(wanted: &[(String, String)], pod: &ObjectMap) -> Result<(), String> {
    let selector = fields::at(pod, &["spec", "nodeSelector"]).and_then(Value::as_object);
    let differs = |(key, value): &(String, String)| {
        selector.and_then(|selector| selector.get(key)).is_some_and(|own| own != &**value)
    };
    match wanted.iter().any(differs) {
        true => Err("pod node label selector conflicts with its namespace node label selector".to_owned()),
        false => Ok(()),
    }
}

/// Pairs `key=value`, separated by commas.
fn parse(selector: &str) -> Result<Vec<(String, String)>, String> {
    let mut pairs = Vec::new();
    for pair in selector.split(',').filter(|_| !selector.is_empty()) {
        let Some((key, value)) = pair.split_once('=').filter(|(_, value)| !value.contains('=')) else {
            return Err(format!("invalid selector: {pair}"));
        };
        pairs.push((key.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(pairs)
}
