//! GET, LIST and WATCH as HTTP.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use super::Context;
use super::action::Action;
use crate::api::error::Error;
use crate::api::options::GetOptions;
use crate::api::options::list::{Collection, ListOptions};
use crate::api::options::watch::{WatchOptions, WatchPath};
use crate::api::resource::Resource;
use crate::api::scale;
use crate::api::verbs::list::List;
use crate::api::{Answer, ObjectMap, Target};
use crate::auth::authn::is_websocket;
use crate::codec::media_type::MediaType;
use crate::http::ask;
use crate::http::request::accept;
use crate::http::response;
use crate::http::response::body::WatchWriter;
use crate::http::response::compress::compress_stream;
use crate::http::response::encode::Encoder;
use crate::http::response::negotiate::{self, Negotiated, Shape, WATCH_ROUTE_TYPES};
use crate::http::response::{body, encode};
use crate::http::server::delivery::SLACK;
use crate::http::websocket::{self, Form};
use crate::metrics::LongRunning;
use crate::schema::names::GroupResource;
use crate::tree::Value;

impl Context<'_> {
    pub async fn get(&self) -> Result<Response, Error> {
        let negotiated = self.negotiate(Shape::Single)?;
        let options = GetOptions::parse(&self.query)?;
        let target = self.target()?;
        self.event("About to Get from storage");
        let object = match self.past {
            None => self.app.api.get(target, options).await?,
            Some(past) => Box::pin(self.get_past(past, target, options)).await?,
        };
        if self.is_scale() {
            let scale = scale::read(target.resource, &target.resource.decode(&object)?)?;
            return self.scale(&negotiated, scale);
        }
        self.answered(StatusCode::OK, self.encoder(&negotiated)?, Answer::Stored(object)).await
    }

    pub async fn list(&self) -> Result<Response, Error> {
        // Upstream lists and watches by one route.
        let negotiated = self.negotiate_of(WATCH_ROUTE_TYPES, Shape::List)?;
        let resource = self.resource;
        let group_resource = resource.group_resource();
        let keys = self.app.api.token_keys_for(self.query.get("continue")).await?;
        let options = ListOptions::parse(&self.query, self.collection(resource, &group_resource), &keys)?;
        let encoder = self.encoder(&negotiated)?;
        let ask = options.selection.ask.clone();
        self.event("About to List from storage");
        let list = match self.past {
            None => self.list_present(options).await?,
            Some(past) => Box::pin(self.list_past(past.revision, options)).await?,
        };
        self.event("Listing from storage done");
        if let Some(warning) = ask.and_then(|ask| ask.filter.as_ref()?.warning()) {
            self.warnings.add(warning);
        }
        let body = self.list_body(encoder, list).await?;
        Ok(response::encoded(StatusCode::OK, negotiated.media, body))
    }

    /// The body of a list. One that an audit policy wants is made as JSON before it is sent.
    pub(super) async fn list_body(&self, encoder: Encoder, list: List) -> Result<Body, Error> {
        let Some(record) = self.record().filter(|record| record.wants_response()) else {
            return body::list(encoder, list, &self.app.printing).await;
        };
        let (media, pretty) = (encoder.media, encoder.pretty);
        let text = body::list(encoder.into_json_encoder(), list, &self.app.printing).await?;
        let text = text.collect().await.map_err(|error| Error::Internal(error.to_string()))?.to_bytes();
        let value: Value = serde_json::from_slice(&text)
            .map_err(|error| Error::Internal(format!("the list is not JSON: {error}")))?;
        let body = match (media, pretty) {
            (MediaType::Json, false) => Body::from(text),
            _ => encode::encode(&value, media, pretty)?.into(),
        };
        record.answered(|| Some(value));
        Ok(body)
    }

    /// The watch, and when its time is up even if nobody reads it.
    pub async fn watch(&self, active: LongRunning) -> Result<(Response, Instant), Error> {
        let accept = accept(&self.parts.headers);
        self.check_route(accept, WATCH_ROUTE_TYPES)?;
        let negotiated = negotiate::negotiate_stream(accept, self.offers())?;
        let resource = self.resource;
        let group_resource = resource.group_resource();
        let path = if self.path.watch { WatchPath::Deprecated } else { WatchPath::Collection };
        let options = WatchOptions::parse(&self.query, self.collection(resource, &group_resource), path)?;
        let encoder = self.encoder(&negotiated)?;
        let streams_list = options.start.streams_list();
        let namespace = self.path.namespace.as_deref();
        let (end, permit) = (self.draining().child_token(), self.permit());
        let frozen = match self.past {
            None => None,
            Some(past) => Some(self.watch_past(past, &options).await?),
        };
        let stop =
            self.app.controls.as_ref().map(|controls| controls.watches.add(group_resource, end.clone()));
        let watch = self.app.api.watch(resource, namespace, options, end).permitted(permit).until(stop);
        let mut watch = match frozen {
            Some(frozen) => watch.of_past(frozen),
            None => watch,
        };
        watch.begin().await;
        let events = self.app.metrics.watch_events(&self.definition.gvr());
        let until = watch.deadline() + SLACK;
        let media = encoder.media;
        let writer = WatchWriter::new(encoder, watch, events, active);
        if is_websocket(&self.parts.headers) {
            let form = if media == MediaType::Protobuf { Form::Binary } else { Form::Text };
            let response = match websocket::accept_watch(self.parts, form) {
                Ok(accepted) => websocket::answer(self.parts, accepted, body::watch_messages(writer))?,
                Err(refusal) => *refusal,
            };
            return Ok((response, until));
        }
        let mut response = Response::new(body::watch(writer));
        let content_type = negotiated.media.stream_content_type().unwrap_or("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        if streams_list {
            response = compress_stream(&self.parts.headers, response);
        }
        Ok((response, until))
    }

    /// The object that the path names.
    pub(super) fn target(&self) -> Result<Target<'_>, Error> {
        let name = self.path.name.as_deref().ok_or(Error::MethodNotAllowed)?;
        Ok(Target { resource: self.resource, namespace: self.path.namespace_text(), name })
    }

    pub(super) fn collection<'b>(
        &'b self,
        resource: &'b Resource,
        group_resource: &'b GroupResource,
    ) -> Collection<'b> {
        Collection {
            resource: group_resource,
            namespaced: self.definition.namespaced(),
            namespace: self.path.namespace.as_deref(),
            name: self.path.name.as_deref(),
            fields: &resource.behavior.fields,
            door: self.past.map(|past| past.revision),
            ask: self.asks().then_some(&self.definition.kind),
        }
    }

    /// Whether the request has the parameters of the door `/ask/`.
    fn asks(&self) -> bool {
        let is_listed = matches!(self.action, Action::List | Action::Watch) && !self.is_computed();
        is_listed && ask::Door::of(self.parts).is_some()
    }

    pub(super) fn scale(&self, negotiated: &Negotiated, scale: ObjectMap) -> Result<Response, Error> {
        let pretty = self.pretty || negotiated.pretty;
        let scale = Value::Object(scale);
        if let Some(record) = self.record() {
            record.answered(|| Some(scale.clone()));
        }
        let body = encode::scale(self.resource, scale, self.form_asked(negotiated), pretty)?;
        Ok(response::encoded(StatusCode::OK, negotiated.media, body))
    }

    /// An object of no stored resource: a review, a Status.
    pub(super) fn value(
        &self,
        negotiated: &Negotiated,
        status: StatusCode,
        object: Value,
    ) -> Result<Response, Error> {
        if let Some(record) = self.record() {
            match object.get("kind").and_then(Value::as_str) {
                Some("Status") => record.answered_status(&object),
                _ => record.answered(|| Some(object.clone())),
            }
        }
        let body = encode::encode(&object, negotiated.media, self.pretty || negotiated.pretty)?;
        Ok(response::encoded(status, negotiated.media, body))
    }
}
