//! The endpoints by their paths.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;

use super::bodies::{duration, fault, fault_shown, name, objects, only, set_time, text};
use super::{Controls, Filter};
use crate::api::Api;
use crate::api::error::Error;
use crate::api::options::query::Query;
use crate::api::verbs::snapshot::Snapshot;
use crate::http::app::App;
use crate::http::branches::paths::{ENDPOINTS, SNAPSHOTS, is_below};
use crate::http::request::body::{Reading, media_type};
use crate::http::request::{query, user};
use crate::http::response;
use crate::http::server::Responder;
use crate::revision::Revision;
use crate::tree::{Map, Value, json};
use crate::user::MASTERS;

/// The name of the server that is asked. No branch has it.
const ITSELF: &str = "-";
/// The first segments below the name of a branch.
const BELOW: [&str; 7] = ["reset", "time", "requests", "faults", "watches", "quiet", "objects"];
/// The longest body but of objects, in bytes.
const LONGEST: usize = 64 << 10;
/// The longest body of objects.
const LONGEST_OBJECTS: usize = 256 << 20;
/// How long `quiet` waits at most.
const LONGEST_PATIENCE: Duration = Duration::from_secs(600);

/// The subject of a path.
pub struct Asked<'a> {
    /// The branch, or the server [itself](ITSELF).
    branch: &'a str,
    path: Vec<&'a str>,
}

impl<'a> Asked<'a> {
    /// `None` for other paths than those of the endpoints.
    pub fn of(path: &'a str) -> Option<Self> {
        let segments = |rest: &'a str| rest.split('/').filter(|segment| !segment.is_empty()).collect();
        if is_below(path, SNAPSHOTS) {
            let mut path: Vec<&str> = segments(&path[SNAPSHOTS.len()..]);
            path.insert(0, "snapshots");
            return Some(Self { branch: ITSELF, path });
        }
        let rest = path.strip_prefix(ENDPOINTS)?.strip_prefix('/')?;
        let (branch, rest) = rest.split_once('/')?;
        let path: Vec<&str> = segments(rest);
        path.first().is_some_and(|first| BELOW.contains(first)).then_some(Self { branch, path })
    }
}

/// The branch that a request is for, whose URL is then as the branch knows it.
pub fn find(app: &App, request: &mut Request) -> Option<Arc<dyn Responder>> {
    app.controls.as_ref()?;
    let asked = Asked::of(request.uri().path()).filter(|asked| asked.branch != ITSELF)?;
    let branch = app.branches.responder(asked.branch).ok()?;
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    *request.uri_mut() = format!("{ENDPOINTS}/{ITSELF}/{}{query}", asked.path.join("/")).parse().ok()?;
    Some(branch)
}

/// Answers a request for this server, or for a branch that is not there.
pub async fn serve(app: &App, asked: Asked<'_>, parts: &Parts, body: Body) -> Response {
    let answered = async {
        let controls = app.controls.as_ref().ok_or(Error::UnknownResource)?;
        if !user(parts).is_in(MASTERS) {
            return Err(Error::ForbiddenPath(format!(
                "the endpoints for tests are for members of {MASTERS}"
            )));
        }
        if asked.branch == ITSELF {
            return answer(app, controls, &asked.path, parts, body).await;
        }
        Err(app.branches.responder(asked.branch).err().unwrap_or(Error::UnknownResource))
    };
    let answered: Result<Response, Error> = answered.await;
    answered.unwrap_or_else(|error| response::failure(&error, parts))
}

async fn answer(
    app: &App,
    controls: &Controls,
    path: &[&str],
    parts: &Parts,
    body: Body,
) -> Result<Response, Error> {
    let api = &app.api;
    let value = match (&parts.method, path) {
        (_, ["snapshots", rest @ ..]) => return snapshots(api, controls, rest, parts, body).await,
        (_, ["requests"]) => return requests(controls, parts, body).await,
        (_, ["faults"]) => return faults(controls, parts, body).await,
        (&Method::POST, ["reset"]) => {
            let wanted = object(body).await?;
            only(&wanted, &["to"])?;
            match (text(&wanted, "to")?, &controls.base) {
                (Some(name), _) => revision(controls.reset(api, &*controls.snapshots.get(&name)?).await?),
                (None, Some(base)) => revision(controls.reset(api, base).await?),
                (None, None) => {
                    return Err(Error::bad_request("to is missing: the name of a snapshot to go back to"));
                }
            }
        }
        (&Method::POST, ["time"]) => {
            set_time(controls, &object(body).await?)?;
            time(app)
        }
        (&Method::GET, ["time"]) => time(app),
        (&Method::POST, ["watches", "close"]) => {
            let wanted = object(body).await?;
            only(&wanted, &["resource"])?;
            json!({"ended": controls.watches.close(text(&wanted, "resource")?.as_deref())})
        }
        (&Method::POST, ["watches", "compact"]) => revision(controls.expire(api).await?),
        (&Method::GET, ["quiet"]) => {
            let query = query(parts);
            let pause = duration(query.get("for"))?.unwrap_or(Duration::from_millis(200));
            let patience = duration(query.get("timeout"))?.unwrap_or(Duration::from_secs(10));
            match Controls::quiet(api, pause, patience.min(LONGEST_PATIENCE)).await {
                Some(newest) => revision(newest),
                None => return Err(Error::Timeout("something is written all the time".to_owned())),
            }
        }
        (&Method::PUT, ["objects"]) => {
            let media = media_type(&parts.headers)?;
            let (body, _) = Reading::new(body, LONGEST_OBJECTS, None).read(|| ()).await?;
            revision(api.seed(&objects(media, &body)?).await?)
        }
        (_, ["time" | "quiet" | "objects" | "reset"]) => return Err(Error::MethodNotAllowed),
        _ => return Err(Error::UnknownResource),
    };
    Ok(done(StatusCode::OK, &value))
}

async fn snapshots(
    api: &Api,
    controls: &Controls,
    path: &[&str],
    parts: &Parts,
    body: Body,
) -> Result<Response, Error> {
    let value = match (&parts.method, path) {
        (&Method::POST, []) => {
            let name = name(&object(body).await?)?;
            let snapshot = api.snapshot().await?;
            let shown = shown(&name, &snapshot);
            controls.snapshots.add(&name, snapshot)?;
            return Ok(done(StatusCode::CREATED, &shown));
        }
        (&Method::GET, []) => {
            let all = controls.snapshots.all();
            json!({"items": all.iter().map(|(name, one)| shown(name, one)).collect::<Vec<_>>()})
        }
        (&Method::DELETE, [name]) => shown(name, &*controls.snapshots.remove(name)?),
        (_, [] | [_]) => return Err(Error::MethodNotAllowed),
        _ => return Err(Error::UnknownResource),
    };
    Ok(done(StatusCode::OK, &value))
}

async fn requests(controls: &Controls, parts: &Parts, body: Body) -> Result<Response, Error> {
    let value = match parts.method {
        Method::POST => {
            let wanted = object(body).await?;
            only(&wanted, &["record"])?;
            let record = wanted.get("record").and_then(Value::as_bool);
            let record = record.ok_or_else(|| Error::bad_request("record has to be true or false"))?;
            controls.recording.switch(record);
            json!({"record": record})
        }
        Method::GET => return Ok(lines(controls, &query(parts))),
        Method::DELETE => {
            controls.recording.clear();
            json!({})
        }
        _ => return Err(Error::MethodNotAllowed),
    };
    Ok(done(StatusCode::OK, &value))
}

async fn faults(controls: &Controls, parts: &Parts, body: Body) -> Result<Response, Error> {
    let value = match parts.method {
        Method::POST => {
            let fault = fault(&object(body).await?)?;
            let shown = fault_shown(&fault);
            controls.faults.add(fault)?;
            return Ok(done(StatusCode::CREATED, &shown));
        }
        Method::GET => json!({"items": controls.faults.all().iter().map(fault_shown).collect::<Vec<_>>()}),
        Method::DELETE => {
            controls.faults.clear();
            json!({})
        }
        _ => return Err(Error::MethodNotAllowed),
    };
    Ok(done(StatusCode::OK, &value))
}

/// The object of a body; empty without a body.
async fn object(body: Body) -> Result<Map, Error> {
    let (body, _) = Reading::new(body, LONGEST, None).read(|| ()).await?;
    if body.is_empty() {
        return Ok(Map::new());
    }
    serde_json::from_slice(&body)
        .map_err(|error| Error::bad_request(format!("the body is no JSON object: {error}")))
}

fn revision(revision: Revision) -> Value {
    json!({"revision": revision.to_string()})
}

fn done(status: StatusCode, value: &Value) -> Response {
    response::json(status, format!("{value}\n"))
}

fn shown(name: &str, snapshot: &Snapshot) -> Value {
    json!({"name": name, "revision": snapshot.state.revision.to_string()})
}

fn time(app: &App) -> Value {
    json!({"now": crate::gotext::micro_time(app.api.runtime.clock.timestamp())})
}

/// The recorded requests, a line each.
fn lines(controls: &Controls, query: &Query) -> Response {
    let named = |name: &str| query.get(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let filter = Filter {
        since: query.text("since").parse().unwrap_or_default(),
        user: named("user"),
        verb: named("verb"),
        resource: named("resource"),
    };
    let requests = controls.recording.requests(&filter);
    let lines: String = requests.iter().map(|request| format!("{}\n", request.to_json())).collect();
    let mut response = Response::new(Body::from(lines));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
    response
}
