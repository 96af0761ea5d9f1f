//! APIServices as this server follows them: which group versions extension servers answer for, and the way to these servers.

pub mod converted;
pub mod discovered;
pub mod openapi;
mod remote;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};

use self::discovered::Discovered;
use self::openapi::OpenApiParts;
pub use self::remote::Remote;
use crate::cache::Cache;
use crate::cache::follower::{Content, Follower};
use crate::catalog::Served;
use crate::codec::object::Object;
use crate::schema::names::{GroupVersion, Gvr};
use crate::server_trust::Identity;
use crate::storage::ResourceId;
use crate::tree::Value;
use crate::{ObjectMap, fields};

pub const API_SERVICES: Gvr = Gvr::fixed("apiregistration.k8s.io/v1", "apiservices");

/// The certificate that this server shows to extension servers, and its key; `None` if it has none.
pub type ProxyIdentity = Arc<ArcSwapOption<Identity>>;

/// One APIService.
#[derive(Clone, Debug)]
pub struct ApiService {
    /// `<version>.<group>`.
    pub name: Box<str>,
    pub version: GroupVersion,
    pub group_priority: i64,
    pub version_priority: i64,
    pub uid: Box<str>,
    /// The value of the label by which the server keeps APIServices of its own; `None` if somebody else made it.
    pub automanaged: Option<Box<str>>,
    /// The extension server; `None` if this server answers itself.
    pub remote: Option<Arc<Remote>>,
    pub condition: Condition,
}

/// The condition `Available`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// `True`, `False`, or `Unknown` until somebody has looked.
    pub status: Box<str>,
    pub reason: Box<str>,
    pub message: Box<str>,
}

/// The label of APIServices that the server keeps.
pub const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// The value of the label of those that are made at the start only, and of those that are kept.
pub const ON_START: &str = "onstart";
pub const ALWAYS: &str = "true";

/// All APIServices at one time.
#[derive(Debug, Default)]
pub struct ApiServices {
    /// By name.
    pub all: BTreeMap<Box<str>, Arc<ApiService>>,
    remote: HashMap<GroupVersion, Arc<ApiService>>,
    /// Grows with every change.
    pub generation: u64,
}

/// A follower of the APIServices.
pub struct Extensions {
    follower: Option<Follower<Known>>,
    /// The number of remote APIServices, by which requests for built-in resources are decided without a lock.
    remote: Arc<AtomicUsize>,
    pub identity: ProxyIdentity,
    /// The resources of extension servers, as they have said last.
    pub discovered: ArcSwap<Discovered>,
    pub openapi: ArcSwap<OpenApiParts>,
}

#[derive(Debug)]
struct Known {
    services: BTreeMap<Box<str>, Arc<ApiService>>,
    published: ArcSwap<ApiServices>,
    remote: Arc<AtomicUsize>,
}

impl Extensions {
    /// The number of remote APIServices is kept up to date in `remote`.
    pub fn new(resources: &Served, identity: ProxyIdentity, remote: Arc<AtomicUsize>) -> Self {
        let known =
            Known { services: BTreeMap::new(), published: ArcSwap::default(), remote: remote.clone() };
        let id = resources.get(&API_SERVICES).map(|resource| resource.id);
        Self {
            follower: id.map(|id| Follower::new([id], known)),
            remote,
            identity,
            discovered: ArcSwap::default(),
            openapi: ArcSwap::default(),
        }
    }

    /// The store's number of APIServices; `None` if they are not served.
    pub fn resource(&self) -> Option<ResourceId> {
        self.follower.as_ref()?.resources().first().copied()
    }

    /// All APIServices as the cache has them.
    pub fn newest(&self, cache: &Cache) -> Arc<ApiServices> {
        match &self.follower {
            Some(follower) => follower.newest(cache, &()).published.load_full(),
            None => Arc::default(),
        }
    }

    /// The remote APIService that answers at a path. Costs next to nothing while there is none at all.
    pub fn at(&self, cache: &Cache, path: &str) -> Option<Arc<ApiService>> {
        let follower = self.follower.as_ref()?;
        follower.catch_up(cache, &());
        if self.remote.load(Ordering::Acquire) == 0 {
            return None;
        }
        let version = group_version(path)?;
        let document = path.strip_prefix("/openapi/v3/");
        if document.is_some_and(|path| self.openapi.load().converted.contains_key(path)) {
            return None;
        }
        follower.known().published.load().remote.get(&version).cloned()
    }
}

impl ApiServices {
    /// The APIServices of extension servers.
    pub fn remote(&self) -> impl Iterator<Item = &Arc<ApiService>> {
        self.all.values().filter(|service| service.remote.is_some())
    }

    /// The remote APIService of a group version.
    pub fn remote_of(&self, version: &GroupVersion) -> Option<&Arc<ApiService>> {
        self.remote.get(version)
    }
}

impl Content for Known {
    type Context = ();

    fn clear(&mut self, (): &()) {
        self.services.clear();
    }

    fn take_in(&mut self, (): &(), _: usize, key: &str, object: Option<&Arc<Object>>) {
        let name = key.rsplit('\0').next().unwrap_or_default();
        let before = self.published.load().all.get(name).cloned();
        // What cannot be read keeps its place: nothing is decided by it.
        match object.map(|object| object.to_map()) {
            None => _ = self.services.remove(name),
            Some(Ok(object)) => {
                let service = ApiService::of(name, &object, before.as_deref());
                self.services.insert(name.into(), Arc::new(service));
            }
            Some(Err(_)) => {
                if let Some(before) = before {
                    self.services.insert(name.into(), before);
                }
            }
        }
    }

    fn finish(&mut self) {
        let remote = self.services.values().filter(|service| service.remote.is_some());
        let remote: HashMap<_, _> =
            remote.map(|service| (service.version.clone(), service.clone())).collect();
        self.remote.store(remote.len(), Ordering::Release);
        let generation = self.published.load().generation + 1;
        self.published.store(Arc::new(ApiServices { all: self.services.clone(), remote, generation }));
    }
}

impl ApiService {
    fn of(name: &str, object: &ObjectMap, before: Option<&Self>) -> Self {
        let text = |field| fields::text(object, &["spec", field]);
        let number = |field| fields::at(object, &["spec", field]).and_then(Value::as_i64).unwrap_or_default();
        let uid = fields::text(object, &["metadata", "uid"]);
        let before = before.filter(|before| &*before.uid == uid);
        Self {
            name: name.into(),
            version: GroupVersion::new(text("group"), text("version")),
            group_priority: number("groupPriorityMinimum"),
            version_priority: number("versionPriority"),
            uid: uid.into(),
            automanaged: fields::at(object, &["metadata", "labels", AUTOMANAGED])
                .and_then(Value::as_str)
                .map(Box::from),
            remote: Remote::of(object, before.and_then(|before| before.remote.as_ref())),
            condition: Condition::of(object),
        }
    }
}

impl Condition {
    fn of(object: &ObjectMap) -> Self {
        let conditions = fields::items(object, &["status", "conditions"]);
        let text = |condition: &Value, field: &str| -> Box<str> {
            condition.get(field).and_then(Value::as_str).unwrap_or_default().into()
        };
        match conditions.iter().find(|condition| &*text(condition, "type") == "Available") {
            Some(found) => Self {
                status: text(found, "status"),
                reason: text(found, "reason"),
                message: text(found, "message"),
            },
            None => Self { status: "Unknown".into(), reason: "".into(), message: "not checked yet".into() },
        }
    }

    pub fn is_true(&self) -> bool {
        &*self.status == "True"
    }
}

/// The group version to which a path belongs that a remote APIService may answer: `/apis/<group>/<version>`, `/api`, and all
/// paths below these.
fn group_version(path: &str) -> Option<GroupVersion> {
    // Its documents of OpenAPI v3 come from there, too.
    let path = path.strip_prefix("/openapi/v3").unwrap_or(path);
    let mut segments = path.trim_start_matches('/').split('/');
    match segments.next()? {
        "api" => Some(GroupVersion::fixed("v1")),
        "apis" => {
            let (group, version) = (segments.next()?, segments.next()?);
            (!group.is_empty() && !version.is_empty()).then(|| GroupVersion::new(group, version))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_group_version_with_which_it_begins() {
        for (path, want) in [
            ("/apis/g/v1", Some("g/v1")),
            ("/apis/g/v1/", Some("g/v1")),
            ("/apis/g/v1/namespaces/t/things/x/proxy/a//b", Some("g/v1")),
            ("/apis/g", None),
            ("/apis/g/", None),
            ("/apis", None),
            ("/api", Some("v1")),
            ("/api/v1/pods", Some("v1")),
            ("/openapi/v3/apis/g/v1", Some("g/v1")),
            ("/openapi/v3", None),
            ("/metrics", None),
            ("/", None),
        ] {
            assert_eq!(
                group_version(path).as_ref().map(|found| found.api_version().as_str()),
                want,
                "{path}"
            );
        }
    }
}
