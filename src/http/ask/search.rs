//! `GET /ask/search`: the objects of all kinds that a user may list in whose strings a text is, as a Table.

use std::num::NonZeroU64;

use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use futures_util::TryStreamExt as _;
use tokio::time::{Instant, timeout_at};

use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::api::options::ask::Ask;
use crate::api::options::list::{ListAt, ListOptions, Selection};
use crate::api::resource::Resource;
use crate::codec::object::Object;
use crate::gotext;
use crate::http::app::App;
use crate::http::past::{LOOK_BACK, Past};
use crate::http::request::{pretty, query, user};
use crate::http::response;
use crate::http::response::compress::compress;
use crate::http::response::encode::encode_json;
use crate::http::visible::{Viewer, Visible, all_namespaces};
use crate::revision::Revision;
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

const USUAL_LIMIT: u64 = 100;
const MOST: u64 = 1000;

/// The parameters of a search.
struct Search {
    text: String,
    /// The only kinds, as `deployments.apps`; empty for all.
    resources: Vec<String>,
    namespace: Option<String>,
    limit: u64,
}

/// The found objects.
#[derive(Default)]
struct Found {
    rows: Vec<Value>,
    /// How many there are in all.
    all: u64,
    /// The newest of the states that were looked at.
    revision: Revision,
}

/// Answers a search of the present, or of a past state.
pub async fn serve(app: &App, past: Option<&Past>, parts: &Parts) -> Response {
    let until = Instant::now() + app.limits.request_time;
    let answered = timeout_at(until, Box::pin(table(app, past, parts, until))).await;
    match answered.unwrap_or_else(|_| Err(Error::deadline())) {
        Ok(table) => {
            let text = encode_json(&table, pretty(parts));
            compress(&parts.headers, response::json(StatusCode::OK, text))
        }
        Err(error) => response::failure(&error, parts),
    }
}

async fn table(app: &App, past: Option<&Past>, parts: &Parts, until: Instant) -> Result<Value, Error> {
    if parts.method != Method::GET {
        return Err(Error::MethodNotAllowed);
    }
    let search = Search::parse(parts)?;
    let served = match past {
        Some(past) => past.served.clone(),
        None => app.api.served_as_known().await,
    };
    let _read = match past {
        Some(_) => Some(app.past_reads.turn(until).await?),
        None => None,
    };
    let mut found = Found::default();
    for (resource, namespace) in search.places(app, &served, past.is_some(), parts).await? {
        search.find(app, resource, namespace.as_deref(), past, &mut found).await?;
    }
    let rest = found.all - found.rows.len() as u64;
    let mut metadata = json!({"resourceVersion": found.revision.to_string()});
    if rest > 0 {
        metadata["remainingItemCount"] = rest.into();
    }
    let column =
        |name: &str| json!({"name": name, "type": "string", "format": "", "description": "", "priority": 0});
    Ok(json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": ["Namespace", "Resource", "Name"].map(column),
        "rows": found.rows,
    }))
}

impl Search {
    fn parse(parts: &Parts) -> Result<Self, Error> {
        let query = query(parts);
        let text = query.text("q");
        if text.is_empty() {
            return Err(Error::bad_request("q: give the text that is looked for"));
        }
        let limit = match query.integer("limit")?.and_then(|limit| u64::try_from(limit).ok()) {
            None | Some(0) => USUAL_LIMIT,
            Some(limit) => limit.min(MOST),
        };
        let names = query.text("resources").split(',').filter(|name| !name.is_empty());
        let namespace = Some(query.text("namespace")).filter(|name| !name.is_empty());
        Ok(Self {
            text: text.to_owned(),
            resources: names.map(str::to_owned).collect(),
            namespace: namespace.map(str::to_owned),
            limit,
        })
    }

    /// The resources to look at, and the namespace, if it is one. Only what the user may list.
    async fn places<'s>(
        &self,
        app: &App,
        served: &'s Served,
        is_past: bool,
        parts: &Parts,
    ) -> Result<Vec<(&'s std::sync::Arc<Resource>, Option<String>)>, Error> {
        let user = user(parts);
        let viewer = Viewer { authorizer: &app.door.authorizer, user: &user };
        let verbs: &[&str] = if is_past { &["list", LOOK_BACK] } else { &["list"] };
        let namespaces = match &self.namespace {
            Some(namespace) => [namespace.clone()].into(),
            None => all_namespaces(&app.api.catalog.served(), &*app.api.cache.fresh_for_request().await?),
        };
        let is_listed = |resource: &&std::sync::Arc<Resource>| {
            resource.definition.is_discoverable && resource.definition.allows(Verb::List)
        };
        let mut resources: Vec<_> = served.stored().filter(is_listed).collect();
        resources.sort_by_cached_key(|resource| resource.group_resource().to_string());
        for wanted in &self.resources {
            if !resources.iter().any(|resource| resource.group_resource().to_string() == *wanted) {
                let wanted = gotext::quote(wanted);
                let why = "it has to be PLURAL or PLURAL.GROUP, as deployments.apps";
                return Err(Error::BadRequest(format!("resources: {wanted} is not served; {why}")));
            }
        }
        let mut places = Vec::new();
        for resource in resources {
            let is_wanted =
                self.resources.is_empty() || self.resources.contains(&resource.group_resource().to_string());
            if !is_wanted || (self.namespace.is_some() && !resource.definition.namespaced()) {
                continue;
            }
            match viewer.visible(resource, verbs, &namespaces).await? {
                Visible::Everything => places.push((resource, self.namespace.clone())),
                Visible::Namespaces(names) => {
                    places.extend(names.iter().map(|name| (resource, Some(name.as_ref().to_owned()))));
                }
                Visible::Nothing => {}
            }
        }
        Ok(places)
    }

    async fn find(
        &self,
        app: &App,
        resource: &std::sync::Arc<Resource>,
        namespace: Option<&str>,
        past: Option<&Past>,
        found: &mut Found,
    ) -> Result<(), Error> {
        let selection = Selection { ask: Some(Ask::search(&self.text)), ..Selection::default() };
        let room = self.limit - found.rows.len() as u64;
        let limit = Some(NonZeroU64::new(room).unwrap_or(NonZeroU64::MIN));
        let options = ListOptions { selection, at: ListAt::Latest, limit };
        let list = match past {
            None => app.api.list(resource, namespace, options).await?,
            Some(past) => app.api.list_as_of(resource, namespace, options, past.revision).await?,
        };
        found.revision = found.revision.max(list.revision);
        let objects = list.items.try_concat().await?;
        found.all += objects.len() as u64 + list.remaining.unwrap_or_default();
        let rows = objects.iter().map(|object| row(resource, object));
        found.rows.extend(rows.take(usize::try_from(room).unwrap_or(usize::MAX)));
        Ok(())
    }
}

/// A row with a reference to the object.
fn row(resource: &Resource, object: &Object) -> Value {
    let name = resource.group_resource().to_string();
    let mut metadata = json!({"name": object.name(), "resourceVersion": object.revision().to_string()});
    if !object.namespace().is_empty() {
        metadata["namespace"] = object.namespace().into();
    }
    if let Some(uid) = object.uid() {
        metadata["uid"] = uid.into();
    }
    let definition = &resource.definition;
    json!({
        "cells": [object.namespace(), name, object.name()],
        "object": {"kind": definition.kind_name(), "apiVersion": definition.api_version().as_str(),
            "metadata": metadata},
    })
}
