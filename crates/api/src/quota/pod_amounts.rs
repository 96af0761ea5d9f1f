//! Requests and limits of a Pod, as the scheduler counts them (`component-helpers/resource`).

use super::amounts::Amounts;
use crate::ObjectMap;
use crate::fields::{self, objects};
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

/// The total of a Pod: the largest of what its containers together want, were given and have, overridden by the Pod's own,
/// and with its overhead. What is wanted does not count if it can never be had.
pub fn of_pod(pod: &ObjectMap, list: List) -> Amounts {
    let running = Running::of(pod);
    let sources: &[Source] = match list {
        List::Requests => &[Source::Wanted, Source::Given, Source::Had],
        List::Limits => &[Source::Wanted, Source::Had],
    };
    let mut total = Amounts::default();
    for source in sources.iter().skip(usize::from(running.infeasible)) {
        total.raise(&together(pod, |container| running.amounts(container, list, *source)));
    }
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

/// The sum of a Pod's containers, and at least the largest init container together with the sidecars before it.
pub fn together(pod: &ObjectMap, amounts: impl Fn(&ObjectMap) -> Amounts) -> Amounts {
    let mut total = Amounts::default();
    for container in objects(pod, &["spec", "containers"]) {
        total.add(&amounts(container));
    }
    let (mut sidecars, mut initial) = (Amounts::default(), Amounts::default());
    for container in objects(pod, &["spec", "initContainers"]) {
        let mut own = amounts(container);
        if fields::text(container, &["restartPolicy"]) == "Always" {
            total.add(&own);
            sidecars.add(&own);
            initial.raise(&sidecars);
        } else {
            own.add(&sidecars);
            initial.raise(&own);
        }
    }
    total.raise(&initial);
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

/// The source of a container's amounts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The spec.
    Wanted,
    /// The requests that the node has set aside for the container: `allocatedResources` of its status.
    Given,
    /// The resources with which the container runs: `resources` of its status.
    Had,
}

/// The report of a node on the Pod's containers, which counts while they are resized.
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

    /// The amounts of a container by one source. Without a report of the node its spec counts, unless the resize is
    /// infeasible.
    fn amounts(&self, container: &ObjectMap, list: List, source: Source) -> Amounts {
        let status = match source {
            Source::Wanted => return specified(container, list),
            Source::Given | Source::Had => self.status(fields::text(container, &["name"])),
        };
        let given = || status.and_then(|status| fields::object(status, "allocatedResources"));
        let had = || {
            status
                .and_then(|status| fields::at(status, &["resources", list.name()]))
                .and_then(Value::as_object)
        };
        let reported = match (source, list) {
            (Source::Had, List::Requests) => had().or_else(given),
            (Source::Had, List::Limits) => had(),
            _ => given(),
        };
        match reported {
            None if !self.infeasible => specified(container, list),
            reported => Amounts::of(reported),
        }
    }

    fn status(&self, name: &str) -> Option<&'a ObjectMap> {
        let lists = ["containerStatuses", "initContainerStatuses"];
        lists.into_iter().find_map(|list| {
            objects(self.pod, &["status", list]).find(|status| fields::text(status, &["name"]) == name)
        })
    }
}
