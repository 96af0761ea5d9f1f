//! `/history`: the changes of an object (`/history/<path of the object>`), those of a namespace or a cluster, and their
//! range. JSON alone.

mod changes;
mod range;

use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;

use crate::api::Target;
use crate::api::error::Error;
use crate::api::options::query::Query;
use crate::api::verbs::past::history::{Include, Page, Versions};
use crate::gotext;
use crate::http::app::App;
use crate::http::request::info::RequestInfo;
use crate::http::request::path::{ApiPath, ResourcePath};
use crate::http::request::query;
use crate::http::response;
use crate::http::response::compress::compress;
use crate::revision::Revision;
use crate::schema::resource::Storage;
use crate::tree::{Value, json};

/// The version of the answers.
const API_VERSION: &str = "history.rowplane.dev/v1alpha1";
const USUAL_LIMIT: u32 = 50;
const MOST: u32 = 500;
/// The path of the changes of many objects; `/range` may follow.
pub const CHANGES: &str = "/history";
pub const RANGE: &str = "/history/range";

/// Answers a request that was let in.
pub async fn serve(app: &App, info: &RequestInfo, parts: &Parts) -> Response {
    let answered = match &info.route {
        _ if parts.method != Method::GET => Err(Error::MethodNotAllowed),
        Some(ApiPath::Resource(path)) => history(app, path, parts).await,
        _ => match parts.uri.path() {
            CHANGES => changes::list(app, parts).await,
            RANGE => range::range(app, parts).await,
            _ => return response::not_found(),
        },
    };
    match answered {
        Ok(value) => {
            let text =
                crate::http::response::encode::encode_json(&value, crate::http::request::pretty(parts));
            compress(&parts.headers, response::json(StatusCode::OK, text))
        }
        Err(error) => response::failure(&error, parts),
    }
}

/// The history of one object, also of one that is gone.
async fn history(app: &App, path: &ResourcePath, parts: &Parts) -> Result<Value, Error> {
    let served = app.api.served_everywhere().await?;
    let resource = served.find(&path.resource).ok_or(Error::UnknownResource)?;
    let is_object = path.subresource.is_none() && !path.watch && !path.proxy;
    let (true, Some(name)) = (is_object && resource.definition.storage != Storage::Virtual, &path.name)
    else {
        return Err(Error::bad_request("a history is that of one object: /history/<path of the object>"));
    };
    if resource.definition.namespaced() != path.namespace.is_some() {
        return Err(Error::UnknownResource);
    }
    let wanted = versions(&query(parts))?;
    let target = Target { resource, namespace: path.namespace_text(), name };
    let _read = app.past_reads.turn(tokio::time::Instant::now() + app.limits.request_time).await?;
    let page = app.api.history(target, wanted).await?;
    if page.entries.is_empty() && wanted.before.is_none() && wanted.after == Revision(0) {
        return Err(target.not_found());
    }
    Ok(document("ObjectHistory", app.api.cache.revision(), page))
}

fn document(kind: &str, revision: Revision, page: Page) -> Value {
    let rest = page.rest.map(|rest| rest.to_string()).unwrap_or_default();
    let metadata = json!({"resourceVersion": revision.to_string(), "continue": rest});
    json!({"kind": kind, "apiVersion": API_VERSION, "metadata": metadata, "items": page.entries})
}

/// The parameters `limit`, `after`, `before`, `continue`, `include` and `diff`.
fn versions(query: &Query) -> Result<Versions, Error> {
    let number = |name: &str| match query.text(name) {
        "" => Ok(None),
        text => gotext::parse_uint(text).map(Some).map_err(|why| {
            Error::BadRequest(format!("{name}: invalid value {}: {why}", gotext::quote(text)))
        }),
    };
    let include = match query.text("include") {
        "" => false,
        "object" => true,
        other => return Err(Error::BadRequest(format!("include: {} is not object", gotext::quote(other)))),
    };
    let before = [number("before")?, number("continue")?].into_iter().flatten().min();
    let limit = number("limit")?.filter(|limit| *limit > 0).map_or(USUAL_LIMIT.into(), |limit| limit);
    Ok(Versions {
        before: before.map(Revision),
        after: Revision(number("after")?.unwrap_or_default()),
        limit: u32::try_from(limit).unwrap_or(MOST).min(MOST),
        include: Include { object: include, patch: query.flag("diff").unwrap_or(false) },
    })
}
