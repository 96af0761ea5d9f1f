//! The resources that a Pod requests in total.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::quantity;
use crate::tree::Value;
use crate::{ObjectMap, fields};

/// The resources that can be requested for a whole Pod.
const OF_PODS: [&str; 2] = ["cpu", "memory"];

/// Amounts by resource.
#[derive(Clone, Default)]
pub(in crate::admission) struct Amounts(BTreeMap<String, String>);

impl Amounts {
    pub fn of(list: Option<&ObjectMap>) -> Self {
        let entries = list.into_iter().flatten();
        Self(
            entries
                .filter_map(|(name, amount)| Some((name.to_string(), amount.as_str()?.to_owned())))
                .collect(),
        )
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    fn add(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let sum = self.get(name).and_then(|own| quantity::sum(own, amount).ok());
            self.0.insert(name.clone(), sum.unwrap_or_else(|| amount.clone()));
        }
    }

    fn raise(&mut self, other: &Self) {
        for (name, amount) in &other.0 {
            let more =
                self.get(name).is_none_or(|own| quantity::compare(amount, own) == Ok(Ordering::Greater));
            if more {
                self.0.insert(name.to_string(), amount.clone());
            }
        }
    }
}

/// A Pod's total `requests` or `limits`: the sum of its containers, at least the largest init container, and overridden
/// by the Pod's own.
pub(in crate::admission) fn of_pod(pod: &ObjectMap, list: &str) -> Amounts {
    let amounts =
        |holder: &Value| Amounts::of(holder.get("resources").and_then(|own| own.get(list)?.as_object()));
    let mut total = Amounts::default();
    for container in fields::items(pod, &["spec", "containers"]) {
        total.add(&amounts(container));
    }
    let (mut sidecars, mut initial) = (Amounts::default(), Amounts::default());
    for container in fields::items(pod, &["spec", "initContainers"]) {
        let own = amounts(container);
        if container.get("restartPolicy").is_some_and(|policy| policy == "Always") {
            total.add(&own);
            sidecars.add(&own);
            initial.raise(&sidecars);
        } else {
            let mut together = own;
            together.add(&sidecars);
            initial.raise(&together);
        }
    }
    total.raise(&initial);
    let whole = pod.get("spec").map(amounts).unwrap_or_default();
    for (name, amount) in whole.0.into_iter().filter(|(name, _)| OF_PODS.contains(&&**name)) {
        total.0.insert(name, amount);
    }
    total
}
