//! The quality of service class of a pod (`pkg/apis/core/v1/helper/qos`).

use std::cmp::Ordering;

use crate::fields::ObjectMap;
use crate::tree::{Text, Value};
use crate::{fields, quantity};

/// The resources that determine the class.
const COMPUTE: [&str; 2] = ["cpu", "memory"];

pub fn class(pod: &ObjectMap) -> &'static str {
    let mut needs = Needs { requests: ObjectMap::new(), limits: ObjectMap::new(), limited: true };
    match fields::at(pod, &["spec", "resources"]).and_then(Value::as_object) {
        Some(resources) => needs.add(resources),
        None => {
            let nothing = ObjectMap::new();
            for list in ["containers", "initContainers"] {
                for container in fields::items(pod, &["spec", list]) {
                    let resources = container.get("resources").and_then(Value::as_object);
                    needs.add(resources.unwrap_or(&nothing));
                }
            }
        }
    }
    needs.class()
}

struct Needs {
    requests: ObjectMap,
    limits: ObjectMap,
    /// Whether all containers have limits of both resources.
    limited: bool,
}

impl Needs {
    fn add(&mut self, resources: &ObjectMap) {
        let amounts = |name| fields::object(resources, name).into_iter().flatten();
        sum_up(&mut self.requests, amounts("requests"));
        sum_up(&mut self.limits, amounts("limits"));
        let limits = fields::object(resources, "limits");
        let is_limited = |name: &&str| limits.and_then(|limits| limits.get(name)).is_some_and(is_positive);
        self.limited &= COMPUTE.iter().all(is_limited);
    }

    fn class(&self) -> &'static str {
        if self.requests.is_empty() && self.limits.is_empty() {
            return "BestEffort";
        }
        let same = self.requests.iter().all(|(name, request)| {
            let limit = self.limits.get(name);
            limit.and_then(|limit| compare(limit, request)) == Some(Ordering::Equal)
        });
        if self.limited && same && self.requests.len() == self.limits.len() {
            "Guaranteed"
        } else {
            "Burstable"
        }
    }
}

fn sum_up<'a>(sums: &mut ObjectMap, amounts: impl Iterator<Item = (&'a Text, &'a Value)>) {
    let counted = |(name, amount): &(&Text, &Value)| COMPUTE.contains(&name.as_str()) && is_positive(amount);
    for (name, amount) in amounts.filter(counted) {
        let sum = match (sums.get(name).and_then(Value::as_str), amount.as_str()) {
            (Some(sum), Some(amount)) => quantity::sum(sum, amount).ok().map(Value::from),
            _ => None,
        };
        sums.insert(name.clone(), sum.unwrap_or_else(|| amount.clone()));
    }
}

fn is_positive(amount: &Value) -> bool {
    compare(amount, &Value::from("0")) == Some(Ordering::Greater)
}

fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    quantity::compare(one.as_str()?, other.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use crate::tree::json;

    use super::*;

    fn class_of(spec: Value) -> &'static str {
        class(json!({"spec": spec}).as_object().expect("an object"))
    }

    #[test]
    fn classes() {
        let with = |resources: &[Value]| {
            let containers: Vec<Value> =
                resources.iter().map(|resources| json!({"resources": resources})).collect();
            class_of(json!({"containers": containers}))
        };
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let full = json!({"requests": both, "limits": {"cpu": "1000m", "memory": "1024Mi"}});
        assert_eq!(with(&[json!({}), json!({"requests": {"cpu": "0", "disk": "1"}})]), "BestEffort");
        assert_eq!(with(&[full.clone(), full.clone()]), "Guaranteed");
        assert_eq!(with(&[full.clone(), json!({})]), "Burstable");
        assert_eq!(with(&[json!({"requests": {"cpu": "1"}})]), "Burstable");
        assert_eq!(with(&[json!({"requests": {"cpu": "1", "memory": "1"}, "limits": both})]), "Burstable");
        assert_eq!(class_of(json!({"containers": [{}], "resources": full})), "Guaranteed");
    }
}
