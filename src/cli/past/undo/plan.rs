//! The plan: for each object, what has to be sent to make it what it was.

use std::collections::{BTreeMap, BTreeSet};

use super::UndoArgs;
use crate::cli::error::Error;
use crate::cli::past::kinds::{self, Kind, Object};
use crate::cli::past::leaves::{differences, forget, leaves, plain, short};
use crate::cli::past::session::{At, Session};
use crate::tree::Value;

/// Kinds that controllers make, or that are of the moment; they come back only if they are named.
const OF_CONTROLLERS: [&str; 6] = [
    "events",
    "events.events.k8s.io",
    "leases.coordination.k8s.io",
    "endpoints",
    "endpointslices.discovery.k8s.io",
    "controllerrevisions.apps",
];
/// The order in which kinds are made, as helm installs them; all others follow.
const ORDER: [&str; 22] = [
    "namespaces",
    "customresourcedefinitions.apiextensions.k8s.io",
    "networkpolicies.networking.k8s.io",
    "resourcequotas",
    "limitranges",
    "poddisruptionbudgets.policy",
    "serviceaccounts",
    "secrets",
    "configmaps",
    "storageclasses.storage.k8s.io",
    "persistentvolumes",
    "persistentvolumeclaims",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "services",
    "daemonsets.apps",
    "pods",
    "replicasets.apps",
    "deployments.apps",
    "statefulsets.apps",
    "jobs.batch",
    "cronjobs.batch",
];

/// The request that makes an object what it was.
pub enum Step {
    /// It is as it was, or there is nothing to do without an option.
    Nothing,
    /// PUT of this object over the one with this uid and version.
    Update(Value),
    /// POST of this object.
    Create(Value),
    /// DELETE of the object with this uid and version.
    Delete { uid: String, version: String },
    /// Why nothing can be done.
    Refused(String),
}

impl Step {
    pub fn writes(&self) -> bool {
        matches!(self, Self::Update(_) | Self::Create(_) | Self::Delete { .. })
    }
}

/// An object with what is to be done.
pub struct Planned {
    pub object: Object,
    pub step: Step,
    /// The object at that time, if there was one.
    pub then: Option<Value>,
    pub notes: Vec<String>,
    changes: String,
}

impl Planned {
    /// The line of the plan.
    pub fn line(&self) -> String {
        let Object { kind, namespace, name } = &self.object;
        let place = if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
        let verb = match &self.step {
            Step::Nothing => "keep",
            Step::Update(_) => "update",
            Step::Create(_) => "create",
            Step::Delete { .. } => "delete",
            Step::Refused(_) => "refuse",
        };
        let why = match &self.step {
            Step::Refused(why) => why,
            _ => &self.changes,
        };
        format!("{verb:<7} {} {} {place}   {why}", kind.api_version(), kind.kind).trim_end().to_owned()
    }
}

/// Makes plans.
pub struct Planner<'a> {
    session: &'a Session,
    at: &'a At,
    arguments: &'a UndoArgs,
    /// The kinds at that time, and those of now.
    then: Vec<Kind>,
    now: Vec<Kind>,
}

impl<'a> Planner<'a> {
    pub async fn new(
        session: &'a Session,
        at: &'a At,
        arguments: &'a UndoArgs,
        then: Vec<Kind>,
    ) -> Result<Self, Error> {
        let now = kinds::load(session, "").await?;
        Ok(Self { session, at, arguments, then, now })
    }

    /// The plan for one object that was named.
    pub async fn named(&self, object: Object) -> Result<Planned, Error> {
        let then = self.session.find(&format!("{}{}", self.at.door, object.path())).await?;
        let now = self.session.find(&object.path()).await?;
        if then.is_none() && now.is_none() {
            return Err(Error::Refused(format!("{} was not there then, and is not now", object.shown())));
        }
        self.one(object, then, now).await
    }

    /// The plan for a namespace and all that it had, in the order in which it has to be made.
    pub async fn namespace(&self, object: Object) -> Result<Vec<Planned>, Error> {
        let name = object.name.clone();
        let mut plan = vec![self.named(object).await?];
        if let Step::Refused(_) = plan[0].step {
            return Ok(plan);
        }
        let mut kinds: Vec<&Kind> = self.then.iter().filter(|kind| self.is_wanted(kind)).collect();
        let order =
            |kind: &Kind| ORDER.iter().position(|known| *known == kind.resource()).unwrap_or(ORDER.len());
        kinds.sort_by_key(|kind| (order(kind), kind.resource()));
        let mut definitions = BTreeSet::new();
        let mut contents = Vec::new();
        for kind in kinds {
            let (then, now) = self.contents(kind, &name).await?;
            let is_gone = !self.now.iter().any(|known| known.resource() == kind.resource());
            if is_gone && !then.is_empty() {
                definitions.insert(kind.resource());
            }
            let mut names: Vec<&String> = then.keys().chain(now.keys()).collect();
            names.sort();
            names.dedup();
            for one in names {
                let object = Object { kind: kind.clone(), namespace: name.clone(), name: one.clone() };
                let (then, now) = (then.get(one).cloned(), now.get(one).cloned());
                if self.is_left_out(kind, then.as_ref().or(now.as_ref())) {
                    continue;
                }
                contents.push(self.one(object, then, now).await?);
            }
        }
        for definition in definitions {
            let name = kinds::find(&self.then, "customresourcedefinitions.apiextensions.k8s.io")?;
            let object = Object { kind: name.clone(), namespace: String::new(), name: definition };
            plan.push(self.named(object).await?);
        }
        plan.extend(contents);
        Ok(plan)
    }

    fn is_wanted(&self, kind: &Kind) -> bool {
        let is_named =
            self.arguments.kinds.iter().any(|name| kinds::find(std::slice::from_ref(kind), name).is_ok());
        let is_usual = self.arguments.kinds.is_empty() && !OF_CONTROLLERS.contains(&kind.resource().as_str());
        kind.namespaced && kind.allows("list") && kind.allows("create") && (is_named || is_usual)
    }

    /// Whether controllers make the object again, or cannot use it any more.
    fn is_left_out(&self, kind: &Kind, object: Option<&Value>) -> bool {
        let Some(metadata) = object.map(|object| &object["metadata"]) else { return true };
        let owners = metadata["ownerReferences"].as_array();
        let is_controlled = owners.into_iter().flatten().any(|owner| owner["controller"] == true);
        let is_of_system = kind.resource() == "configmaps" && metadata["name"] == "kube-root-ca.crt"
            || kind.resource() == "serviceaccounts" && metadata["name"] == "default";
        is_controlled || is_of_system
    }

    /// The objects of a kind in a namespace, then and now.
    async fn contents(
        &self,
        kind: &Kind,
        namespace: &str,
    ) -> Result<(BTreeMap<String, Value>, BTreeMap<String, Value>), Error> {
        let query = match self.arguments.selector.as_str() {
            "" => String::new(),
            selector => format!(
                "?labelSelector={}",
                percent_encoding::utf8_percent_encode(selector, percent_encoding::NON_ALPHANUMERIC)
            ),
        };
        let by_name = |items: Vec<Value>| -> BTreeMap<String, Value> {
            let name = |item: &Value| item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            items.into_iter().map(|item| (name(&item), item)).collect()
        };
        let path = format!("{}{query}", kind.path(namespace));
        let then = by_name(self.session.list(&format!("{}{path}", self.at.door)).await?);
        let is_served = self.now.iter().any(|known| known.resource() == kind.resource());
        let now = if is_served { by_name(self.session.list(&path).await?) } else { BTreeMap::new() };
        Ok((then, now))
    }

    async fn one(&self, object: Object, then: Option<Value>, now: Option<Value>) -> Result<Planned, Error> {
        let mut notes = Vec::new();
        let is_terminating = |object: &Option<Value>| {
            object.as_ref().is_some_and(|one| one["metadata"]["deletionTimestamp"].is_string())
        };
        let (step, changes) = match (&then, &now) {
            _ if is_terminating(&now) => {
                let why = "it is being deleted, which cannot be taken back; it can be created again when it is gone";
                (Step::Refused(why.to_owned()), String::new())
            }
            (Some(then), Some(now)) => self.update(&object, then, now),
            (Some(then), None) => {
                let (new, dropped) = self.create(&object, then).await?;
                notes.extend(dropped);
                (Step::Create(new), String::new())
            }
            (None, Some(now)) if self.arguments.prune => {
                let text = |name: &str| now["metadata"][name].as_str().unwrap_or_default().to_owned();
                (Step::Delete { uid: text("uid"), version: text("resourceVersion") }, String::new())
            }
            (None, _) => (Step::Nothing, String::new()),
        };
        Ok(Planned { object, step, then, notes, changes })
    }

    fn update(&self, object: &Object, then: &Value, now: &Value) -> (Step, String) {
        let is_other = then["metadata"]["uid"] != now["metadata"]["uid"];
        if is_other && !self.arguments.across_recreation {
            let why =
                "it was deleted and created again since then; --across-recreation changes it all the same";
            return (Step::Refused(why.to_owned()), String::new());
        }
        let mut new = then.clone();
        let metadata = &mut new["metadata"];
        for name in ["uid", "resourceVersion", "generation", "managedFields", "creationTimestamp"] {
            metadata[name] = now["metadata"][name].clone();
        }
        if let Some(members) = metadata.as_object_mut() {
            forget(members, &["deletionTimestamp", "deletionGracePeriodSeconds"]);
            members.retain(|_, value| !value.is_null());
        }
        let keeps_status = !self.arguments.with_status || !object.kind.has_status;
        if keeps_status && let Some(members) = new.as_object_mut() {
            match now.get("status") {
                Some(status) => _ = members.insert("status", status.clone()),
                None => _ = members.shift_remove("status"),
            }
        }
        let found = differences(&leaves(&plain(now)), &leaves(&plain(&new)));
        if found.is_empty() {
            return (Step::Nothing, String::new());
        }
        const SHOWN: usize = 4;
        let text = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), short);
        let mut changes: Vec<String> = found
            .iter()
            .take(SHOWN)
            .map(|(path, now, then)| {
                format!("{} {} -> {}", path.replace("[name=", "["), text(now), text(then))
            })
            .collect();
        if found.len() > SHOWN {
            changes.push(format!("… ({} fields)", found.len()));
        }
        (Step::Update(new), changes.join("; "))
    }

    /// The object as it is created again, and notes on owners that are gone.
    async fn create(&self, object: &Object, then: &Value) -> Result<(Value, Vec<String>), Error> {
        let mut new = then.clone();
        let mut notes = Vec::new();
        if let Some(members) = new.as_object_mut() {
            forget(members, &["status"]);
        }
        if let Some(members) = new["metadata"].as_object_mut() {
            let of_server =
                ["uid", "resourceVersion", "generation", "managedFields", "creationTimestamp", "selfLink"];
            forget(members, &of_server);
            forget(members, &["deletionTimestamp", "deletionGracePeriodSeconds"]);
        }
        if object.kind.plural == "namespaces" && object.kind.group.is_empty() {
            // The server sets them.
            new["spec"] = crate::tree::json!({});
        }
        if let Some(Value::Array(owners)) = new["metadata"].get_mut("ownerReferences").map(Value::take) {
            let mut kept = Vec::new();
            for owner in owners {
                match self.owner_now(object, &owner).await? {
                    Some(uid) => {
                        let mut owner = owner;
                        owner["uid"] = uid;
                        kept.push(owner);
                    }
                    None => notes.push(format!(
                        "without its owner {}/{}, which is gone",
                        owner["kind"].as_str().unwrap_or_default(),
                        owner["name"].as_str().unwrap_or_default()
                    )),
                }
            }
            new["metadata"]["ownerReferences"] = Value::Array(kept);
        }
        if new["metadata"]["ownerReferences"].as_array().is_some_and(Vec::is_empty)
            && let Some(members) = new["metadata"].as_object_mut()
        {
            forget(members, &["ownerReferences"]);
        }
        Ok((new, notes))
    }

    /// The uid that an owner has now; `None` if it is gone.
    async fn owner_now(&self, object: &Object, owner: &Value) -> Result<Option<Value>, Error> {
        let text = |name: &str| owner[name].as_str().unwrap_or_default();
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        let is_kind = |kind: &&Kind| kind.kind == text("kind") && kind.group == group;
        let Some(kind) = self.now.iter().find(is_kind) else { return Ok(None) };
        let path = format!("{}/{}", kind.path(&object.namespace), text("name"));
        Ok(self.session.find(&path).await?.map(|found| found["metadata"]["uid"].clone()))
    }
}
