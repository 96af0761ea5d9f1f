//! Devices that count as extended resources, too: a DeviceClass says which one its devices are
//! (`pkg/quota/v1/evaluator/core/resource_claims.go`).
//!
//! A Pod that asks for an extended resource is charged for it, and the scheduler then makes a ResourceClaim for the Pod, which
//! is spared what the Pod is charged for. How much that is, is found out when the claim is created, and noted in a row that
//! nobody serves, which comes and goes with the claim: so what is given back is what was taken, whatever becomes of the Pod.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::QUOTAS;
use super::amounts::{Amounts, is_negative, is_zero};
use super::pods::{self, CLASS_PREFIX, REQUESTS, is_request_of_extended};
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::error::Error;
use crate::schema::names::Gvr;
use crate::storage::{Expect, Mutation};
use crate::tree::Value;
use crate::{Cluster, ObjectMap, Target, fields};

/// The end of the names by which quotas count devices of a class.
pub(super) const DEVICES_SUFFIX: &str = ".deviceclass.resource.k8s.io/devices";
const CLASSES: Gvr = Gvr::fixed("resource.k8s.io/v1", "deviceclasses");
const CLAIMS: Gvr = Gvr::fixed("resource.k8s.io/v1", "resourceclaims");
const PODS: Gvr = Gvr::fixed("v1", "pods");
/// The annotation that the scheduler puts on the claims which it makes for extended resources.
const FOR_EXTENDED: &str = "resource.kubernetes.io/extended-resource-claim";

/// The devices of one state, with the extended resources that they count as.
pub struct Devices<'a> {
    cluster: &'a Cluster,
    state: &'a State,
    classes: OnceCell<Classes>,
}

/// The extended resource of each class; empty if it has none.
type Classes = BTreeMap<String, String>;

impl<'a> Devices<'a> {
    pub fn new(cluster: &'a Cluster, state: &'a State) -> Self {
        Self { cluster, state, classes: OnceCell::new() }
    }

    /// The classes of the state, which are read when somebody asks: most claims are in namespaces without quotas.
    fn classes(&self) -> &Classes {
        self.classes.get_or_init(|| {
            let mut classes = Classes::new();
            let Some(resource) = self.cluster.resources.get(&CLASSES) else { return classes };
            for object in self.state.objects(resource.id).range(&Range::of(None)) {
                match resource.decode(object) {
                    Ok(class) => {
                        let extended = fields::text(&class, &["spec", "extendedResourceName"]);
                        classes.insert(object.name().to_owned(), extended.to_owned());
                    }
                    Err(error) => self.cluster.unreadable.tell("quotas", object, error),
                }
            }
            classes
        })
    }

    /// Whether a quota's resource stands for devices of a class.
    pub fn knows(&self, resource: &str) -> bool {
        let Some(name) = resource.strip_prefix(REQUESTS).filter(|_| is_request_of_extended(resource)) else {
            return false;
        };
        match name.strip_prefix(CLASS_PREFIX) {
            Some(class) => self.classes().contains_key(class),
            None => self.classes().values().any(|extended| extended == name),
        }
    }

    /// The amounts that a claim is not charged for, since its Pod is.
    fn spared(&self, claim: &ObjectMap) -> Amounts {
        let Some(pod) = pod_of(claim) else { return Amounts::default() };
        let (namespace, name) = place(claim);
        let claims = self.cluster.resources.get(&CLAIMS);
        if claims.and_then(|claims| self.state.get(claims.id, namespace, name)).is_none() {
            return self.charged_to(pod, claim).unwrap_or_default();
        }
        let note =
            self.cluster.hidden.quota_sets.get(self.state, namespace, name).and_then(|row| row.to_map().ok());
        note.map(|note| Amounts::of(fields::object(&note, "spared"))).unwrap_or_default()
    }

    /// The charge of the Pod that a new claim says it is for; `None` if the claim is not for this Pod.
    fn charged_to(&self, (name, uid): (&str, &str), claim: &ObjectMap) -> Option<Amounts> {
        let (namespace, own) = place(claim);
        let resource = self.cluster.resources.get(&PODS)?;
        let pod = resource.decode(&*self.state.get(resource.id, namespace, name)?).ok()?;
        if fields::text(&pod, &["metadata", "uid"]) != uid {
            return None;
        }
        let is_its_own = match fields::at(&pod, &["status", "extendedResourceClaimStatus"]) {
            Some(Value::Object(status)) => fields::text(status, &["resourceClaimName"]) == own,
            _ => !self.has_another_claim(namespace, uid),
        };
        let mut usage = pods::usage(&pod);
        usage.retain(|name, _| is_request_of_extended(name));
        is_its_own.then_some(usage)
    }

    /// Whether a claim has been made for a Pod already.
    fn has_another_claim(&self, namespace: &str, pod: &str) -> bool {
        let Some(claims) = self.cluster.resources.get(&CLAIMS) else { return false };
        let (objects, range) = (self.state.objects(claims.id), Range::of(Some(namespace)));
        let is_for_it = |object: &Arc<Object>| {
            let claim = claims.decode(object).ok();
            claim.is_some_and(|claim| pod_of(&claim).is_some_and(|(_, uid)| uid == pod))
        };
        objects.range(&range).filter(|object| object.mentions(FOR_EXTENDED)).any(is_for_it)
    }

    /// The mutation of a claim's note that is written with a claim which comes or goes; `None` if the note stays as it is.
    pub fn note(
        &self,
        target: Target<'_>,
        old: Option<&ObjectMap>,
        new: Option<&ObjectMap>,
    ) -> Option<Mutation> {
        let spared = match (old, new) {
            (None, Some(claim)) => self.spared(claim),
            (Some(_), None) => Amounts::default(),
            _ => return None,
        };
        let rows = self.cluster.hidden.quota_sets;
        let expect = rows.as_seen(self.state, target.namespace, target.name).expect;
        if spared.is_empty() {
            let is_there = expect != Expect::Absent;
            return is_there.then(|| rows.delete(target.namespace, target.name, expect));
        }
        let mut amounts = ObjectMap::new();
        for (name, amount) in spared.iter() {
            amounts.insert(name, amount.into());
        }
        let mut row = ObjectMap::new();
        row.insert("spared", Value::Object(amounts));
        Some(rows.put(target.namespace, target.name, expect, row))
    }
}

/// Adds to a claim's devices the extended resources that they count as: the one that each class has by its name, and the one
/// that the class is known to say.
pub fn add_extended(devices: Option<&Devices<'_>>, claim: &ObjectMap, usage: &mut Amounts) {
    let mut extended = Amounts::default();
    for (name, amount) in usage.iter() {
        let Some(class) = name.strip_suffix(DEVICES_SUFFIX).filter(|_| !is_zero(amount)) else { continue };
        extended.plus(&format!("{REQUESTS}{CLASS_PREFIX}{class}"), amount);
        let said = devices.and_then(|devices| devices.classes().get(class));
        if let Some(name) = said.filter(|name| !name.is_empty()) {
            extended.plus(&format!("{REQUESTS}{name}"), amount);
        }
    }
    if extended.is_empty() {
        return;
    }
    let mut spared = devices.map(|devices| devices.spared(claim)).unwrap_or_default();
    spared.retain(|name, _| extended.get(name).is_some());
    extended.subtract(&spared);
    extended.retain(|_, amount| !is_zero(amount) && !is_negative(amount));
    usage.add(&extended);
}

fn place(claim: &ObjectMap) -> (&str, &str) {
    (fields::text(claim, &["metadata", "namespace"]), fields::text(claim, &["metadata", "name"]))
}

/// Name and uid of the Pod that a claim says it was made for.
fn pod_of(claim: &ObjectMap) -> Option<(&str, &str)> {
    let annotation = fields::at(claim, &["metadata", "annotations", FOR_EXTENDED])?;
    let owners = fields::items(claim, &["metadata", "ownerReferences"]);
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    let is_pod = owner["kind"] == "Pod" && owner["apiVersion"] == "v1" && annotation == "true";
    is_pod.then(|| Some((owner["name"].as_str()?, owner["uid"].as_str()?))).flatten()
}

impl Cluster {
    /// Makes the figures of all quotas right that may count the devices of a DeviceClass, which was written, as an extended
    /// resource.
    pub(crate) async fn recount_devices(&self) -> Result<(), Error> {
        let Some(resource) = self.resources.get(&QUOTAS) else { return Ok(()) };
        let state = self.cache.fresh().await?;
        for found in state.objects(resource.id).range(&Range::of(None)) {
            let Ok(quota) = resource.decode(found) else { continue };
            let hard = fields::at(&quota, &["status", "hard"]).and_then(Value::as_object);
            if !hard.into_iter().flatten().any(|(name, _)| is_request_of_extended(name)) {
                continue;
            }
            self.recount_anew(found.namespace(), found.name()).await?;
        }
        Ok(())
    }
}
