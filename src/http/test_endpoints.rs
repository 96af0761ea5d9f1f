//! Controls of a server for tests: snapshots and resets, the server's time, faults, records of requests, ends of watches.
//!
//! The endpoints are those of `docs/spec/cluster.md`, 4.6: `/rowplane/v1/snapshots`, and below
//! `/rowplane/v1/branches/NAME/`, where NAME is `-` for the server that is asked. They are there with `--test-endpoints` at
//! a loopback address, for members of `system:masters`.

mod bodies;
mod endpoints;
mod faults;
mod recording;
mod snapshots;
mod watches;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::response::Response;
use tokio::time::Instant;

pub use self::endpoints::{Asked, find, serve};
pub use self::faults::{Answer, Fault, Faults};
pub use self::recording::{Filter, Recorded, Recording};
pub use self::snapshots::Snapshots;
pub use self::watches::Watches;
use super::request::info::RequestInfo;
use super::request::user;
use crate::api::Api;
use crate::api::error::Error;
use crate::api::verbs::snapshot::Snapshot;
use crate::random::Random;
use crate::revision::Revision;
use crate::storage;
use crate::user::User;
use crate::wall_clock::Steering;

/// How often it is looked whether something was written.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The controls of one server.
pub struct Controls {
    pub clock: Steering,
    /// The snapshots of the server and of all its branches.
    pub snapshots: Arc<Snapshots>,
    /// The snapshot that a branch was made of.
    pub base: Option<Snapshot>,
    pub faults: Faults,
    pub recording: Recording,
    pub watches: Watches,
    random: Random,
}

impl Controls {
    pub fn new(snapshots: Arc<Snapshots>, base: Option<Snapshot>, random: Random) -> Self {
        Self {
            clock: Steering::default(),
            snapshots,
            base,
            faults: Faults::default(),
            recording: Recording::default(),
            watches: Watches::default(),
            random,
        }
    }

    /// Makes everything what it is in a snapshot, ends all watches, and gives up the history before.
    pub async fn reset(&self, api: &Api, snapshot: &Snapshot) -> Result<Revision, Error> {
        api.restore(snapshot).await?;
        self.expire(api).await
    }

    /// Gives up the history of the server, and ends all watches by saying so (410), so that clients list anew.
    pub async fn expire(&self, api: &Api) -> Result<Revision, Error> {
        let newest = api.cache.revision();
        api.cache.backend().compact(newest).await.map_err(|error: storage::Error| Error::from(error))?;
        self.watches.expire(newest);
        Ok(newest)
    }

    /// Waits until nothing was written for so long. Returns the newest revision; `None` if that takes longer than
    /// `patience`.
    pub async fn quiet(api: &Api, pause: Duration, patience: Duration) -> Option<Revision> {
        let begun = Instant::now();
        let (mut newest, mut since) = (api.cache.revision(), begun);
        while since.elapsed() < pause {
            if begun.elapsed() > patience {
                return None;
            }
            tokio::time::sleep(LOOK_EVERY.min(pause)).await;
            let now = api.cache.revision();
            if now != newest {
                (newest, since) = (now, Instant::now());
            }
        }
        Some(newest)
    }

    /// Whether something is to be done with requests.
    pub fn is_asked(&self, parts: &Parts) -> bool {
        (self.recording.is_on() || self.faults.are_set()) && !parts.uri.path().starts_with("/rowplane/")
    }

    /// Answers a request as its handler does, or with a fault, and records it.
    pub async fn around(
        &self,
        info: &RequestInfo,
        parts: &Parts,
        body: Body,
        handler: impl AsyncFnOnce(Body) -> Response,
    ) -> Response {
        let user = user(parts);
        let subject = Subject::of(info, &user);
        let fault = self.faults.strike(&subject, &self.random);
        if let Some(delay) = fault.as_ref().and_then(|fault| fault.delay) {
            tokio::time::sleep(delay).await;
        }
        let answer = fault.and_then(|fault| fault.answer);
        let faulty = async |body: Body| match answer {
            Some(answer) => answer.to_response(&subject, parts),
            None => handler(body).await,
        };
        match self.recording.is_on() {
            true => self.recording.around(&subject, info, parts, body, faulty).await,
            false => faulty(body).await,
        }
    }
}

/// The parts of a request by which it is found.
pub struct Subject<'a> {
    pub verb: &'a str,
    /// With its group and subresource: `deployments.apps/scale`. Empty for other paths than those of resources.
    pub resource: String,
    /// The same without the group.
    plain: String,
    pub namespace: &'a str,
    pub name: &'a str,
    pub user: &'a User,
}

impl<'a> Subject<'a> {
    fn of(info: &'a RequestInfo, user: &'a User) -> Self {
        let Some(path) = info.resource() else {
            let (resource, plain) = (String::new(), String::new());
            return Self { verb: info.verb(), resource, plain, namespace: "", name: "", user };
        };
        let part = path.subresource.as_deref().map(|part| format!("/{part}")).unwrap_or_default();
        let name = path.name.as_deref().unwrap_or_default();
        Self {
            verb: info.verb(),
            resource: format!("{}{part}", path.resource.group_resource()),
            plain: format!("{}{part}", path.resource.plural),
            namespace: path.namespace_text(),
            name,
            user,
        }
    }

    /// Whether the request is one of a resource that is named with or without its group.
    fn is_of(&self, resource: &str) -> bool {
        self.resource == resource || self.plain == resource
    }
}
