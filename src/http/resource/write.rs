//! POST, PUT, PATCH and DELETE as HTTP.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

use super::Context;
use crate::api::Answer;
use crate::api::decode::{self, Encoded};
use crate::api::error::Error;
use crate::api::options::ask::is_asked;
use crate::api::options::delete::{DeleteOptions, IGNORE_READ_ERROR};
use crate::api::options::list::ListOptions;
use crate::api::options::write::WriteOptions;
use crate::api::resource::Resource;
use crate::api::verbs::delete::Deleted;
use crate::api::write::outcome::{Modified, Outcome};
use crate::codec::yaml;
use crate::http::ask;
use crate::http::request::body::media_type;
use crate::http::request::header_text;
use crate::http::response;
use crate::http::response::body as bodies;
use crate::http::response::encode::{Encoder, encode_json};
use crate::http::response::negotiate::{self, Negotiated, PatchTarget, Shape};
use crate::http::response::status::{deleted, deleted_unread, done};
use crate::json::text::write_compact;
use crate::kinds::behavior::deletion::Dependents;
use crate::patch::PatchKind;
use crate::schema::resource::Origin;
use crate::tree::{Value, json};

impl Context<'_> {
    pub async fn create(&self, body: Body) -> Result<Response, Error> {
        let negotiated = self.negotiate(Shape::Single)?;
        let media = media_type(&self.parts.headers)?;
        let options = WriteOptions::parse_create(&self.query)?.or_agent(self.agent());
        let body = Encoded { media, bytes: self.read(body).await? };
        if self.act(&body, &options).await? {
            return self.value(&negotiated, StatusCode::CREATED, done());
        }
        if self.is_token_request() {
            let answer = self.app.api.request_token(&self.request(&options), &body).await?;
            return self.value(&negotiated, StatusCode::CREATED, Value::Object(answer));
        }
        if self.is_virtual() {
            let authenticator = &self.app.door.authenticator;
            let answer = self.app.api.review(&self.request(&options), &body, authenticator).await?;
            return self.value(&negotiated, StatusCode::CREATED, Value::Object(answer));
        }
        let encoder = self.encoder(&negotiated)?;
        self.event("About to store object in database");
        let answer = self.app.api.create(&self.request(&options), decode::Body::Encoded(&body)).await?;
        self.event("Write to database call succeeded");
        self.answered(StatusCode::CREATED, encoder, answer).await
    }

    pub async fn update(&self, body: Body) -> Result<Response, Error> {
        let negotiated = self.negotiate(Shape::Single)?;
        let media = media_type(&self.parts.headers)?;
        let options = WriteOptions::parse_update(&self.query)?.or_agent(self.agent());
        let body = Encoded { media, bytes: self.read(body).await? };
        let request = self.request(&options);
        self.event("About to store object in database");
        let modified = self.app.api.update(&request, decode::Body::Encoded(&body)).await?;
        self.event("Write to database call succeeded");
        self.modified(&negotiated, modified).await
    }

    pub async fn patch(&self, body: Body) -> Result<Response, Error> {
        let content_type = header_text(&self.parts.headers, header::CONTENT_TYPE);
        let kind = negotiate::patch_kind(content_type, self.patch_target())?;
        let negotiated = self.negotiate(Shape::Single)?;
        let bytes = self.read(body).await?;
        if let Some(record) = self.record() {
            record.requested_text(|| patch_text(kind, &bytes));
        }
        let options = WriteOptions::parse_patch(&self.query, kind)?.or_agent(self.agent());
        let modified = self.app.api.patch(&self.request(&options), kind, &bytes).await?;
        self.event("Object stored in database");
        self.modified(&negotiated, modified).await
    }

    fn patch_target(&self) -> PatchTarget {
        match self.definition.origin {
            Origin::BuiltIn => PatchTarget::BuiltIn,
            Origin::Custom => PatchTarget::Custom,
        }
    }

    pub async fn delete(&self, body: Body) -> Result<Response, Error> {
        let negotiated = self.negotiate(Shape::Single)?;
        let options = self.delete_options(body).await?;
        self.event("Decoded delete options");
        let target = self.target()?;
        self.warn_of_deletion(target.resource, &options);
        let encoder = self.encoder(&negotiated)?;
        self.event("About to delete object from database");
        let deleted_object = self.app.api.delete(&self.request(&options)).await?;
        self.event("Object deleted from database");
        match deleted_object {
            Deleted::Gone { uid } => {
                let status = deleted(&target.resource.group_resource(), target.name, &uid);
                self.value(&negotiated, StatusCode::OK, status)
            }
            Deleted::Object(object) => self.answered(StatusCode::OK, encoder, object).await,
            Deleted::Waiting(object) => self.answered(StatusCode::ACCEPTED, encoder, object).await,
            Deleted::Unread => {
                let status = deleted_unread(&self.definition.gvk().kind, target.name);
                self.value(&negotiated, StatusCode::OK, status)
            }
        }
    }

    pub async fn delete_collection(&self, body: Body) -> Result<Response, Error> {
        if ask::Door::of(self.parts).is_some() && is_asked(&self.query) {
            // As ordinary parameters they would mean nothing, and everything would be deleted.
            let why =
                "parameters of rowplane are for lists and watches; a collection cannot be deleted by them";
            return Err(Error::bad_request(why));
        }
        let negotiated = self.negotiate(Shape::List)?;
        let resource = self.resource;
        let group_resource = resource.group_resource();
        let keys = self.app.api.token_keys_for(self.query.get("continue")).await?;
        let list = ListOptions::parse(&self.query, self.collection(resource, &group_resource), &keys)?;
        let options = self.delete_options(body).await?;
        options.refuse_unread()?;
        self.warn_of_deletion(resource, &options);
        let encoder = self.encoder(&negotiated)?;
        let namespace = self.path.namespace.as_deref();
        let request = self.request(&options);
        let list = self.app.api.delete_collection(&request, resource, namespace, list).await?;
        match self.list_body(encoder, list).await {
            Ok(body) => Ok(response::encoded(StatusCode::OK, negotiated.media, body)),
            // All that is left is to show the objects, for which a webhook was needed.
            Err(_) if resource.hooked().is_some() => self.value(&negotiated, StatusCode::OK, done()),
            Err(error) => Err(error),
        }
    }

    fn warn_of_deletion(&self, resource: &Resource, options: &DeleteOptions) {
        if options.dependents == Dependents::Unspecified
            && let Some(text) = resource.behavior.warnings.unspecified_dependents
        {
            self.warnings.add(text);
        }
    }

    async fn delete_options(&self, body: Body) -> Result<DeleteOptions, Error> {
        let bytes = self.read(body).await?;
        if bytes.is_empty() {
            return DeleteOptions::parse(None, &self.query);
        }
        let media = media_type(&self.parts.headers)?;
        let body = decode::options(&Encoded { media, bytes })?;
        if let Some(record) = self.record() {
            record.requested_text(|| Some(encode_json(&recorded_options(&body), false).into()));
        }
        DeleteOptions::parse(Some(&body), &self.query)
    }

    async fn modified(&self, negotiated: &Negotiated, modified: Modified) -> Result<Response, Error> {
        let Modified { answer, outcome } = modified;
        match answer {
            Answer::Unstored(scale) if self.is_scale() => self.scale(negotiated, scale),
            answer => {
                let status = if outcome == Outcome::Created { StatusCode::CREATED } else { StatusCode::OK };
                self.answered(status, self.encoder(negotiated)?, answer).await
            }
        }
    }

    pub(super) async fn answered(
        &self,
        status: StatusCode,
        encoder: Encoder,
        answer: Answer,
    ) -> Result<Response, Error> {
        self.event("About to write a response");
        let media = encoder.media;
        if let Some(record) = self.record().filter(|record| record.wants_response()) {
            let value = encoder.value(&answer)?;
            record.answered(|| Some(value));
        }
        Ok(response::encoded(status, media, bodies::object(encoder, answer, &self.app.printing).await?))
    }

    pub(super) fn agent(&self) -> Option<&str> {
        header_text(&self.parts.headers, header::USER_AGENT)
    }

    pub(super) fn is_scale(&self) -> bool {
        self.path.subresource.as_deref() == Some("scale")
    }
}

/// A patch as JSON. Server-side apply sends YAML.
fn patch_text(kind: PatchKind, body: &Bytes) -> Option<Bytes> {
    match kind {
        PatchKind::Apply => Some(encode_json(&yaml::parse(body).ok()?, false).into()),
        _ => {
            serde_json::from_slice::<&serde_json::value::RawValue>(body).ok()?;
            let mut text = Vec::with_capacity(body.len());
            write_compact(&mut text, body);
            Some(text.into())
        }
    }
}

/// DeleteOptions as upstream records them: in the version that it decodes them to.
fn recorded_options(body: &Value) -> Value {
    const FIELDS: [&str; 6] = [
        "gracePeriodSeconds",
        "preconditions",
        "orphanDependents",
        "propagationPolicy",
        "dryRun",
        IGNORE_READ_ERROR,
    ];
    let mut options = json!({"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/__internal"});
    for field in FIELDS {
        if let Some(value) = body.get(field).filter(|value| !value.is_null()) {
            options[field] = value.clone();
        }
    }
    options
}
