//! Warnings about the Pods of a namespace that its new, stricter policy would refuse.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use super::PodSecurity;
use super::checks::violations;
use super::policy::Rule;
use crate::admission::Attempt;
use crate::cache::{Range, State};
use crate::gotext::quote;
use crate::long_work;
use crate::schema::names::Gvr;
use crate::tree::Value;
use crate::{ObjectMap, fields};

const PODS: Gvr = Gvr::fixed("v1", "pods");
const MOST: usize = 3000;
const LONGEST: Duration = Duration::from_secs(1);

impl PodSecurity {
    /// The warnings about the Pods of a namespace that a rule would refuse.
    pub(super) fn existing_pods(
        &self,
        attempt: &Attempt<'_>,
        namespace: &str,
        rule: Rule,
        state: &State,
    ) -> Vec<String> {
        long_work::run(|| {
            let pods = self.pods(attempt, namespace, state);
            warnings(&pods, namespace, rule)
        })
    }

    /// The Pods, one of each controller before all others of these. More of them are decoded than are checked only to
    /// find the controllers.
    fn pods(&self, attempt: &Attempt<'_>, namespace: &str, state: &State) -> Vec<ObjectMap> {
        let Some(pods) = attempt.cluster.resources.get(&PODS) else { return Vec::new() };
        let (objects, range) = (state.objects(pods.id), Range::of(Some(namespace)));
        let (mut first, mut later, mut controllers) = (Vec::new(), Vec::new(), HashSet::new());
        for pod in objects.range(&range).filter_map(|object| pods.decode(object).ok()) {
            if fields::object(&pod, "spec").is_some_and(|spec| self.is_exempt_by_runtime_class(spec)) {
                continue;
            }
            match controller(&pod) {
                Some(uid) if !controllers.insert(uid.to_owned()) => later.push(pod),
                _ => first.push(pod),
            }
        }
        first.append(&mut later);
        first
    }
}

fn controller(pod: &ObjectMap) -> Option<&str> {
    let mut owners = fields::items(pod, &["metadata", "ownerReferences"]).iter();
    owners.find(|owner| owner["controller"] == Value::Bool(true))?["uid"].as_str()
}

/// The Pods with the same reasons: the first name, and how many there are.
struct Alike<'a> {
    name: &'a str,
    number: usize,
}

fn warnings(pods: &[ObjectMap], namespace: &str, rule: Rule) -> Vec<String> {
    let begun = Instant::now();
    let mut by_reason: BTreeMap<String, Alike<'_>> = BTreeMap::new();
    let mut checked = pods.len().min(MOST);
    for (index, pod) in pods.iter().take(MOST).enumerate() {
        let Some(spec) = fields::object(pod, "spec") else { continue };
        let reasons = violations(rule, fields::object(pod, "metadata"), spec).into_iter();
        let reasons: Vec<String> = reasons.map(|violation| violation.reason).collect();
        if !reasons.is_empty() {
            let name = fields::text(pod, &["metadata", "name"]);
            let alike = by_reason.entry(reasons.join(", ")).or_insert(Alike { name, number: 0 });
            alike.name = alike.name.min(name);
            alike.number += 1;
        }
        if begun.elapsed() > LONGEST {
            checked = index + 1;
            break;
        }
    }
    let mut warnings = Vec::new();
    if checked < pods.len() {
        let all = pods.len();
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {checked} of {all} existing pods"
        ));
    }
    if !by_reason.is_empty() {
        let namespace = quote(namespace);
        warnings.push(format!(
            "existing pods in namespace {namespace} violate the new PodSecurity enforce level \"{rule}\""
        ));
    }
    let mut told: Vec<String> = by_reason
        .into_iter()
        .map(|(reasons, Alike { name, number })| match number {
            1 => format!("{name}: {reasons}"),
            2 => format!("{name} (and 1 other pod): {reasons}"),
            more => format!("{name} (and {} other pods): {reasons}", more - 1),
        })
        .collect();
    told.sort_unstable();
    warnings.append(&mut told);
    warnings
}
