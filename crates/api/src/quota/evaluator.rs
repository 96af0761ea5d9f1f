//! Evaluators: the amounts of a quota that objects of a resource use (`pkg/quota/v1/evaluator`).

use super::amounts::{Amounts, added, exceeds};
use super::devices::{self, DEVICES_SUFFIX, Devices};
use super::notes::Notes;
use super::past_grace::PastGrace;
use super::pods;
use super::scopes::Requirement;
use crate::fields::{self, objects};
use crate::kinds::behavior::part::Part;
use crate::schema::resource::{ResourceDefinition, Storage};
use crate::tree::Value;
use crate::{ObjectMap, quantity};

const CLASS_SUFFIX: &str = ".storageclass.storage.k8s.io/";
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// The most devices that a claim can be given.
const ALL_DEVICES: i64 = 32;

/// How a resource is counted.
#[derive(Clone, Copy)]
pub enum Evaluator<'a> {
    /// Pods. Without knowledge of those past their grace period, each holds what it requests.
    Pods(Option<&'a PastGrace<'a>>),
    Services,
    Claims,
    /// ResourceClaims. Without knowledge of devices, none counts as a named extended resource.
    ResourceClaims(Option<&'a Devices<'a>>),
    /// Other objects, of which only the number counts.
    Objects(&'a ResourceDefinition),
}

impl<'a> Evaluator<'a> {
    /// `None` for what no quota counts.
    pub fn of(definition: &'a ResourceDefinition) -> Option<Self> {
        if !definition.namespaced() || matches!(definition.storage, Storage::Virtual) {
            return None;
        }
        Some(match (&**definition.group(), &*definition.plural) {
            ("", "pods") => Self::Pods(None),
            ("", "services") => Self::Services,
            ("", "persistentvolumeclaims") => Self::Claims,
            ("resource.k8s.io", "resourceclaims") => Self::ResourceClaims(None),
            ("" | "events.k8s.io", "events") => return None,
            _ => Self::Objects(definition),
        })
    }

    /// The same, with what is noted of the objects.
    pub fn knowing(self, notes: Option<&'a Notes<'a>>) -> Self {
        match (self, notes) {
            (Self::ResourceClaims(_), Some(Notes::OfClaims(devices))) => Self::ResourceClaims(Some(devices)),
            (Self::Pods(_), Some(Notes::OfPods(past))) => Self::Pods(Some(past)),
            (other, _) => other,
        }
    }

    /// Whether objects of the resource may use what this name stands for.
    pub fn knows(self, name: &str) -> bool {
        match self {
            Self::Pods(_) => pods::knows(name),
            Self::Services => {
                matches!(
                    name,
                    "count/services" | "services" | "services.nodeports" | "services.loadbalancers"
                )
            }
            Self::Claims => {
                let own = |name: &str| matches!(name, "persistentvolumeclaims" | "requests.storage");
                name == "count/persistentvolumeclaims"
                    || own(name)
                    || name.rsplit_once(CLASS_SUFFIX).is_some_and(|(_, rest)| own(rest))
            }
            Self::ResourceClaims(devices) => {
                name == "count/resourceclaims.resource.k8s.io"
                    || name.ends_with(DEVICES_SUFFIX)
                    || devices.is_some_and(|devices| devices.knows(name))
            }
            Self::Objects(definition) => {
                let (group, plural) = (definition.group(), &*definition.plural);
                let counted = name.strip_prefix("count/").and_then(|name| name.strip_prefix(plural));
                counted.is_some_and(|rest| rest.strip_prefix('.').unwrap_or(rest) == &**group)
                    || (group.is_empty() && has_alias(plural) && name == plural)
            }
        }
    }

    pub fn usage(self, object: &ObjectMap) -> Amounts {
        match self {
            Self::Pods(Some(past)) if past.holds(object) => pods::as_object(),
            Self::Pods(_) => pods::usage(object),
            Self::Services => service(object),
            Self::Claims => claim(object),
            Self::ResourceClaims(devices) => {
                let mut usage = resource_claim(object);
                devices::add_extended(devices, object, &mut usage);
                usage
            }
            Self::Objects(definition) => {
                let (group, plural) = (definition.group(), &definition.plural);
                let mut usage = Amounts::default();
                if group.is_empty() {
                    usage.set(format!("count/{plural}"), "1");
                    if has_alias(plural) {
                        usage.set(&**plural, "1");
                    }
                } else {
                    usage.set(format!("count/{plural}.{group}"), "1");
                }
                usage
            }
        }
    }

    /// Whether an object is in all scopes of a quota.
    pub fn matches(self, scopes: &[Requirement<'_>], object: &ObjectMap) -> bool {
        scopes.iter().all(|scope| match self {
            Self::Pods(_) => pods::matches(scope, object),
            Self::Claims => scope.name == "VolumeAttributesClass" && claim_matches(scope, object),
            Self::Services | Self::ResourceClaims(_) | Self::Objects(_) => false,
        })
    }

    /// Whether an update may change what the object uses; found out without counting.
    pub fn may_change(self, part: Part, old: &ObjectMap, new: &ObjectMap) -> bool {
        match self {
            Self::Pods(_) => {
                part == Part::Resize
                    || pods::has_ended(old) != pods::has_ended(new)
                    || pods::ends_by_itself(old) != pods::ends_by_itself(new)
            }
            Self::Services => old.get("spec") != new.get("spec"),
            Self::ResourceClaims(_) => {
                let differ = |path: &[&str]| fields::at(old, path) != fields::at(new, path);
                let paths: [&[&str]; 3] =
                    [&["spec"], &["metadata", "annotations"], &["metadata", "ownerReferences"]];
                paths.into_iter().any(differ)
            }
            Self::Claims => true,
            Self::Objects(_) => false,
        }
    }
}

/// Whether a quota may name the resource by its plural alone.
fn has_alias(plural: &str) -> bool {
    matches!(plural, "configmaps" | "secrets" | "replicationcontrollers" | "resourcequotas")
}

fn service(service: &ObjectMap) -> Amounts {
    let ports = fields::items(service, &["spec", "ports"]);
    let chosen =
        || ports.iter().filter(|port| port["nodePort"].as_i64().is_some_and(|port| port != 0)).count();
    let (node_ports, balancers) = match fields::text(service, &["spec", "type"]) {
        "NodePort" => (ports.len(), "0"),
        "LoadBalancer" => {
            let allocates = fields::at(service, &["spec", "allocateLoadBalancerNodePorts"]);
            let none = allocates.and_then(Value::as_bool) == Some(false);
            (if none { chosen() } else { ports.len() }, "1")
        }
        _ => (0, "0"),
    };
    let mut usage = Amounts::default();
    usage.set("count/services", "1");
    usage.set("services", "1");
    usage.set("services.loadbalancers", balancers);
    usage.set("services.nodeports", node_ports.to_string());
    usage
}

fn claim(claim: &ObjectMap) -> Amounts {
    let annotated = fields::at(claim, &["metadata", "annotations", CLASS_ANNOTATION]);
    let class = annotated.or_else(|| fields::at(claim, &["spec", "storageClassName"]));
    let class = class.and_then(Value::as_str).unwrap_or_default();
    let mut usage = Amounts::default();
    usage.set("count/persistentvolumeclaims", "1");
    usage.set("persistentvolumeclaims", "1");
    let storage = storage(claim);
    if let Some(storage) = &storage {
        usage.set("requests.storage", &**storage);
    }
    if !class.is_empty() {
        usage.set(format!("{class}{CLASS_SUFFIX}persistentvolumeclaims"), "1");
        if let Some(storage) = storage {
            usage.set(format!("{class}{CLASS_SUFFIX}requests.storage"), storage);
        }
    }
    usage
}

/// The storage that a claim requests, or was given if that is more, in whole bytes.
fn storage(claim: &ObjectMap) -> Option<String> {
    let request = fields::at(claim, &["spec", "resources", "requests", "storage"])?.as_str()?;
    let given = fields::at(claim, &["status", "allocatedResources", "storage"]).and_then(Value::as_str);
    let request = whole(request);
    Some(match given {
        Some(given) if exceeds(given, &request) => whole(given),
        _ => request,
    })
}

/// Rounds up to whole bytes.
fn whole(amount: &str) -> String {
    let Some(nanos) = quantity::nanos(amount).filter(|nanos| nanos % 1_000_000_000 != 0) else {
        return amount.to_owned();
    };
    let missing = 1_000_000_000 - nanos.rem_euclid(1_000_000_000);
    added(amount, &format!("{missing}n"))
}

fn claim_matches(scope: &Requirement<'_>, claim: &ObjectMap) -> bool {
    let paths: [&[&str]; 3] = [
        &["spec", "volumeAttributesClassName"],
        &["status", "currentVolumeAttributesClassName"],
        &["status", "modifyVolumeStatus", "targetVolumeAttributesClassName"],
    ];
    let mut names =
        paths.iter().map(|path| fields::text(claim, path)).filter(|name| !name.is_empty()).peekable();
    match names.peek() {
        None => scope.matches(""),
        Some(_) => names.any(|name| scope.matches(name)),
    }
}

/// Requests are those of the newest version, or the flat ones of older versions.
fn resource_claim(claim: &ObjectMap) -> Amounts {
    let mut usage = Amounts::default();
    usage.set("count/resourceclaims.resource.k8s.io", "1");
    let mut devices = Amounts::default();
    for request in objects(claim, &["spec", "devices", "requests"]) {
        let choices: Vec<&ObjectMap> = objects(request, &["firstAvailable"]).collect();
        let mut largest = Amounts::default();
        match choices.is_empty() {
            true => largest.raise(&asked(fields::object(request, "exactly").unwrap_or(request), false)),
            false => choices.into_iter().for_each(|choice| largest.raise(&asked(choice, true))),
        }
        devices.add(&largest);
    }
    for (name, amount) in devices.iter() {
        usage.set(name, amount);
    }
    usage
}

/// The devices of a request's class. A choice among several that asks for none, or in an unknown way, is not shown at all.
fn asked(request: &ObjectMap, is_choice: bool) -> Amounts {
    let mut asked = Amounts::default();
    let class = fields::text(request, &["deviceClassName"]);
    if !class.is_empty() {
        let number = match fields::text(request, &["allocationMode"]) {
            "ExactCount" => request.get("count").and_then(Value::as_i64).unwrap_or_default(),
            "All" => ALL_DEVICES,
            _ => 0,
        };
        if number > 0 || !is_choice {
            asked.set(format!("{class}{DEVICES_SUFFIX}"), number.to_string());
        }
    }
    asked
}
