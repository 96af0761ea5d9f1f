//! The changes of many objects, newest first: only those of kinds that the caller may list, now and in the past.

use std::collections::HashMap;

use axum::http::request::Parts;

use super::{document, versions};
use crate::api::error::Error;
use crate::api::options::query::Query;
use crate::api::resource::Resource;
use crate::api::verbs::past::history::Page;
use crate::auth::authorizer::{Attributes, authorize};
use crate::gotext;
use crate::http::app::App;
use crate::http::past::LOOK_BACK;
use crate::http::request::{query, user};
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::{ChangeFilter, ChangeOfPast, ResourceId};
use crate::tree::{Value, json};
use crate::user::User;

/// The most changes that one request looks at, whether they are selected or not; the answer then has a token to go on.
const LOOKED_AT: usize = 5000;
const PAGE: u32 = 500;

/// The changes that a request selects.
struct Selection {
    namespace: Option<String>,
    user: String,
    /// Whether changes of the status alone are left out.
    not_status: bool,
    /// The only kinds; empty for all.
    resources: Vec<String>,
    excluded: Vec<String>,
}

impl Selection {
    fn parse(query: &Query) -> Self {
        let names = |name: &str| -> Vec<String> {
            query.text(name).split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
        };
        let namespace = Some(query.text("namespace")).filter(|name| !name.is_empty());
        Self {
            namespace: namespace.map(str::to_owned),
            user: query.text("user").to_owned(),
            not_status: query.flag("notStatus").unwrap_or(false),
            resources: names("resource"),
            excluded: names("exclude"),
        }
    }

    fn wants(&self, resource: &GroupResource) -> bool {
        let name = resource.to_string();
        (self.resources.is_empty() || self.resources.contains(&name)) && !self.excluded.contains(&name)
    }

    fn shows(&self, entry: &Value) -> bool {
        (self.user.is_empty() || entry["user"] == self.user.as_str())
            && !(self.not_status && is_of_status(entry))
    }
}

/// Whether an entry tells of nothing but the status.
fn is_of_status(entry: &Value) -> bool {
    let Some(changed) = entry["changed"].as_array() else { return false };
    let is_status = |path: &Value| {
        path.as_str().is_some_and(|path| {
            path == "status" || path.starts_with("status.") || path.starts_with("status[")
        })
    };
    changed.iter().all(is_status)
}

pub(super) async fn list(app: &App, parts: &Parts) -> Result<Value, Error> {
    let query = query(parts);
    let (selection, wanted) = (Selection::parse(&query), versions(&query)?);
    let (allowed, refused) = permitted(app, &user(parts), &selection).await?;
    let _read = app.past_reads.turn(tokio::time::Instant::now() + app.limits.request_time).await?;
    let only = match allowed.keys().collect::<Vec<_>>().as_slice() {
        [only] => Some(**only),
        _ => None,
    };
    let filter = ChangeFilter { resource: only, namespace: selection.namespace.as_deref().map(Into::into) };
    let (mut entries, mut before, mut looked_at) = (Vec::new(), wanted.before, 0);
    let rest = 'pages: loop {
        let changes = app.api.changes_between(&filter, before, wanted.after, PAGE).await?;
        for change in &changes {
            before = Some(change.revision);
            looked_at += 1;
            if let Some(resource) = allowed.get(&change.resource)
                && let Some(entry) = app.api.entry_of_change(resource, change, wanted.include).await?
                && selection.shows(&entry)
            {
                entries.push(named(resource, change, entry));
            }
            if entries.len() == wanted.limit as usize || looked_at == LOOKED_AT {
                break 'pages before;
            }
        }
        if changes.len() < PAGE as usize {
            break None;
        }
    };
    let mut answer = document("ChangeList", app.api.cache.revision(), Page { entries, rest });
    if !refused.is_empty() {
        answer["warnings"] = json!([format!(
            "left out, since {} may not read their history: {}",
            gotext::quote(&user(parts).name),
            refused.join(", ")
        )]);
    }
    Ok(answer)
}

/// The entry with the object that it is about, in front.
fn named(resource: &Resource, change: &ChangeOfPast, entry: Value) -> Value {
    let mut whole = json!({"resource": resource.group_resource().to_string(), "name": &*change.name});
    if !change.namespace.is_empty() {
        whole["namespace"] = (*change.namespace).into();
    }
    if let (Some(whole), Value::Object(entry)) = (whole.as_object_mut(), entry) {
        whole.extend(entry);
    }
    whole
}

type Allowed = HashMap<ResourceId, std::sync::Arc<Resource>>;

/// The selected resources of which the user may see the changes, and the names of the others.
pub(super) async fn permitted_all(app: &App, user: &User) -> Result<Allowed, Error> {
    let all = Selection::parse(&Query::parse(""));
    permitted(app, user, &all).await.map(|(allowed, _)| allowed)
}

async fn permitted(app: &App, user: &User, selection: &Selection) -> Result<(Allowed, Vec<String>), Error> {
    let served = app.api.served_everywhere().await?;
    let (mut allowed, mut refused) = (HashMap::new(), Vec::new());
    for resource in served.stored() {
        let name = resource.group_resource();
        let is_elsewhere = selection.namespace.is_some() && !resource.definition.namespaced();
        if !selection.wants(&name) || is_elsewhere {
            continue;
        }
        let attributes = Attributes {
            verb: "list",
            group: resource.definition.group(),
            version: resource.definition.group_version().version(),
            resource: &resource.definition.plural,
            namespace: selection.namespace.as_deref().unwrap_or_default(),
            ..Attributes::of_path(user, "list", "")
        };
        let look_back = Attributes { verb: LOOK_BACK, ..attributes };
        let authorizer = &app.door.authorizer;
        match authorize(authorizer, &attributes).await.is_ok()
            && authorize(authorizer, &look_back).await.is_ok()
        {
            true => _ = allowed.insert(resource.id, resource.clone()),
            false => refused.push(name.to_string()),
        }
    }
    if let Some(unknown) = selection.resources.iter().find(|name| {
        let is_named = |resource: &std::sync::Arc<Resource>| resource.group_resource().to_string() == **name;
        !served.stored().any(is_named)
    }) {
        return Err(Error::BadRequest(format!(
            "resource: {} is not served; it has to be PLURAL or PLURAL.GROUP, as deployments.apps",
            gotext::quote(unknown)
        )));
    }
    if allowed.is_empty() {
        return Err(Error::ForbiddenPath(format!(
            "forbidden: User {} may list none of these resources as of the past",
            gotext::quote(&user.name)
        )));
    }
    Ok((allowed, refused))
}

/// The oldest revision at which any of the resources can be read.
pub(super) async fn oldest(app: &App, allowed: &Allowed) -> Result<Revision, Error> {
    let mut oldest = None;
    for resource in allowed.values() {
        let floor = app.api.floor(resource).await?;
        oldest = oldest.into_iter().chain([floor]).min();
    }
    Ok(oldest.unwrap_or_default())
}
