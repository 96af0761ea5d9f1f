//! The quality of service class of a pod (`pkg/apis/core/v1/helper/qos`).

use std::cmp::Ordering;

use crate::kinds::core::pod::resources;
use crate::kinds::prelude::*;
use crate::{fields, quantity};

/// The resources that determine the class.
const COMPUTE: [&str; 2] = ["cpu", "memory"];

pub fn class(pod: &ObjectMap) -> &'static str {
    let own = fields::at(pod, &["spec", "resources"]);
    if let Some(own) = own.filter(|own| LISTS.iter().any(|list| says_something(own, list))) {
        return class_of(Some(own));
    }
    let containers = ["initContainers", "containers"];
    let containers = containers.iter().flat_map(|list| fields::items(pod, &["spec", list]));
    agreed(containers.map(|container| class_of(container.get("resources")))).unwrap_or(BEST_EFFORT)
}

const BEST_EFFORT: &str = "BestEffort";

const BURSTABLE: &str = "Burstable";

const LISTS: [&str; 2] = ["requests", "limits"];

fn says_something(resources: &Value, list: &str) -> bool {
    let amounts = resources.get(list).and_then(Value::as_object);
    amounts.is_some_and(|amounts| amounts.keys().any(|name| resources::is_of_pods(name)))
}

/// The class that all have, or `Burstable` if they differ; `None` if there are none.
fn agreed(mut classes: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let first = classes.next()?;
    Some(if classes.all(|class| class == first) { first } else { BURSTABLE })
}

fn class_of(resources: Option<&Value>) -> &'static str {
    let amount = |list: &str, name: &str| {
        let amount = resources.and_then(|resources| resources.get(list)?.get(name)?.as_str());
        amount.unwrap_or("0")
    };
    let of = |name: &&str| {
        let (request, limit) = (amount("requests", name), amount("limits", name));
        let is = |one, other| quantity::compare(one, other) == Ok(Ordering::Equal);
        match (is(request, limit), is(request, "0")) {
            (false, _) => BURSTABLE,
            (true, true) => BEST_EFFORT,
            (true, false) => "Guaranteed",
        }
    };
    agreed(COMPUTE.iter().map(of)).unwrap_or(BEST_EFFORT)
}
