//! LimitPodHardAntiAffinityTopology: a Pod may keep others away from its Node, and from nothing larger.

use crate::admission::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::fields;
use crate::request::Request;

const HOSTNAME: &str = "kubernetes.io/hostname";
const REQUIRED: [&str; 4] =
    ["spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];

pub(in crate::admission) struct LimitPodHardAntiAffinityTopology;

impl Admission for LimitPodHardAntiAffinityTopology {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation != Operation::Delete && of_kind(request, "", "Pod")
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let terms = attempt.object.as_ref().map(|pod| fields::items(pod, &REQUIRED)).unwrap_or_default();
        let keys = terms.iter().map(|term| term["topologyKey"].as_str().unwrap_or_default());
        Verdict::Now(match keys.into_iter().find(|key| *key != HOSTNAME) {
            None => Ok(()),
            Some(key) => Err(attempt.refused(format!(
                "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOSTNAME} is allowed"
            ))),
        })
    }
}
