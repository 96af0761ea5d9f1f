//! POST, PUT, PATCH and DELETE as HTTP.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;

use super::Context;
use super::action::Action;
use crate::api::Answer;
use crate::api::apply::Applier;
use crate::api::decode::{Encoded, object, options, typed_object};
use crate::api::delete::Deleted;
use crate::api::error::Error;
use crate::api::modify::Outcome;
use crate::api::options::delete::DeleteOptions;
use crate::api::options::list::ListOptions;
use crate::api::options::write::{PatchOptions, WriteOptions};
use crate::api::part::Part;
use crate::api::reviews::Reviewer;
use crate::api::strictness::{Requester, Strictness};
use crate::api::warnings::of_deletion;
use crate::codec::managed;
use crate::http::encode::Encoder;
use crate::http::negotiate::{self, Negotiated, PatchTarget, Shape};
use crate::http::request::header_text;
use crate::http::request_body::media_type;
use crate::http::status::deleted;
use crate::http::{body as bodies, response};
use crate::patch::PatchKind;
use crate::tree::Value;

impl Context<'_> {
    pub async fn create(&self, body: Body) -> Result<Response, Error> {
        let negotiated = self.negotiate(Shape::Single)?;
        let media = media_type(&self.parts.headers)?;
        let options = WriteOptions::parse_create(&self.query)?.or_agent(self.agent());
        let body = Encoded { media, bytes: self.read(body).await? };
        if let Some(answer) = self.act(&body, &options).await? {
            return self.value(&negotiated, StatusCode::CREATED, answer);
        }
        let mut object = object(self.definition, &body, self.strictness(&options))?;
        if self.is_virtual() {
            managed::open(&mut object);
            let namespace = self.path.namespace.as_deref();
            let review = Reviewer {
                user: &self.user,
                authorizer: &*self.app.door.authorizer,
                authenticator: &self.app.door.authenticator,
            };
            let answer = review.answer(self.definition, namespace, object)?;
            return self.value(&negotiated, StatusCode::CREATED, Value::Object(answer));
        }
        let encoder = self.encoder(&negotiated)?;
        let answer = self
            .app
            .api
            .create(self.resource()?, self.path.namespace_text(), object, &options, self.requester())
            .await?;
        self.answered(StatusCode::CREATED, encoder, answer).await
    }

    pub async fn update(&self, body: Body) -> Result<Response, Error> {
        let negotiated = self.negotiate(Shape::Single)?;
        let media = media_type(&self.parts.headers)?;
        let options = WriteOptions::parse_update(&self.query)?.or_agent(self.agent());
        let body = Encoded { media, bytes: self.read(body).await? };
        let target = self.target()?;
        if self.is_scale() {
            let scale = typed_object(self.subresource_kind()?, &body, self.strictness(&options))?;
            let scale = self.app.api.update_scale(target, scale, &options, self.requester()).await?;
            return self.value(&negotiated, StatusCode::OK, Value::Object(scale));
        }
        let read = || object(self.definition, &body, self.strictness(&options));
        let modified = self.app.api.update(target, self.part(), read, &options, self.requester()).await?;
        self.modified(&negotiated, modified.answer, modified.outcome).await
    }

    pub async fn patch(&self, body: Body) -> Result<Response, Error> {
        let content_type = header_text(&self.parts.headers, header::CONTENT_TYPE);
        let kind = negotiate::patch_kind(content_type, PatchTarget::BuiltIn)?;
        let negotiated = self.negotiate(Shape::Single)?;
        let bytes = self.read(body).await?;
        let options = PatchOptions::parse(&self.query, kind)?.or_agent(self.agent());
        let target = self.target()?;
        if self.is_scale() {
            let scale = self.app.api.patch_scale(target, kind, &bytes, &options, self.requester()).await?;
            return self.value(&negotiated, StatusCode::OK, Value::Object(scale));
        }
        if kind == PatchKind::Apply {
            let may_create = self.authorize(Action::Create);
            let applier = Applier { requester: self.requester(), may_create: &may_create };
            let modified = self.app.api.apply(target, self.part(), &bytes, &options, applier).await?;
            return self.modified(&negotiated, modified.answer, modified.outcome).await;
        }
        let modified =
            self.app.api.patch(target, self.part(), kind, &bytes, &options, self.requester()).await?;
        self.modified(&negotiated, modified.answer, modified.outcome).await
    }

    pub async fn delete(&self, body: Body) -> Result<Response, Error> {
        let negotiated = self.negotiate(Shape::Single)?;
        let options = self.delete_options(body).await?;
        self.warn_of_deletion(&options);
        let target = self.target()?;
        let encoder = self.encoder(&negotiated)?;
        match self.app.api.delete(target, &options).await? {
            Deleted::Gone { uid } => {
                let status = deleted(&target.resource.group_resource(), target.name, &uid);
                self.value(&negotiated, StatusCode::OK, status)
            }
            Deleted::Object(object) => self.answered(StatusCode::OK, encoder, object).await,
            Deleted::Waiting(object) => self.answered(StatusCode::ACCEPTED, encoder, object).await,
        }
    }

    pub async fn delete_collection(&self, body: Body) -> Result<Response, Error> {
        let negotiated = self.negotiate(Shape::List)?;
        let resource = self.resource()?;
        let group_resource = resource.group_resource();
        let keys = self.app.api.token_keys.load();
        let list = ListOptions::parse(&self.query, self.collection(resource, &group_resource), &keys)?;
        let options = self.delete_options(body).await?;
        self.warn_of_deletion(&options);
        let encoder = self.encoder(&negotiated)?;
        let namespace = self.path.namespace.as_deref();
        let list = self.app.api.delete_collection(resource, namespace, list, &options).await?;
        let body = bodies::list(encoder, list, &self.app.printing).await?;
        Ok(response::encoded(StatusCode::OK, negotiated.media, body))
    }

    fn warn_of_deletion(&self, options: &DeleteOptions) {
        if let Some(text) = of_deletion(self.definition, options) {
            self.warnings.add(text);
        }
    }

    async fn delete_options(&self, body: Body) -> Result<DeleteOptions, Error> {
        let bytes = self.read(body).await?;
        if bytes.is_empty() {
            return DeleteOptions::parse(None, &self.query);
        }
        let media = media_type(&self.parts.headers)?;
        let body = options(&Encoded { media, bytes })?;
        DeleteOptions::parse(Some(&body), &self.query)
    }

    async fn modified(
        &self,
        negotiated: &Negotiated,
        answer: Answer,
        outcome: Outcome,
    ) -> Result<Response, Error> {
        let status = if outcome == Outcome::Created { StatusCode::CREATED } else { StatusCode::OK };
        self.answered(status, self.encoder(negotiated)?, answer).await
    }

    pub(super) async fn answered(
        &self,
        status: StatusCode,
        encoder: Encoder,
        answer: Answer,
    ) -> Result<Response, Error> {
        let media = encoder.media;
        Ok(response::encoded(status, media, bodies::object(encoder, answer, &self.app.printing).await?))
    }

    fn requester(&self) -> Requester<'_> {
        Requester { user: &self.user, warnings: self.warnings }
    }

    pub(super) fn strictness(&self, options: &WriteOptions) -> Strictness<'_> {
        Strictness { validation: options.field_validation, warnings: self.warnings }
    }

    fn agent(&self) -> Option<&str> {
        header_text(&self.parts.headers, header::USER_AGENT)
    }

    fn is_scale(&self) -> bool {
        self.path.subresource.as_deref() == Some("scale")
    }

    /// Subresources that are no part of the object have no route to where this is asked.
    fn part(&self) -> Part {
        Part::of(self.path.subresource.as_deref()).unwrap_or(Part::Main)
    }
}
