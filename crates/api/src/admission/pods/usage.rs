//! The resources that a Pod's spec requests in total.

use crate::quota::amounts::Amounts;
use crate::quota::pod_amounts::{List, specified, together};
use crate::{ObjectMap, fields};

/// The resources that can be requested for a whole Pod.
const OF_PODS: [&str; 2] = ["cpu", "memory"];

/// A Pod's total `requests` or `limits`: the sum of its containers, at least the largest init container, and overridden
/// by the Pod's own.
pub(in crate::admission) fn of_pod(pod: &ObjectMap, list: List) -> Amounts {
    let mut total = together(pod, |container| specified(container, list));
    let whole = fields::object(pod, "spec").map(|spec| specified(spec, list)).unwrap_or_default();
    for (name, amount) in whole.iter().filter(|(name, _)| OF_PODS.contains(name)) {
        total.set(name, amount);
    }
    total
}
