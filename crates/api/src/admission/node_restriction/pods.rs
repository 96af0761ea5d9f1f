//! Pods: a kubelet creates mirrors of those that it runs by itself, and writes the status of those that are bound to it.

use super::{NODES, PODS, Restricted, same, same_at};
use crate::admission::Operation;
use crate::auth::node::{Sort, references_of};
use crate::error::Error;
use crate::gotext::quote;
use crate::tree::{Map, Value};
use crate::{ObjectMap, fields};

pub(super) const MIRROR: &str = "kubernetes.io/config.mirror";

impl Restricted<'_, '_> {
    pub(super) fn pod(&self) -> Result<(), Error> {
        let node = quote(self.node);
        match self.attempt.operation {
            Operation::Create => self.mirror(),
            Operation::Delete => match self.bound_to(self.attempt.target.name)? {
                true => Ok(()),
                false => {
                    self.refuse(format!("node {node} can only delete pods with spec.nodeName set to itself"))
                }
            },
            Operation::Update | Operation::Connect => self.refuse(format!(
                "unexpected operation \"UPDATE\", node {node} can only create and delete mirror pods"
            )),
        }
    }

    fn mirror(&self) -> Result<(), Error> {
        let (pod, node) = (self.object(), quote(self.node));
        if !is_mirror(pod) {
            return self.refuse(format!(
                "pod does not have {} annotation, node {node} can only create mirror pods",
                quote(MIRROR)
            ));
        }
        let only = |what: &str| self.refuse(format!("node {node} can only create pods with {what}"));
        if fields::text(pod, &["spec", "nodeName"]) != self.node {
            return only("spec.nodeName set to itself");
        }
        let owner = match fields::items(pod, &["metadata", "ownerReferences"]) {
            [] => return only("an owner reference set to itself"),
            [owner] => owner.as_object().cloned().unwrap_or_default(),
            _ => return only("a single owner reference set to itself"),
        };
        let text = |field: &str| fields::text(&owner, &[field]);
        let says = |field: &str| owner.get(field).and_then(Value::as_bool).unwrap_or_default();
        if (text("apiVersion"), text("kind"), text("name")) != ("v1", "Node", self.node) {
            return only("an owner reference set to itself");
        }
        if !says("controller") {
            return only("a controller owner reference set to itself");
        }
        if says("blockOwnerDeletion") {
            return self.refuse(format!("node {node} must not set blockOwnerDeletion on an owner reference"));
        }
        let found = self.find(&NODES, "", self.node)?;
        let uid = fields::text(&found, &["metadata", "uid"]);
        if text("uid") != uid {
            let why = format!("node {} UID mismatch: expected {} got {uid}", self.node, text("uid"));
            return self.refuse(why);
        }
        match referenced(pod) {
            Ok(None) => Ok(()),
            Ok(Some(what)) => self.refuse(format!("node {node} can not create pods that reference {what}")),
            Err(why) => self.refuse(format!("error checking mirror pod for API references: {why}")),
        }
    }

    pub(super) fn pod_status(&self) -> Result<(), Error> {
        if !self.is(Operation::Update) {
            return self.unexpected();
        }
        let (new, old, node) = (self.object(), self.old(), quote(self.node));
        let why = if fields::text(old, &["spec", "nodeName"]) != self.node {
            "can only update pod status for pods with spec.nodeName set to itself"
        } else if !same_at(new, old, &["metadata", "labels"]) {
            "cannot update labels through pod status"
        } else if !same_claims(new, old) {
            "cannot update resource claim statues"
        } else if !same_at(new, old, &["status", "extendedResourceClaimStatus"]) {
            "cannot update extended resource claim status"
        } else {
            return Ok(());
        };
        self.refuse(format!("node {node} {why}"))
    }

    pub(super) fn eviction(&self) -> Result<(), Error> {
        if !self.is(Operation::Create) {
            return self.refuse(format!("unexpected operation {}", self.attempt.operation.as_str()));
        }
        match self.bound_to(self.attempt.target.name)? {
            true => Ok(()),
            false => self
                .refuse(format!("node {} can only evict pods with spec.nodeName set to itself", self.node)),
        }
    }

    /// Whether a Pod that there is is bound to this node.
    fn bound_to(&self, name: &str) -> Result<bool, Error> {
        let pod = self.find(&PODS, self.attempt.target.namespace, name)?;
        Ok(fields::text(&pod, &["spec", "nodeName"]) == self.node)
    }
}

pub(super) fn is_mirror(pod: &ObjectMap) -> bool {
    fields::at(pod, &["metadata", "annotations", MIRROR]).is_some()
}

/// The claims of both in their order, by their names.
fn same_claims(new: &ObjectMap, old: &ObjectMap) -> bool {
    let claims = |pod| {
        let claims = fields::items(pod, &["status", "resourceClaimStatuses"]).iter();
        claims.map(|claim| ["name", "resourceClaimName"].map(|field| claim.get(field)))
    };
    claims(new).eq_by_pairs(claims(old))
}

trait Pairs<'a>: Iterator<Item = [Option<&'a Value>; 2]> + Sized {
    fn eq_by_pairs(self, other: Self) -> bool {
        let alike = |(one, other): ([Option<&Value>; 2], [Option<&Value>; 2])| {
            same(one[0], other[0]) && one[1] == other[1]
        };
        let (ours, theirs): (Vec<_>, Vec<_>) = (self.collect(), other.collect());
        ours.len() == theirs.len() && ours.into_iter().zip(theirs).all(alike)
    }
}

impl<'a, I: Iterator<Item = [Option<&'a Value>; 2]>> Pairs<'a> for I {}

/// Volumes that no API object is needed for.
const HARMLESS: [&str; 22] = [
    "awsElasticBlockStore",
    "azureDisk",
    "cephfs",
    "cinder",
    "downwardAPI",
    "emptyDir",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "hostPath",
    "image",
    "iscsi",
    "nfs",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];
const VOLUMES: [(&str, &str); 7] = [
    ("configMap", "configmaps (via configmap volumes)"),
    ("secret", "secrets (via secret volumes)"),
    ("csi", "csidrivers (via CSI volumes)"),
    ("glusterfs", "endpoints (via glusterFS volumes)"),
    ("persistentVolumeClaim", "persistentvolumeclaims"),
    ("ephemeral", "persistentvolumeclaims (via ephemeral volumes)"),
    ("azureFile", "secrets (via azureFile volumes)"),
];
const SOURCES: [(&str, &str); 5] = [
    ("configMap", "configmaps (via projected volumes)"),
    ("secret", "secrets (via projected volumes)"),
    ("serviceAccountToken", "serviceaccounts (via projected volumes)"),
    ("clusterTrustBundle", "clustertrustbundles"),
    ("podCertificate", "podcertificates"),
];

/// The resource of an object that the Pod refers to, in upstream's words; `None` if it refers to none.
fn referenced(pod: &ObjectMap) -> Result<Option<&'static str>, String> {
    let references = references_of(pod);
    let has = |sort: Sort| references.iter().any(|(found, _)| *found == sort);
    if has(Sort::Account) {
        return Ok(Some("serviceaccounts"));
    }
    if has(Sort::Secret) {
        return Ok(Some("secrets"));
    }
    if has(Sort::ConfigMap) {
        return Ok(Some("configmaps"));
    }
    if !fields::items(pod, &["spec", "resourceClaims"]).is_empty() {
        return Ok(Some("resourceclaims"));
    }
    for volume in fields::items(pod, &["spec", "volumes"]).iter().filter_map(Value::as_object) {
        if let Some(what) = referenced_by_volume(volume)? {
            return Ok(Some(what));
        }
    }
    Ok(None)
}

fn referenced_by_volume(volume: &Map) -> Result<Option<&'static str>, String> {
    let has = |object: &Map, field: &str| object.get(field).is_some_and(|value| !value.is_null());
    if HARMLESS.iter().any(|field| has(volume, field)) {
        return Ok(None);
    }
    if let Some((_, what)) = VOLUMES.iter().find(|(field, _)| has(volume, field)) {
        return Ok(Some(what));
    }
    let name = quote(fields::text(volume, &["name"]));
    if !has(volume, "projected") {
        return Err(format!("unknown volume type for volume  {name}"));
    }
    for source in fields::items(volume, &["projected", "sources"]).iter().filter_map(Value::as_object) {
        if let Some((_, what)) = SOURCES.iter().find(|(field, _)| has(source, field)) {
            return Ok(Some(what));
        }
        if !has(source, "downwardAPI") {
            return Err(format!("unknown source for projected volume {name}"));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    #[test]
    fn what_a_mirror_pod_may_not_refer_to_is_named() {
        let volume = |volume: Value| json!({"volumes": [volume]});
        for (spec, what) in [
            (json!({"serviceAccountName": "a"}), Some("serviceaccounts")),
            (json!({"imagePullSecrets": [{"name": "a"}]}), Some("secrets")),
            (json!({"containers": [{"envFrom": [{"configMapRef": {"name": "a"}}]}]}), Some("configmaps")),
            (json!({"resourceClaims": [{"name": "a"}]}), Some("resourceclaims")),
            (volume(json!({"persistentVolumeClaim": {"claimName": "a"}})), Some("persistentvolumeclaims")),
            (volume(json!({"csi": {"driver": "a"}})), Some("csidrivers (via CSI volumes)")),
            (
                volume(json!({"projected": {"sources": [{"downwardAPI": {}}, {"serviceAccountToken": {}}]}})),
                Some("serviceaccounts (via projected volumes)"),
            ),
            (volume(json!({"hostPath": {}})), None),
            (json!({}), None),
        ] {
            let pod = json!({"metadata": {"name": "p"}, "spec": spec});
            assert_eq!(referenced(pod.as_object().expect("an object")), Ok(what), "{pod:?}");
        }
        let pod = json!({"spec": {"volumes": [{"name": "v", "new": {}}]}});
        let why = referenced(pod.as_object().expect("an object")).expect_err("unknown");
        assert_eq!(why, "unknown volume type for volume  \"v\"");
    }
}
