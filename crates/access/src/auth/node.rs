//! The node authorizer: a kubelet may do to objects what it needs for the Pods that are bound to its node
//! (`plugin/pkg/auth/authorizer/node`).

mod graph;
mod references;
mod relations;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use self::graph::Graph;
pub use self::references::{Sort, references_of};
use super::authorizer::{Answer, Attributes, Authorizer, Decision, Explain, Foresight, Reason, UserRules};
use super::rbac::{Rules, bootstrap};
use crate::cache::Cache;
use crate::cache::follower::Position;
use crate::gotext::quote;
use crate::schema::names::Gvr;
use crate::storage::ResourceId;
use crate::user::User;

const NODES: &str = "system:nodes";
const USER_PREFIX: &str = "system:node:";
const LEASES: &str = "kube-node-lease";
/// The most users that are named in the log.
const MOST_NAMED: usize = 1000;

const PODS: Gvr = Gvr::fixed("v1", "pods");
const VOLUMES: Gvr = Gvr::fixed("v1", "persistentvolumes");
const ATTACHMENTS: Gvr = Gvr::fixed("storage.k8s.io/v1", "volumeattachments");
const SLICES: Gvr = Gvr::fixed("resource.k8s.io/v1", "resourceslices");
const CERTIFICATES: Gvr = Gvr::fixed("certificates.k8s.io/v1", "podcertificaterequests");

/// The authorizer. Clones share everything.
#[derive(Clone)]
pub struct NodeAuthorizer {
    shared: Arc<Shared>,
}

struct Shared {
    cache: Cache,
    ids: Ids,
    /// The rules for requests whose permission depends on no single object.
    rules: Rules,
    /// Made when a node asks for the first time: many clusters have none that do.
    graph: RwLock<Option<Graph>>,
    /// The state of the graph. Advanced under the graph's lock.
    position: Position,
    /// Users that were named in the log since they are no nodes, though they look like some.
    named: Mutex<HashSet<String>>,
}

struct Ids {
    pods: Option<ResourceId>,
    volumes: Option<ResourceId>,
    attachments: Option<ResourceId>,
    slices: Option<ResourceId>,
    certificates: Option<ResourceId>,
}

/// A decision before the words for it.
enum Judgement {
    Allowed,
    Because(&'static str),
    /// Words that depend on the request.
    Told(fn(&str, &Attributes<'_>) -> String),
}

use Judgement::{Allowed, Because, Told};

impl NodeAuthorizer {
    /// `id` is the store's number of a resource.
    pub fn new(cache: Cache, id: impl Fn(&Gvr) -> Option<ResourceId>) -> Self {
        let ids = Ids {
            pods: id(&PODS),
            volumes: id(&VOLUMES),
            attachments: id(&ATTACHMENTS),
            slices: id(&SLICES),
            certificates: id(&CERTIFICATES),
        };
        let rules = bootstrap::rules("system:node");
        let (graph, named, position) = Default::default();
        let rules = Rules::new(rules);
        Self { shared: Arc::new(Shared { cache, ids, rules, graph, position, named }) }
    }

    /// Takes in changes as they come once a node has asked, so that decisions find little to do.
    pub async fn follow(self) {
        let at = self.shared.cache.any().revision;
        let ids = [self.shared.ids.pods, self.shared.ids.volumes].into_iter().flatten();
        let mut watchers: Vec<_> = ids.map(|id| self.shared.cache.watch(id, at)).collect();
        if watchers.is_empty() {
            return std::future::pending().await;
        }
        loop {
            let changes = watchers.iter_mut().map(|watcher| Box::pin(watcher.changed()));
            futures_util::future::select_all(changes).await;
            if self.shared.graph.read().unwrap_or_else(|e| e.into_inner()).is_some() {
                self.shared.catch_up(&self.shared.cache.any());
            }
        }
    }
}

/// The name of the node that a user is.
pub fn node_of(user: &User) -> Option<&str> {
    user.name.strip_prefix(USER_PREFIX).filter(|_| user.is_in(NODES))
}

impl Authorizer for NodeAuthorizer {
    fn decide<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a> {
        let Some(node) = node_of(attributes.user) else {
            self.shared.name_unfit(attributes.user);
            return Answer::Now(Decision::NoOpinion(Reason::None));
        };
        let told = match self.shared.judge(node, attributes) {
            Allowed => return Answer::Now(Decision::Allow(Reason::None)),
            Because("") => Reason::None,
            Because(text) => Reason::Fixed(text),
            Told(words) => Reason::Explained(Arc::new(Words(words))),
        };
        Answer::Now(Decision::NoOpinion(told))
    }

    fn foresee(&self, attributes: &Attributes<'_>) -> Foresight {
        match node_of(attributes.user) {
            Some(_) => Foresight::Unknown,
            None => {
                self.shared.name_unfit(attributes.user);
                Foresight::NoOpinion
            }
        }
    }

    fn rules(&self, user: &User, _: &str) -> UserRules {
        match node_of(user) {
            None => UserRules::default(),
            Some(_) => UserRules {
                incomplete: true,
                errors: vec!["node authorizer does not support user rule resolution".to_owned()],
                ..UserRules::default()
            },
        }
    }
}

#[derive(Debug)]
struct Words(fn(&str, &Attributes<'_>) -> String);

impl Explain for Words {
    fn explain(&self, attributes: &Attributes<'_>) -> String {
        (self.0)(node_of(attributes.user).unwrap_or_default(), attributes)
    }
}

impl Shared {
    /// Names a user in the log, once, who has the name of a node or is in the group of nodes, and not both: neither this
    /// authorizer nor the admission plugin NodeRestriction takes him for a node.
    fn name_unfit(&self, user: &User) {
        let has_name = user.name.starts_with(USER_PREFIX);
        if !has_name && !user.is_in(NODES) {
            return;
        }
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() < MOST_NAMED && named.insert(user.name.clone()) {
            tracing::warn!(
                user = %user.name,
                groups = ?user.groups,
                "not a node: it has the rights of a node, and NodeRestriction restricts it, only as {USER_PREFIX}NAME in {NODES}"
            );
        }
    }

    fn judge(&self, node: &str, a: &Attributes<'_>) -> Judgement {
        if node.is_empty() {
            return Told(|_, a| format!("unknown node for user {}", quote(&a.user.name)));
        }
        if !a.is_resource() {
            return self.by_rules(a);
        }
        match (a.group, a.resource) {
            ("", "secrets") => self.read(Sort::Secret, node, a),
            ("", "configmaps") => self.read(Sort::ConfigMap, node, a),
            ("", "persistentvolumeclaims") if a.subresource == "status" => match a.verb {
                "update" | "patch" => self.related(Some(Sort::Claim), node, a),
                _ => Because("can only get/update/patch this type"),
            },
            ("", "persistentvolumeclaims") => self.get(Some(Sort::Claim), node, a),
            ("resource.k8s.io", "resourceclaims") => self.get(Some(Sort::ResourceClaim), node, a),
            ("", "persistentvolumes") | ("storage.k8s.io", "volumeattachments") => self.get(None, node, a),
            ("", "serviceaccounts") => self.account(node, a),
            ("coordination.k8s.io", "leases") => lease(node, a),
            ("storage.k8s.io", "csinodes") => csi_node(node, a),
            ("resource.k8s.io", "resourceslices") => self.slice(node, a),
            ("", "nodes") => own_node(node, a),
            ("", "pods") => self.pod(node, a),
            ("certificates.k8s.io", "podcertificaterequests") => self.certificate(node, a),
            _ => self.by_rules(a),
        }
    }

    fn by_rules(&self, a: &Attributes<'_>) -> Judgement {
        if self.rules.allow(a) { Allowed } else { Because("") }
    }

    /// Reads of single objects in a namespace.
    fn read(&self, sort: Sort, node: &str, a: &Attributes<'_>) -> Judgement {
        match a.verb {
            "get" | "list" | "watch" if !a.subresource.is_empty() => Because("cannot read subresource"),
            "get" | "list" | "watch" if a.namespace.is_empty() => {
                Because("can only read namespaced object of this type")
            }
            "get" | "list" | "watch" => self.related(Some(sort), node, a),
            _ => Because("can only read resources of this type"),
        }
    }

    fn get(&self, sort: Option<Sort>, node: &str, a: &Attributes<'_>) -> Judgement {
        match (a.verb, a.subresource) {
            ("get", "") => self.related(sort, node, a),
            ("get", _) => Because("cannot get subresource"),
            _ => Because("can only get individual resources of this type"),
        }
    }

    fn account(&self, node: &str, a: &Attributes<'_>) -> Judgement {
        match (a.verb, a.subresource) {
            ("get", "") => self.read(Sort::Account, node, a),
            ("create", _) if a.name.is_empty() => {
                Because("can only create tokens for individual service accounts")
            }
            ("create", "token") => self.related(Some(Sort::Account), node, a),
            ("create", _) => Because("can only create token subresource of serviceaccount"),
            _ => Because("can only create tokens for individual service accounts"),
        }
    }

    fn slice(&self, node: &str, a: &Attributes<'_>) -> Judgement {
        match a.verb {
            _ if !a.subresource.is_empty() => Because("cannot authorize ResourceSlice subresources"),
            "create" => Allowed,
            "get" | "update" | "patch" | "delete" => self.related(None, node, a),
            "watch" | "list" | "deletecollection" if a.selects_field("spec.nodeName", node) => Allowed,
            "watch" | "list" | "deletecollection" => {
                Because("can only list/watch/deletecollection resourceslices with nodeName field selector")
            }
            _ => Because(
                "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, \
                 delete, deletecollection",
            ),
        }
    }

    fn certificate(&self, node: &str, a: &Attributes<'_>) -> Judgement {
        match a.verb {
            _ if !a.subresource.is_empty() => {
                Because("nodes may not access the status subresource of PodCertificateRequests")
            }
            "create" => Allowed,
            "get" => self.related(None, node, a),
            "list" | "watch" if a.selects_field("spec.nodeName", node) => Allowed,
            "list" | "watch" => {
                Because("can only list/watch podcertificaterequests with nodeName field selector")
            }
            _ => Told(|_, a| format!("nodes may not {} podcertificaterequests", a.verb)),
        }
    }

    fn pod(&self, node: &str, a: &Attributes<'_>) -> Judgement {
        match (a.subresource, a.verb) {
            ("", "get") => self.related(None, node, a),
            ("", "list" | "watch") if a.selects_field("spec.nodeName", node) => Allowed,
            ("", "list" | "watch") if !a.name.is_empty() => self.related(None, node, a),
            ("", "list" | "watch") => Because("can only list/watch pods with spec.nodeName field selector"),
            // The admission plugin NodeRestriction looks at these.
            ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => Allowed,
            _ => Because(""),
        }
    }

    /// Allowed if the object has to do with the node: by what its Pods refer to, or without a sort by itself.
    fn related(&self, sort: Option<Sort>, node: &str, a: &Attributes<'_>) -> Judgement {
        if a.name.is_empty() {
            return Because("No Object name found");
        }
        if self.is_related(sort, node, a) {
            return Allowed;
        }
        Told(|node, _| format!("no relationship found between node '{node}' and this object"))
    }

    fn is_related(&self, sort: Option<Sort>, node: &str, a: &Attributes<'_>) -> bool {
        let state = self.cache.any();
        let names_node = |id: Option<ResourceId>| self.names_node(&state, id, a.namespace, a.name, node);
        match (sort, a.resource) {
            (Some(sort), _) => self.is_used(&state, sort, node, a.namespace, a.name),
            (None, "pods") => names_node(self.ids.pods),
            (None, "volumeattachments") => names_node(self.ids.attachments),
            (None, "resourceslices") => names_node(self.ids.slices),
            (None, "podcertificaterequests") => names_node(self.ids.certificates),
            (None, "persistentvolumes") => self.is_volume_used(&state, node, a.name),
            _ => false,
        }
    }
}

fn lease(node: &str, a: &Attributes<'_>) -> Judgement {
    match a.verb {
        "get" | "create" | "update" | "patch" | "delete" if a.namespace != LEASES => {
            Because("can only access leases in the \"kube-node-lease\" system namespace")
        }
        "create" => Allowed,
        "get" | "update" | "patch" | "delete" if a.name == node => Allowed,
        "get" | "update" | "patch" | "delete" => {
            Because("can only access node lease with the same name as the requesting node")
        }
        _ => Because("can only get, create, update, patch, or delete a node lease"),
    }
}

fn csi_node(node: &str, a: &Attributes<'_>) -> Judgement {
    match a.verb {
        // Of volumes' health, which nodes report only where that is on.
        _ if a.subresource == "status" => Because("CSINode status access requires CSIVolumeHealth feature"),
        _ if !a.subresource.is_empty() => Because("cannot authorize CSINode subresources"),
        "create" => Allowed,
        "get" | "update" | "patch" | "delete" if a.name == node => Allowed,
        "get" | "update" | "patch" | "delete" => {
            Because("can only access CSINode with the same name as the requesting node")
        }
        _ => Because("can only get, create, update, patch, or delete a CSINode"),
    }
}

fn own_node(node: &str, a: &Attributes<'_>) -> Judgement {
    match (a.subresource, a.verb) {
        // The admission plugin NodeRestriction looks at these.
        ("", "create" | "update" | "patch") | ("status", "update" | "patch") => Allowed,
        ("", "get" | "list" | "watch") if a.name == node => Allowed,
        ("", "get" | "list" | "watch") if a.name.is_empty() => {
            Told(|node, _| format!("node '{node}' cannot read all nodes, only its own Node object"))
        }
        ("", "get" | "list" | "watch") => {
            Told(|node, a| format!("node '{node}' cannot read '{}', only its own Node object", a.name))
        }
        _ => Because(""),
    }
}

#[cfg(test)]
mod tests;
