//! GET and LIST of ComponentStatuses, which are found out and not stored.

use axum::http::StatusCode;
use axum::response::Response;

use super::Context;
use crate::api::error::Error;
use crate::api::options::list::ListOptions;
use crate::api::{Answer, ObjectMap};
use crate::http::response;
use crate::http::response::encode;
use crate::http::response::negotiate::{Shape, WATCH_ROUTE_TYPES};
use crate::tree::{Value, json};

impl Context<'_> {
    /// Whether objects of the resource are found out when somebody asks.
    pub(super) fn is_computed(&self) -> bool {
        self.is_virtual() && self.definition.verbs.contains(&crate::schema::resource::Verb::Get)
    }

    pub(super) async fn get_computed(&self) -> Result<Response, Error> {
        let negotiated = self.negotiate(Shape::Single)?;
        let target = self.target()?;
        let found = self.app.api.component_statuses().await.into_iter().find(|one| name(one) == target.name);
        let Some(found) = found else {
            // Upstream names the kind in the singular here.
            let resource = crate::schema::names::GroupResource::new("", "componentstatus");
            return Err(Error::NotFound { resource, name: target.name.to_owned() });
        };
        let object = Answer::Unstored(self.with_kind(found));
        self.answered(StatusCode::OK, self.encoder(&negotiated)?, object).await
    }

    pub(super) async fn list_computed(&self) -> Result<Response, Error> {
        let negotiated = self.negotiate_of(WATCH_ROUTE_TYPES, Shape::List)?;
        let group_resource = self.resource.group_resource();
        let keys = self.app.api.token_keys_for(None).await?;
        let options =
            ListOptions::parse(&self.query, self.collection(self.resource, &group_resource), &keys)?;
        let (selection, encoder) = (options.selection, self.encoder(&negotiated)?);
        let mut shown = Vec::new();
        for status in self.app.api.component_statuses().await {
            let is_selected = selection.name.as_ref().is_none_or(|wanted| *wanted == name(&status))
                && selection.labels.matches(|_| None)
                && selection.fields.matches(|field| match field {
                    "metadata.name" => name(&status).to_owned().into(),
                    _ => "".into(),
                });
            if is_selected {
                shown.push(encoder.value(&Answer::Unstored(self.with_kind(status)))?);
            }
        }
        let list = self.list_of(shown);
        if let Some(record) = self.record() {
            record.answered(|| Some(list.clone()));
        }
        let body = encode::encode(&list, encoder.media, encoder.pretty)?;
        Ok(response::encoded(StatusCode::OK, negotiated.media, body))
    }

    fn with_kind(&self, object: ObjectMap) -> ObjectMap {
        self.definition.gvk().claims().into_iter().chain(object).collect()
    }

    /// A list of what single answers show: objects, their metadata, or tables of a row each.
    fn list_of(&self, mut shown: Vec<Value>) -> Value {
        let kind = |value: &Value| value["kind"].as_str().unwrap_or_default().to_owned();
        if shown.first().map(kind).as_deref() == Some("Table") {
            let mut table = shown.remove(0);
            let more: Vec<Value> =
                shown.iter().flat_map(|one| one["rows"].as_array().cloned().unwrap_or_default()).collect();
            if let Some(rows) = table["rows"].as_array_mut() {
                rows.extend(more);
            }
            return table;
        }
        let of_metadata = shown.first().map(kind).as_deref() == Some("PartialObjectMetadata");
        let (kind, version) = match of_metadata {
            true => ("PartialObjectMetadataList", "meta.k8s.io/v1"),
            false => (&*self.definition.list_kind, "v1"),
        };
        for object in shown.iter_mut().filter(|_| !of_metadata).filter_map(Value::as_object_mut) {
            object.shift_remove("kind");
            object.shift_remove("apiVersion");
        }
        json!({"kind": kind, "apiVersion": version, "metadata": {}, "items": shown})
    }
}

fn name(object: &ObjectMap) -> &str {
    crate::fields::text(object, &["metadata", "name"])
}
