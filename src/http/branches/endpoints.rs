//! The endpoints: `POST` and `GET` of `/rowplane/v1/branches`, `GET` and `DELETE` of `…/NAME`, `GET` of `…/NAME/changes`.

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;

use super::paths::{ENDPOINTS, branch_of};
use super::{Branch, Branches, SecretValues, text};
use crate::api::error::{Error, Exists};
use crate::api::verbs::snapshot::Snapshot;
use crate::auth::authorizer::{Attributes, authorize};
use crate::http::app::App;
use crate::http::past::when::When;
use crate::http::request::body::Reading;
use crate::http::request::user;
use crate::http::response;
use crate::http::server::Responder;
use crate::http::test_endpoints::{self, Asked};
use crate::kinds::behavior::format;
use crate::schema::names::GroupResource;
use crate::tree::{Map, Value, json};
use crate::user::User;

/// The longest body, in bytes.
const LONGEST: usize = 64 << 10;
const API_VERSION: &str = "rowplane.dev/v1";
/// The longest answer with changes, in bytes of objects.
const MOST_CHANGES: usize = 256 << 20;

/// Answers a request for one of the endpoints.
pub async fn serve(app: &App, parts: &Parts, body: Body) -> Response {
    if let Some(asked) = Asked::of(parts.uri.path()) {
        return test_endpoints::serve(app, asked, parts, body).await;
    }
    match answer(app, parts, body).await {
        Ok((status, value)) => response::json(status, text(&value)),
        Err(error) => response::failure(&error, parts),
    }
}

async fn answer(app: &App, parts: &Parts, body: Body) -> Result<(StatusCode, Value), Error> {
    if let Some(name) = branch_of(parts.uri.path()) {
        return Err(not_found(name));
    }
    let path = parts.uri.path().strip_prefix(ENDPOINTS).unwrap_or_default();
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let branches = &app.branches;
    match (&parts.method, &*segments) {
        (&Method::GET, []) => {
            let mut items = Vec::new();
            for branch in branches.all() {
                items.push(branch.to_json().await);
            }
            Ok((StatusCode::OK, json!({"kind": "BranchList", "apiVersion": API_VERSION, "items": items})))
        }
        (&Method::POST, []) => {
            let (body, _) = Reading::new(body, LONGEST, None).read(|| ()).await?;
            let wanted = Wanted::parse(&body)?;
            let branch = branches.create(app, &user(parts), wanted).await?;
            Ok((StatusCode::CREATED, branch.to_json().await))
        }
        (&Method::GET, [name]) => Ok((StatusCode::OK, branches.named(name)?.to_json().await)),
        (&Method::GET, [name, "changes"]) => {
            let branch = branches.named(name)?;
            Ok((StatusCode::OK, branch.changes(app, &user(parts)).await?))
        }
        (&Method::DELETE, [name]) => {
            let branch = branches.remove(name).ok_or_else(|| not_found(name))?;
            let shown = branch.to_json().await;
            // Requests that are under way hold it for a moment longer.
            if let Some(branch) = Arc::into_inner(branch) {
                branch.fork.stop().await;
            }
            Ok((StatusCode::OK, shown))
        }
        (_, [] | [_] | [_, "changes"]) => Err(Error::MethodNotAllowed),
        _ => Err(Error::UnknownResource),
    }
}

/// The body of a `POST`.
struct Wanted {
    name: String,
    secrets: SecretValues,
    from: From,
}

/// The state that a branch begins with.
enum From {
    Newest,
    Past(When),
    /// A snapshot, by its name.
    Snapshot(String),
}

/// The members of the body.
const KNOWN: [&str; 4] = ["name", "secrets", "at", "from"];

impl Wanted {
    fn parse(body: &[u8]) -> Result<Self, Error> {
        let object: Map = serde_json::from_slice(body)
            .map_err(|error| Error::bad_request(format!("the body is no JSON object: {error}")))?;
        let unknown = object.keys().find(|key| !KNOWN.contains(&key.as_str()));
        if let Some(unknown) = unknown {
            return Err(Error::bad_request(format!(
                "{unknown:?} is unknown; there are {}",
                KNOWN.join(", ")
            )));
        }
        let name = object.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(why) = format::dns1123_label(&name).into_iter().next() {
            return Err(Error::bad_request(format!("{name:?} cannot be the name of a branch: {why}")));
        }
        let secrets = match object.get("secrets").map(Value::as_str) {
            None | Some(Some("replace")) => SecretValues::Replaced,
            Some(Some("keep")) => SecretValues::Kept,
            Some(_) => return Err(Error::bad_request("secrets can be \"replace\" or \"keep\"")),
        };
        let from = match (object.get("at"), object.get("from")) {
            (None, None) => From::Newest,
            (Some(Value::String(at)), None) => {
                From::Past(When::parse(at).map_err(|error| Error::bad_request(error.to_string()))?)
            }
            (None, Some(Value::String(name))) => From::Snapshot(name.to_string()),
            (Some(_), None) => return Err(Error::bad_request("at has to be a text: a time, or a revision")),
            (None, Some(_)) => return Err(Error::bad_request("from has to be the name of a snapshot")),
            (Some(_), Some(_)) => return Err(Error::bad_request("there is one of at and from at most")),
        };
        Ok(Self { name, secrets, from })
    }
}

impl Branches {
    fn named(&self, name: &str) -> Result<Arc<Branch>, Error> {
        self.get(name).ok_or_else(|| not_found(name))
    }

    /// Whatever answers the requests for a branch.
    pub fn responder(&self, name: &str) -> Result<Arc<dyn Responder>, Error> {
        Ok(self.named(name)?.responder.clone())
    }

    async fn create(&self, app: &App, user: &User, wanted: Wanted) -> Result<Arc<Branch>, Error> {
        let Wanted { name, secrets, from } = wanted;
        let taken = |name: &str| Error::AlreadyExists {
            resource: resource(),
            name: name.to_owned(),
            cause: Exists::Plain,
        };
        if self.get(&name).is_some() {
            return Err(taken(&name));
        }
        if secrets == SecretValues::Kept {
            may_read_secrets(app, user).await?;
        }
        let room = self.room.clone().try_acquire_owned().map_err(|_| Error::TooManyRequests {
            message: "there are as many branches as --max-branches allows; delete one".to_owned(),
            retry_after: 10,
        })?;
        let snapshot = snapshot(app, from).await?;
        let missing = snapshot.missing.clone();
        let fork = self.forks.fork(snapshot, secrets).await.map_err(Error::Internal)?;
        let (path, responder) = (format!("/branches/{name}").into(), fork.responder());
        let created = app.api.runtime.clock.timestamp();
        let branch = Branch {
            name: name.as_str().into(),
            path,
            created,
            user: user.name.clone(),
            secrets,
            missing,
            fork,
            responder,
            _room: room,
        };
        match self.add(branch) {
            Ok(branch) => Ok(branch),
            Err(late) => {
                late.fork.stop().await;
                Err(taken(&name))
            }
        }
    }
}

async fn snapshot(app: &App, from: From) -> Result<Snapshot, Error> {
    let when = match (from, &app.controls) {
        (From::Newest, _) => return app.api.snapshot().await,
        (From::Snapshot(name), Some(controls)) => return Ok((*controls.snapshots.get(&name)?).clone()),
        (From::Snapshot(_), None) => {
            return Err(Error::bad_request("there are no snapshots without --test-endpoints"));
        }
        (From::Past(when), _) => when,
    };
    let _read = app.past_reads.turn(tokio::time::Instant::now() + app.limits.request_time).await?;
    let moment = match when {
        When::Time(time) => app.api.moment_at(time.as_millisecond()).await?,
        When::Revision(revision) => app.api.moment_of(revision).await?,
    };
    app.api.snapshot_at(moment.revision).await
}

/// Fails if the user may not read all Secrets.
async fn may_read_secrets(app: &App, user: &User) -> Result<(), Error> {
    let attributes =
        Attributes { version: "v1", resource: "secrets", ..Attributes::of_path(user, "list", "") };
    authorize(&app.door.authorizer, &attributes).await.map(drop).map_err(Error::from)
}

impl Branch {
    async fn to_json(&self) -> Value {
        let (base, newest) = self.fork.revisions();
        let (bytes, most_bytes) = self.fork.bytes().await;
        let secrets = match self.secrets {
            SecretValues::Replaced => "replace",
            SecretValues::Kept => "keep",
        };
        json!({
            "kind": "Branch",
            "apiVersion": API_VERSION,
            "name": self.name.to_string(),
            "path": self.path.to_string(),
            "created": crate::gotext::time(self.created),
            "user": self.user.clone(),
            "base": base.to_string(),
            "newest": newest.to_string(),
            "secrets": secrets,
            "missing": self.missing.iter().map(|name| Value::from(name.to_string())).collect::<Vec<_>>(),
            "bytes": bytes,
            "maxBytes": most_bytes,
            "cut": self.fork.cut().into_iter().map(Value::from).collect::<Vec<_>>(),
        })
    }

    /// The changes of objects that the user may read; of the others only the number.
    async fn changes(&self, app: &App, user: &User) -> Result<Value, Error> {
        let (mut items, mut hidden, mut bytes) = (Vec::new(), 0_u64, 0);
        for change in self.fork.changes() {
            let gvr = change.resource.definition.gvr();
            let attributes = Attributes {
                group: gvr.group(),
                version: gvr.version(),
                resource: &gvr.plural,
                name: change.name(),
                ..Attributes::of_path(user, "get", "")
            };
            let attributes = attributes.within(change.namespace());
            if authorize(&app.door.authorizer, &attributes).await.is_err() {
                hidden += 1;
                continue;
            }
            bytes += change.before.iter().chain(&change.after).map(|object| object.size()).sum::<usize>();
            if bytes > MOST_CHANGES {
                return Err(Error::TooLarge { limit: MOST_CHANGES });
            }
            items.push(change.to_json());
        }
        let (base, newest) = self.fork.revisions();
        Ok(json!({
            "kind": "BranchChanges",
            "apiVersion": API_VERSION,
            "base": base.to_string(),
            "newest": newest.to_string(),
            "hidden": hidden,
            "items": items,
        }))
    }
}

fn resource() -> GroupResource {
    GroupResource::new("rowplane.dev", "branches")
}

fn not_found(name: &str) -> Error {
    Error::NotFound { resource: resource(), name: name.to_owned() }
}
