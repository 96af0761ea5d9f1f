//! Names and amounts of resources: what containers ask for and may have.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::causes::{Cause, CauseReason};
use crate::kinds::behavior::format::{dns1123_label, label_key};
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::quantity;
use crate::tree::Value;

pub const HUGE_PAGES: &str = "hugepages-";

const REQUESTS: &str = "requests.";

const STANDARD_CONTAINER: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Names without a domain of resources that are measured.
const MEASURED: [&str; 11] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "storage",
    "requests.storage",
];

/// Names without a domain of resources that are counted in whole objects.
const COUNTED: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// An amount in billionths; zero if the amount is absent or cannot be parsed.
pub fn nanos(at: &At<'_, '_>) -> i128 {
    quantity::nanos(&amount_text(at.value())).unwrap_or_default()
}

/// An amount as Go prints it.
pub fn shown(at: &At<'_, '_>) -> String {
    quantity::normalize(&amount_text(at.value())).unwrap_or_else(|_| "0".to_owned())
}

fn amount_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text.trim()),
        other => Cow::Owned(other.to_string()),
    }
}

pub fn is_huge_pages(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

pub fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

pub fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with(REQUESTS) && label_key(&format!("{REQUESTS}{name}")).is_empty()
}

pub fn allows_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

fn is_standard(name: &str) -> bool {
    MEASURED.contains(&name)
        || COUNTED.contains(&name)
        || is_huge_pages(name)
        || name.starts_with("requests.hugepages-")
}

/// Whether the name is that of a standard resource that a quota may limit.
pub fn is_standard_quota(name: &str) -> bool {
    name != "storage" && is_standard(name)
}

/// A name of any resource.
pub fn name(at: &At<'_, '_>, name: &str, errors: &mut Errors) -> bool {
    let before = errors.len();
    errors.invalid_each(at, name, label_key(name));
    if errors.len() == before && !name.contains('/') && !is_standard(name) {
        errors.invalid(at, name, "must be a standard resource type or fully qualified");
    }
    errors.len() == before
}

/// A name of a resource that a container has.
pub fn container_name(at: &At<'_, '_>, resource: &str, errors: &mut Errors) {
    name(at, resource, errors);
    if !resource.contains('/') {
        if !STANDARD_CONTAINER.contains(&resource) && !is_huge_pages(resource) {
            errors.invalid(at, resource, "must be a standard resource for containers");
        }
    } else if !is_native(resource) && !is_extended(resource) {
        errors.invalid(at, resource, "doesn't follow extended resource name standard");
    }
}

/// A name of a resource that a quota limits.
pub fn quota_name(at: &At<'_, '_>, resource: &str, errors: &mut Errors) {
    name(at, resource, errors);
    if !resource.contains('/') && !is_standard_quota(resource) {
        errors.invalid(at, resource, "must be a standard resource for quota");
    }
}

fn pod_name(at: &At<'_, '_>, resource: &str, errors: &mut Errors) {
    if name(at, resource, errors) && !matches!(resource, "cpu" | "memory") && !is_huge_pages(resource) {
        errors.not_supported(at, resource, &["cpu", HUGE_PAGES, "memory"]);
    }
}

/// An amount of a resource: not below zero, and whole where things are counted.
pub fn amount(at: &At<'_, '_>, name: &str, errors: &mut Errors) {
    let nanos = nanos(at);
    if nanos < 0 {
        errors.invalid(at, &*shown(at), "must be greater than or equal to 0");
    }
    // Upstream looks at thousandths, rounded up.
    let millis = nanos / 1_000_000 + (nanos % 1_000_000).signum();
    if (COUNTED.contains(&name) || is_extended(name)) && millis % 1000 != 0 {
        errors.invalid(at, &*shown(at), "must be an integer");
    }
}

pub fn positive(at: &At<'_, '_>, errors: &mut Errors) {
    if nanos(at) <= 0 {
        errors.invalid(at, &*shown(at), "must be greater than zero");
    }
}

/// The owner of resource requirements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    Container,
    Pod,
}

/// `resources` of a container or a pod. `claims` are the names of the pod's claims.
pub fn requirements(at: &At<'_, '_>, owner: Owner, claims: &BTreeSet<&str>, errors: &mut Errors) {
    let (limits, requests) = (at.get("limits"), at.get("requests"));
    for (resource, limit) in limits.entries() {
        one(&limit, resource, owner, errors);
        huge_pages(&limit, resource, errors);
    }
    for (resource, request) in requests.entries() {
        one(&request, resource, owner, errors);
        within_limit(&request, resource, (&requests, &limits), errors);
        huge_pages(&request, resource, errors);
    }
    let any = |is: fn(&str) -> bool| {
        [limits, requests].iter().any(|list| list.entries().any(|(resource, _)| is(resource)))
    };
    if any(is_huge_pages) && !any(|resource| matches!(resource, "cpu" | "memory")) {
        errors.forbidden(at, "HugePages require cpu or memory");
    }
    claim_names(&at.get("claims"), claims, errors);
}

fn one(at: &At<'_, '_>, resource: &str, owner: Owner, errors: &mut Errors) {
    match owner {
        Owner::Container => container_name(at, resource, errors),
        Owner::Pod => pod_name(at, resource, errors),
    }
    amount(at, resource, errors);
}

fn within_limit(
    request: &At<'_, '_>,
    resource: &str,
    (requests, limits): (&At<'_, '_>, &At<'_, '_>),
    errors: &mut Errors,
) {
    let limit = limits.key(resource);
    let overcommit = allows_overcommit(resource);
    if !limit.is_set() {
        if !overcommit {
            errors.required(limits, "Limit must be set for non overcommitable resources");
        }
        return;
    }
    let relation = match nanos(request).cmp(&nanos(&limit)) {
        std::cmp::Ordering::Equal => return,
        _ if !overcommit => "equal to",
        std::cmp::Ordering::Greater => "less than or equal to",
        std::cmp::Ordering::Less => return,
    };
    let why = format!("must be {relation} {resource} limit of {}", shown(&limit));
    errors.invalid(requests, &*shown(request), &why);
}

fn huge_pages(at: &At<'_, '_>, resource: &str, errors: &mut Errors) {
    let Some(size) = resource.strip_prefix(HUGE_PAGES) else { return };
    let size = quantity::nanos(size).filter(|size| *size > 0 && size % 1_000_000_000 == 0);
    let divides = |size| quantity::units(nanos(at)) % quantity::units(size) == 0;
    if !size.is_some_and(divides) {
        let shown = shown(at);
        errors.invalid(at, &*shown, &format!("{shown} is not positive integer multiple of {resource}"));
    }
}

fn claim_names(claims: &At<'_, '_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    // The requests of each claim, and how often it is named.
    let mut seen: BTreeMap<&str, (BTreeSet<&str>, usize)> = BTreeMap::new();
    for claim in claims.items() {
        let (name, request) = (claim.get("name").text(), claim.get("request").text());
        if name.is_empty() {
            errors.required(&claim, "");
            continue;
        }
        let (requests, times) = seen.entry(name).or_default();
        if requests.contains("") {
            errors.duplicate(&claim, name);
        } else {
            if !request.is_empty() {
                errors.invalid_each(&claim.get("request"), request, dns1123_label(request));
            }
            if requests.contains(request) {
                errors.duplicate(&claim, &*format!("{name}/{request}"));
            } else if request.is_empty() {
                for _ in 0..*times {
                    errors.duplicate(&claim, name);
                }
            }
            requests.insert(request);
            *times += 1;
        }
        if !known.contains(name) {
            unknown_claim(&claim, name, known, errors);
        }
    }
}

fn unknown_claim(at: &At<'_, '_>, name: &str, known: &BTreeSet<&str>, errors: &mut Errors) {
    errors.add(|| {
        let names: Vec<&str> = known.iter().copied().collect();
        let rest =
            if names.is_empty() { " which is empty".to_owned() } else { format!(": {}", names.join(", ")) };
        let name = crate::gotext::quote(name);
        let message = format!("Not found: {name}: must be one of the names in pod.spec.resourceClaims{rest}");
        Cause::new(CauseReason::NotFound, at.path().to_string(), message)
    });
}
