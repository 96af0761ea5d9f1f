//! Events by which controllers tell what they have done.

use rand::RngExt as _;

use crate::api::decode::Body;
use crate::api::options::write::WriteOptions;
use crate::api::request::Request;
use crate::api::{Api, Target};
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

/// The namespace of events about cluster-scoped objects.
const DEFAULT: &str = "default";

/// The object that an event is about.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    pub api_version: &'a str,
    pub kind: &'a str,
    /// Empty for a cluster-scoped object.
    pub namespace: &'a str,
    pub name: &'a str,
    pub uid: &'a str,
}

/// The contents of an event.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    /// `Normal` or `Warning`.
    pub kind: &'a str,
    pub reason: &'a str,
    pub message: &'a str,
}

/// Writes an event in the name of a controller. One that cannot be written is given up.
pub async fn record(api: &Api, controller: &'static str, about: About<'_>, told: Told<'_>) {
    let Some(events) = api.resources.get(&Gvr::fixed("v1", "events")) else { return };
    let (now, number) = (api.now(), api.runtime.random.with(|rng| rng.random::<u64>()));
    let namespace = if about.namespace.is_empty() { DEFAULT } else { about.namespace };
    let mut involved = json!({
        "kind": about.kind, "apiVersion": about.api_version, "name": about.name, "uid": about.uid,
    });
    if !about.namespace.is_empty() {
        involved["namespace"] = about.namespace.into();
    }
    let event = json!({
        "kind": "Event", "apiVersion": "v1",
        "metadata": {"name": format!("{}.{number:016x}", about.name), "namespace": namespace},
        "involvedObject": involved,
        "type": told.kind, "reason": told.reason, "message": told.message, "count": 1,
        "firstTimestamp": now, "lastTimestamp": now,
        "source": {"component": controller}, "reportingComponent": controller,
    });
    let Value::Object(event) = event else { return };
    let options = WriteOptions { field_manager: Some(controller.to_owned()), ..WriteOptions::default() };
    let request = Request::own(Verb::Create, Target { resource: events, namespace, name: "" }).with(&options);
    if let Err(error) = api.create(&request, Body::Object(&event)).await {
        tracing::debug!(%error, controller, "cannot create an event");
    }
}
