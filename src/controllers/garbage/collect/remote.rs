//! Owners that extension servers have. They are asked for by name, since nobody tells of their end: what was found out counts
//! for a while, and is asked again then.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::decision::Owner;
use crate::api::Api;
use crate::auth::service_accounts;
use crate::controllers::garbage::graph::Facts;
use crate::relay::call::{Call, segment};
use crate::schema::names::Gvk;
use crate::user::User;

/// How long an answer counts.
pub const PERIOD: Duration = Duration::from_secs(30);
/// Questions at a time.
const WORKERS: usize = 8;
/// The time of a question.
const TIME: Duration = Duration::from_secs(5);
/// Bytes of an owner that are read.
const LIMIT: usize = 4 << 20;

/// An owner that an extension server may have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Asked {
    pub api_version: String,
    pub kind: String,
    /// The namespace of the dependent.
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

/// The answers, and the questions that are still to be asked.
#[derive(Default)]
pub struct RemoteOwners(Mutex<Known>);

#[derive(Default)]
struct Known {
    answers: HashMap<Asked, (Owner, Instant)>,
    wanted: BTreeSet<Asked>,
}

/// The questions under way.
pub type Asking = JoinSet<(Asked, Owner)>;

impl RemoteOwners {
    /// The answer about an owner. It is asked for if there is none, or an old one.
    pub fn verdict(&self, asked: Asked) -> Owner {
        let mut known = self.lock();
        match known.answers.get(&asked) {
            Some((verdict, at)) if at.elapsed() < PERIOD => *verdict,
            _ => {
                known.wanted.insert(asked);
                Owner::Unknown
            }
        }
    }

    /// Asks for an owner now if there is no answer, or an old one.
    pub async fn find_out(&self, api: &Api, asked: Asked) -> Owner {
        match self.verdict(asked.clone()) {
            Owner::Unknown => {}
            known => return known,
        }
        let verdict = look(api, &asked).await.unwrap_or(Owner::Unknown);
        self.lock().wanted.remove(&asked);
        self.answered((asked, verdict));
        verdict
    }

    /// Forgets the answers about an owner that is known to have changed.
    pub fn forget(&self, uid: &str) {
        self.lock().answers.retain(|asked, _| asked.uid != uid);
    }

    /// Asks what is to be asked.
    pub fn ask(&self, api: &Arc<Api>, asking: &mut Asking) {
        let mut known = self.lock();
        while asking.len() < WORKERS
            && let Some(asked) = known.wanted.pop_first()
        {
            let api = api.clone();
            asking.spawn(async move {
                let verdict = look(&api, &asked).await.unwrap_or(Owner::Unknown);
                (asked, verdict)
            });
        }
    }

    /// Notes an answer. Old ones are forgotten.
    pub fn answered(&self, (asked, verdict): (Asked, Owner)) {
        let mut known = self.lock();
        known.answers.retain(|_, (_, at)| at.elapsed() < PERIOD);
        known.answers.insert(asked, (verdict, Instant::now()));
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An object, or a Status.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Answer {
    metadata: Facts,
    reason: String,
}

/// The user that asks extension servers: the service account of upstream's garbage collector.
pub fn garbage_collector() -> User {
    let namespace = "kube-system";
    let name = service_accounts::user_name(namespace, "generic-garbage-collector");
    User { name, groups: service_accounts::groups(namespace), ..User::default() }.authenticated()
}

/// Asks for an owner; `None` if nobody can say whether it is there.
async fn look(api: &Api, asked: &Asked) -> Option<Owner> {
    let gvk = Gvk::parse(&asked.api_version, &asked.kind).ok()?;
    let services = api.extensions.newest(&api.cache);
    let service = services.remote_of(&gvk.group_version)?;
    let discovered = api.extensions.discovered.load_full();
    let found = discovered.versions.get(&gvk.group_version).filter(|found| found.is_current)?;
    let resource = found.listed().find(|resource| resource.kind == asked.kind)?;
    let (version, plural, name) = (&asked.api_version, resource.plural, segment(&asked.name)?);
    let path = match (resource.is_namespaced, asked.namespace.as_str()) {
        (true, "") => return None,
        (true, namespace) => format!("/apis/{version}/namespaces/{namespace}/{plural}/{name}"),
        (false, _) => format!("/apis/{version}/{plural}/{name}"),
    };
    let user = garbage_collector();
    let call = Call::get(&path, &user, TIME, LIMIT);
    let answer = api.call_extension(service.remote.as_deref()?, &call).await.ok()?;
    let body: Answer = serde_json::from_slice(&answer.body).ok()?;
    match answer.status {
        200 if body.metadata.uid == asked.uid => Some(Owner::of(&body.metadata)),
        200 if !body.metadata.uid.is_empty() => Some(Owner::Dangling),
        404 if body.reason == "NotFound" => Some(Owner::Dangling),
        _ => None,
    }
}
