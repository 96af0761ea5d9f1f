//! What a Pod requests, as the scheduler counts it (`component-helpers/resource`).

use super::amounts::Amounts;
use crate::api::{ObjectMap, fields};
use crate::tree::Value;

/// `requests` or `limits`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum List {
    Requests,
    Limits,
}

impl List {
    fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Limits => "limits",
        }
    }
}

/// The total of a Pod: the sum of its containers, at least the largest init container together with the sidecars before
/// it, overridden by the Pod's own, and with its overhead.
pub fn of_pod(pod: &ObjectMap, list: List) -> Amounts {
    let running = Running::of(pod);
    let mut total = Amounts::default();
    for container in objects(pod, &["spec", "containers"]) {
        total.add(&running.effective(container, list));
    }
    let (mut sidecars, mut initial) = (Amounts::default(), Amounts::default());
    for container in objects(pod, &["spec", "initContainers"]) {
        if fields::text(container, &["restartPolicy"]) == "Always" {
            let own = running.effective(container, list);
            total.add(&own);
            sidecars.add(&own);
            initial.raise(&sidecars);
        } else {
            let mut together = specified(container, list);
            together.add(&sidecars);
            initial.raise(&together);
        }
    }
    total.raise(&initial);
    let whole = fields::object(pod, "spec").map(|spec| specified(spec, list)).unwrap_or_default();
    for (name, amount) in whole.iter().filter(|(name, _)| is_of_pods(name)) {
        total.set(name, amount);
    }
    let overhead = Amounts::of(fields::at(pod, &["spec", "overhead"]).and_then(Value::as_object));
    for (name, amount) in overhead.iter() {
        let counts =
            list == List::Requests || total.get(name).is_some_and(|own| !super::amounts::is_zero(own));
        if counts {
            total.plus(name, amount);
        }
    }
    total
}

/// Whether a resource can be requested for a whole Pod.
pub fn is_of_pods(name: &str) -> bool {
    matches!(name, "cpu" | "memory") || name.starts_with("hugepages-")
}

/// The amounts of a container's or a Pod's own `resources`.
pub fn specified(holder: &ObjectMap, list: List) -> Amounts {
    Amounts::of(fields::at(holder, &["resources", list.name()]).and_then(Value::as_object))
}

/// What a node has reported of the Pod's containers, which counts while they are resized.
struct Running<'a> {
    pod: &'a ObjectMap,
    /// Whether the resize that is wanted can never be had.
    infeasible: bool,
}

impl<'a> Running<'a> {
    fn of(pod: &'a ObjectMap) -> Self {
        let mut conditions = objects(pod, &["status", "conditions"]);
        let pending = conditions.find(|condition| fields::text(condition, &["type"]) == "PodResizePending");
        let infeasible =
            pending.is_some_and(|condition| fields::text(condition, &["reason"]) == "Infeasible");
        Self { pod, infeasible }
    }

    /// The largest of what a container wants, was given and has.
    fn effective(&self, container: &ObjectMap, list: List) -> Amounts {
        let wanted = specified(container, list);
        let Some(status) = self.status(fields::text(container, &["name"])) else { return wanted };
        if fields::object(status, "resources").is_none() {
            return wanted;
        }
        let mut found = specified(status, list);
        if list == List::Requests {
            found.raise(&Amounts::of(fields::object(status, "allocatedResources")));
        }
        if !self.infeasible {
            found.raise(&wanted);
        }
        found
    }

    fn status(&self, name: &str) -> Option<&'a ObjectMap> {
        let lists = ["initContainerStatuses", "containerStatuses"];
        lists.into_iter().find_map(|list| {
            objects(self.pod, &["status", list]).find(|status| fields::text(status, &["name"]) == name)
        })
    }
}

pub fn objects<'a>(parent: &'a ObjectMap, path: &[&str]) -> impl Iterator<Item = &'a ObjectMap> + use<'a> {
    fields::items(parent, path).iter().filter_map(Value::as_object)
}
