//! NodeRestriction: a kubelet writes only what is of its own node (`plugin/pkg/admission/noderestriction`). Its
//! credentials tell the node; what it may do at all is the authorizers' matter.

mod certificate;
mod labels;
mod pods;
mod token;

use std::sync::Arc;

use super::{Admission, Attempt, Operation, Verdict};
use crate::auth::node::node_of;
use crate::auth::signing::{KUBELET_CLIENTS, KUBELET_SERVERS, SigningRequest};
use crate::cache::State;
use crate::error::Error;
use crate::gotext::quote;
use crate::request::Request;
use crate::rights::is_empty;
use crate::schema::names::{GroupResource, Gvr};
use crate::tree::Value;
use crate::{Cluster, ObjectMap, fields};

const PODS: Gvr = Gvr::fixed("v1", "pods");
const NODES: Gvr = Gvr::fixed("v1", "nodes");
const LEASES: &str = "kube-node-lease";
/// The fields of a PersistentVolumeClaim's status that a kubelet may change.
const OF_CLAIM_STATUS: [&str; 4] =
    ["capacity", "conditions", "allocatedResources", "allocatedResourceStatuses"];

pub(super) struct NodeRestriction;

impl Admission for NodeRestriction {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation != Operation::Connect && node_of(request.user).is_some()
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        Verdict::Later(Box::pin(async move {
            let state = attempt.cluster.cache.fresh().await?;
            let Some(node) = node_of(attempt.request.user) else { return Ok(()) };
            Restricted { attempt, node, state: &state }.judge().await
        }))
    }
}

/// A write of a node's.
struct Restricted<'a, 'r> {
    attempt: &'a Attempt<'r>,
    node: &'a str,
    state: &'a Arc<State>,
}

impl<'a> Restricted<'a, '_> {
    async fn judge(&self) -> Result<(), Error> {
        if self.node.is_empty() {
            let user = quote(&self.attempt.request.user.name);
            return self.refuse(format!("could not determine node from user {user}"));
        }
        let definition = &self.attempt.request.target.resource.definition;
        match (definition.group().as_str(), &*definition.plural, self.attempt.request.subresource) {
            ("", "pods", "") => self.pod(),
            ("", "pods", "status") => self.pod_status(),
            ("", "pods", "eviction") => self.eviction(),
            ("", "pods", other) => {
                let other = quote(other);
                let why =
                    format!("unexpected pod subresource {other}, only 'status' and 'eviction' are allowed");
                self.refuse(why)
            }
            ("", "nodes", _) => self.own_node(),
            ("", "persistentvolumeclaims", "status") => self.claim_status(),
            ("", "persistentvolumeclaims", _) => self.refuse("may only update PVC status"),
            ("", "serviceaccounts", "token") if self.is(Operation::Create) => self.token().await,
            ("certificates.k8s.io", "podcertificaterequests", _) => self.pod_certificate().await,
            ("certificates.k8s.io", "certificatesigningrequests", _) => self.signing_request(),
            ("coordination.k8s.io", "leases", _) => self.lease(),
            ("storage.k8s.io", "csinodes", _) => {
                self.own_name("can only access CSINode with the same name as the requesting node")
            }
            ("resource.k8s.io", "resourceslices", _) => self.resource_slice(),
            _ => Ok(()),
        }
    }

    fn own_node(&self) -> Result<(), Error> {
        let (node, name) = (quote(self.node), self.attempt.target.name);
        if name != self.node {
            return self.refuse(format!("node {node} is not allowed to modify node {}", quote(name)));
        }
        let new = self.object();
        let source = fields::at(new, &["spec", "configSource"]).filter(|source| !source.is_null());
        match self.attempt.operation {
            Operation::Create => {
                if source.is_some() {
                    return self.refuse(format!(
                        "node {node} is not allowed to create pods with a non-nil configSource"
                    ));
                }
                match labels::forbidden(new, None) {
                    None => Ok(()),
                    Some(labels) => self
                        .refuse(format!("node {node} is not allowed to set the following labels: {labels}")),
                }
            }
            Operation::Update => {
                let old = self.old();
                let is_same = |path: &[&str]| same_at(new, old, path);
                let why = if source.is_some() && !is_same(&["spec", "configSource"]) {
                    "update configSource to a new non-nil configSource"
                } else if !is_same(&["spec", "taints"]) {
                    "modify taints"
                } else if !is_same(&["metadata", "ownerReferences"]) {
                    "modify ownerReferences"
                } else {
                    return match labels::forbidden(new, Some(old)) {
                        None => Ok(()),
                        Some(labels) => self.refuse(format!("is not allowed to modify labels: {labels}")),
                    };
                };
                self.refuse(format!("node {node} is not allowed to {why}"))
            }
            Operation::Delete | Operation::Connect => Ok(()),
        }
    }

    fn claim_status(&self) -> Result<(), Error> {
        if !self.is(Operation::Update) {
            return self.unexpected();
        }
        let rest = |claim: &ObjectMap| {
            let mut claim = claim.clone();
            for field in ["resourceVersion", "managedFields"] {
                fields::object_mut(&mut claim, "metadata").shift_remove(field);
            }
            for field in OF_CLAIM_STATUS {
                fields::object_mut(&mut claim, "status").shift_remove(field);
            }
            Value::Object(claim)
        };
        if same(Some(&rest(self.object())), Some(&rest(self.old()))) {
            return Ok(());
        }
        // Upstream adds what differs, in the form of its library.
        let node = quote(self.node);
        self.refuse(format!(
            "node {node} is not allowed to update fields other than status.quantity and status.conditions"
        ))
    }

    fn lease(&self) -> Result<(), Error> {
        if self.attempt.target.namespace != LEASES {
            return self.refuse(format!("can only access leases in the {} system namespace", quote(LEASES)));
        }
        self.own_name("can only access node lease with the same name as the requesting node")
    }

    fn own_name(&self, why: &str) -> Result<(), Error> {
        if self.attempt.target.name == self.node { Ok(()) } else { self.refuse(why) }
    }

    fn resource_slice(&self) -> Result<(), Error> {
        let (slice, verb) = match self.attempt.operation {
            Operation::Create => (self.object(), "create"),
            Operation::Delete => (self.old(), "delete"),
            Operation::Update | Operation::Connect => return Ok(()),
        };
        if fields::text(slice, &["spec", "nodeName"]) == self.node {
            return Ok(());
        }
        self.refuse(format!("can only {verb} ResourceSlice with the same NodeName as the requesting node"))
    }

    fn signing_request(&self) -> Result<(), Error> {
        let object = self.object();
        let signer = fields::text(object, &["spec", "signerName"]);
        if !self.is(Operation::Create) || ![KUBELET_SERVERS, KUBELET_CLIENTS].contains(&signer) {
            return Ok(());
        }
        match SigningRequest::of_base64(fields::text(object, &["spec", "request"])) {
            Err(why) => self.refuse(format!("unable to parse csr: {why}")),
            Ok(asked) if asked.subject().common_name().strip_prefix("system:node:") == Some(self.node) => {
                Ok(())
            }
            Ok(_) => self.refuse(format!("can only create a node CSR with CN=system:node:{}", self.node)),
        }
    }

    fn is(&self, operation: Operation) -> bool {
        self.attempt.operation == operation
    }

    fn refuse(&self, why: impl Into<String>) -> Result<(), Error> {
        Err(self.attempt.refused(why))
    }

    fn unexpected(&self) -> Result<(), Error> {
        self.refuse(format!("unexpected operation {}", quote(self.attempt.operation.as_str())))
    }

    /// The object that is sent.
    fn object(&self) -> &'a ObjectMap {
        self.attempt.object.as_ref().unwrap_or(&EMPTY)
    }

    fn old(&self) -> &'a ObjectMap {
        self.attempt.old.unwrap_or(&EMPTY)
    }

    /// An object of the newest state; 404 if there is none, which names its resource in the singular, as upstream's listers do.
    fn find(&self, resource: &Gvr, namespace: &str, name: &str) -> Result<ObjectMap, Error> {
        let cluster: &Cluster = self.attempt.cluster;
        let served = cluster.resources.get(resource).ok_or(Error::UnknownResource)?;
        let singular = || GroupResource::new(resource.group(), &served.definition.singular);
        let missing = || Error::not_found(singular(), name);
        served.decode(&*self.state.get(served.id, namespace, name).ok_or_else(missing)?)
    }
}

static EMPTY: ObjectMap = ObjectMap::new();

fn same_at(one: &ObjectMap, other: &ObjectMap, path: &[&str]) -> bool {
    same(fields::at(one, path), fields::at(other, path))
}

/// Whether two values mean the same: what is empty means as much as what is absent.
fn same(one: Option<&Value>, other: Option<&Value>) -> bool {
    let set = |value: Option<&Value>| value.is_some_and(|value| !is_empty(value));
    match (one, other) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            one.keys().chain(other.keys()).all(|key| same(one.get(key), other.get(key)))
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(Some(one), Some(other)))
        }
        (one, other) => one == other || !set(one) && !set(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    #[test]
    fn empty_and_absent_mean_the_same() {
        let same = |one: Value, other: Value| same(Some(&one), Some(&other));
        assert!(same(json!({"a": [], "b": {"c": null}}), json!({})));
        assert!(same(json!({"a": [{"b": {}}]}), json!({"a": [{}]})));
        assert!(!same(json!({"a": [1]}), json!({"a": []})) && !same(json!({"a": 0}), json!({})));
    }
}
