//! LimitRanger: default requests and limits of containers, and bounds for them (`plugin/pkg/admission/limitranger`).

#[cfg(test)]
mod tests;

use super::pods::usage;
use super::view::{self, View};
use super::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::quantity::{nanos, units};
use crate::quota::amounts::Amounts;
use crate::quota::pod_amounts::List;
use crate::request::Request;
use crate::schema::names::Gvr;
use crate::tree::Value;
use crate::{ObjectMap, fields, meta, metadata, metadata_mut};

const RANGES: Gvr = Gvr::fixed("v1", "limitranges");
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// Larger amounts are compared in whole units.
const MAX_MILLI: i64 = i64::MAX / 1000;
const NANOS_PER_MILLI: i128 = 1_000_000;

pub(super) struct LimitRanger;

impl Admission for LimitRanger {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        match operation {
            Operation::Create => of_kind(request, "", "Pod") || of_kind(request, "", "PersistentVolumeClaim"),
            Operation::Update => is_resize(request) || of_kind(request, "", "PersistentVolumeClaim"),
            Operation::Delete | Operation::Connect => false,
        }
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        match is_for_pod(attempt) && !is_leaving(attempt) {
            true => view::complete(attempt, complete_pod),
            false => Verdict::Now(Ok(())),
        }
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        match is_for_pod(attempt) {
            _ if is_leaving(attempt) => Verdict::Now(Ok(())),
            true => view::check(attempt, check_pod),
            false => view::check(attempt, check_claim),
        }
    }
}

fn is_resize(request: &Request<'_>) -> bool {
    request.subresource == "resize" && request.target.resource.definition.kind_name() == "Pod"
}

fn is_for_pod(attempt: &Attempt<'_>) -> bool {
    of_kind(attempt.request, "", "Pod") || is_resize(attempt.request)
}

/// Whether the stored object is being deleted.
fn is_leaving(attempt: &Attempt<'_>) -> bool {
    attempt.old.and_then(metadata).is_some_and(meta::is_terminating)
}

/// Sets the defaults of every LimitRange in the namespace.
fn complete_pod(view: &View<'_>, pod: &mut ObjectMap) -> Result<(), String> {
    for range in view.beside(&RANGES) {
        complete_by(&range, pod);
    }
    Ok(())
}

/// Sets the defaults of one LimitRange.
fn complete_by(range: &ObjectMap, pod: &mut ObjectMap) {
    let (mut requests, mut limits) = (ObjectMap::new(), ObjectMap::new());
    for limit in of_type(range, "Container") {
        extend(&mut requests, limit, "defaultRequest");
        extend(&mut limits, limit, "default");
    }
    let mut notes = Vec::new();
    for (list, what) in [("containers", "container"), ("initContainers", "init container")] {
        let spec = fields::object_mut(pod, "spec");
        let Some(Value::Array(containers)) = spec.get_mut(list) else { continue };
        for container in containers.iter_mut().filter_map(Value::as_object_mut) {
            let name = fields::text(container, &["name"]).to_owned();
            let resources = fields::object_mut(container, "resources");
            let set_limits = fill(resources, "limits", &limits);
            let set_requests = fill(resources, "requests", &requests);
            for (set, kind) in [(set_requests, "request"), (set_limits, "limit")] {
                if !set.is_empty() {
                    notes.push(format!("{} {kind} for {what} {name}", set.join(", ")));
                }
            }
        }
    }
    if notes.is_empty() {
        return;
    }
    let text = format!("LimitRanger plugin set: {}", notes.join("; "));
    let annotations = fields::object_mut(metadata_mut(pod), "annotations");
    annotations.insert(ANNOTATION, text.into());
}

fn check_pod(view: &View<'_>, pod: &ObjectMap) -> Result<(), String> {
    view.beside(&RANGES).iter().try_for_each(|range| told(problems_of_pod(range, pod)))
}

fn problems_of_pod(range: &ObjectMap, pod: &ObjectMap) -> Vec<String> {
    let mut wrong = Vec::new();
    for limit in of_type(range, "Container") {
        for list in ["containers", "initContainers"] {
            for container in fields::items(pod, &["spec", list]) {
                let resources = container.get("resources").and_then(Value::as_object);
                let amounts = |name| Amounts::of(resources.and_then(|own| fields::object(own, name)));
                check(
                    &Bounded { limit, requests: amounts("requests"), limits: amounts("limits") },
                    &mut wrong,
                );
            }
        }
    }
    for limit in of_type(range, "Pod") {
        let (requests, limits) = (usage::of_pod(pod, List::Requests), usage::of_pod(pod, List::Limits));
        check(&Bounded { limit, requests, limits }, &mut wrong);
    }
    wrong
}

fn check_claim(view: &View<'_>, claim: &ObjectMap) -> Result<(), String> {
    view.beside(&RANGES).iter().try_for_each(|range| told(problems_of_claim(range, claim)))
}

fn problems_of_claim(range: &ObjectMap, claim: &ObjectMap) -> Vec<String> {
    let mut wrong = Vec::new();
    for limit in of_type(range, "PersistentVolumeClaim") {
        let asked = fields::at(claim, &["spec", "resources", "requests"]).and_then(Value::as_object);
        let bounded = Bounded { limit, requests: Amounts::of(asked), limits: Amounts::default() };
        bounded.each("min", |name, bound| bounded.min(name, bound), &mut wrong);
        bounded.each("max", |name, bound| bounded.max_request(name, bound), &mut wrong);
    }
    wrong
}

fn of_type<'a>(range: &'a ObjectMap, kind: &'a str) -> impl Iterator<Item = &'a ObjectMap> {
    let limits = fields::items(range, &["spec", "limits"]).iter().filter_map(Value::as_object);
    limits.filter(move |limit| fields::text(limit, &["type"]) == kind)
}

fn extend(into: &mut ObjectMap, limit: &ObjectMap, from: &str) {
    for (name, amount) in fields::object(limit, from).into_iter().flatten() {
        into.insert(name.clone(), amount.clone());
    }
}

/// Sets missing amounts, and returns the names of what was missing, sorted.
fn fill(resources: &mut ObjectMap, list: &str, defaults: &ObjectMap) -> Vec<String> {
    let mut set = Vec::new();
    for (name, amount) in defaults {
        let own = fields::object_mut(resources, list);
        if !own.contains_key(name) {
            own.insert(name.clone(), amount.clone());
            set.push(name.to_string());
        }
    }
    if !set.is_empty() {
        fields::object_mut(resources, list).sort_keys();
    }
    set.sort_unstable();
    set
}

fn check(bounded: &Bounded<'_>, wrong: &mut Vec<String>) {
    bounded.each("min", |name, bound| bounded.min(name, bound), wrong);
    bounded.each("max", |name, bound| bounded.max(name, bound), wrong);
    bounded.each("maxLimitRequestRatio", |name, bound| bounded.ratio(name, bound), wrong);
}

fn told(mut wrong: Vec<String>) -> Result<(), String> {
    let mut known = std::collections::HashSet::new();
    wrong.retain(|text| known.insert(text.clone()));
    match &*wrong {
        [] => Ok(()),
        [one] => Err(one.clone()),
        several => Err(format!("[{}]", several.join(", "))),
    }
}

/// The amounts of a container or a Pod, and the limits that apply to them.
struct Bounded<'a> {
    limit: &'a ObjectMap,
    requests: Amounts,
    limits: Amounts,
}

impl Bounded<'_> {
    fn each(&self, bounds: &str, check: impl Fn(&str, &str) -> Result<(), String>, wrong: &mut Vec<String>) {
        for (name, bound) in fields::object(self.limit, bounds).into_iter().flatten() {
            wrong.extend(check(name, bound.as_str().unwrap_or_default()).err());
        }
    }

    fn kind(&self) -> &str {
        fields::text(self.limit, &["type"])
    }

    fn min(&self, name: &str, bound: &str) -> Result<(), String> {
        let rule = format!("minimum {name} usage per {} is {bound}", self.kind());
        let Some(request) = self.requests.get(name) else {
            return Err(format!("{rule}.  No request is specified"));
        };
        let limit = self.limits.get(name);
        let [asked, most, least] = numbers([request, limit.unwrap_or("0"), bound]);
        if asked < least {
            return Err(format!("{rule}, but request is {request}"));
        }
        match limit {
            Some(limit) if most < least => Err(format!("{rule}, but limit is {limit}")),
            _ => Ok(()),
        }
    }

    fn max(&self, name: &str, bound: &str) -> Result<(), String> {
        let rule = format!("maximum {name} usage per {} is {bound}", self.kind());
        let Some(limit) = self.limits.get(name) else {
            return Err(format!("{rule}.  No limit is specified"));
        };
        let request = self.requests.get(name);
        let [asked, most, largest] = numbers([request.unwrap_or("0"), limit, bound]);
        if most > largest {
            return Err(format!("{rule}, but limit is {limit}"));
        }
        match request {
            Some(request) if asked > largest => Err(format!("{rule}, but request is {request}")),
            _ => Ok(()),
        }
    }

    fn max_request(&self, name: &str, bound: &str) -> Result<(), String> {
        let rule = format!("maximum {name} usage per {} is {bound}", self.kind());
        let Some(request) = self.requests.get(name) else {
            return Err(format!("{rule}.  No request is specified"));
        };
        let [asked, _, largest] = numbers([request, "0", bound]);
        if asked > largest { Err(format!("{rule}, but request is {request}")) } else { Ok(()) }
    }

    fn ratio(&self, name: &str, bound: &str) -> Result<(), String> {
        let rule = format!("{name} max limit to request ratio per {} is {bound}", self.kind());
        let texts =
            [self.requests.get(name), self.limits.get(name), Some(bound)].map(|text| text.unwrap_or("0"));
        let [asked, most, _] = numbers(texts);
        if asked == 0 {
            return Err(format!("{rule}, but no request is specified or request is 0"));
        }
        if most == 0 {
            return Err(format!("{rule}, but no limit is specified or limit is 0"));
        }
        let found = most as f64 / asked as f64;
        let bound = nanos(bound).unwrap_or_default();
        // The bound is rounded up to thousandths, or to whole units if it is too large for that.
        let exceeds = match units(bound) {
            whole if whole > MAX_MILLI => found > whole as f64,
            _ => found * 1000.0 > milli(bound) as f64,
        };
        if exceeds { Err(format!("{rule}, but provided ratio is {found:.6}")) } else { Ok(()) }
    }
}

/// The amounts in thousandths, or in whole units if one of them is too large for that.
fn numbers(texts: [&str; 3]) -> [i64; 3] {
    let amounts = texts.map(|text| nanos(text).unwrap_or_default());
    let whole = amounts.map(units);
    if whole.iter().any(|number| *number > MAX_MILLI) {
        return whole;
    }
    amounts.map(milli)
}

/// Rounded away from zero.
fn milli(nanos: i128) -> i64 {
    let milli = nanos / NANOS_PER_MILLI + (nanos % NANOS_PER_MILLI).signum();
    i64::try_from(milli).unwrap_or(i64::MAX)
}
