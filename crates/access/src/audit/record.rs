//! The record of one request while it is answered.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};
use jiff::Timestamp;

use super::event::{Event, Growing, Impersonated, ObjectReference, ResponseStatus};
use super::head::Head;
use super::policy::{Level, RequestAuditConfig, Stage};
use super::sink::Sink;
use super::{Audit, Receipt};
use crate::auth::authorizer::Attributes;
use crate::codec::managed;
use crate::fields;
use crate::storage::AuditRow;
use crate::tree::{Map, Value};
use crate::user::User;

/// An event could not be stored, and a sink insists on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to store audit event")]
pub struct Lost;

/// The outcome of storing an event.
pub type Stored = Result<(), Lost>;

/// An event on its way to where it is stored.
pub type Storing = BoxFuture<'static, Stored>;

/// The record of one request. It is shared by all that have something to add.
pub struct Record {
    audit: Arc<Audit>,
    verdict: RequestAuditConfig,
    head: Head,
    growing: Mutex<Growing>,
}

impl Record {
    pub(super) fn new(
        audit: Arc<Audit>,
        verdict: RequestAuditConfig,
        head: Head,
        object: Option<ObjectReference>,
    ) -> Self {
        Self { audit, verdict, head, growing: Mutex::new(Growing { object, ..Growing::default() }) }
    }

    /// The time of day, as events tell it.
    pub fn now(&self) -> Timestamp {
        self.audit.clock.timestamp()
    }

    /// Whether the policy wants what the client sent.
    pub fn wants_request(&self) -> bool {
        self.verdict.level >= Level::Request
    }

    /// Whether the policy wants what the client was answered.
    pub fn wants_response(&self) -> bool {
        self.verdict.level >= Level::RequestResponse
    }

    /// Adds an annotation. Of several values of a key the first counts.
    pub fn annotate(&self, key: impl Into<Cow<'static, str>>, value: impl Into<Cow<'static, str>>) {
        let key = key.into();
        let mut growing = self.growing();
        if let Err(at) = growing.annotations.binary_search_by(|(known, _)| known.cmp(&key)) {
            growing.annotations.insert(at, (key, value.into()));
        }
    }

    /// Notes as whom the user acts. `constraint` is the verb of a constrained impersonation, otherwise empty.
    pub fn impersonated(&self, user: Arc<User>, constraint: &str) {
        self.growing().impersonated = Some(Impersonated { user, constraint: constraint.to_owned() });
    }

    /// Notes the object that the client sent, [closed](managed), and completes the reference by what the path lacks.
    pub fn requested(&self, object: &Map) {
        let mut growing = self.growing();
        growing.object.get_or_insert_default().complete(object);
        if self.wants_request() {
            let mut object = object.clone();
            managed::open(&mut object);
            growing.request_object = Some(self.printed(Value::Object(object)));
        }
    }

    /// Notes a patch, or options, as the client sent them, in JSON.
    pub fn requested_text(&self, json: impl FnOnce() -> Option<Bytes>) {
        if self.wants_request()
            && let Some(json) = json()
        {
            self.growing().request_object = Some(json);
        }
    }

    /// Notes an answer of kind `Status`.
    pub fn answered_status(&self, status: &Value) {
        let object = self.wants_response().then(|| self.printed(status.clone()));
        let mut growing = self.growing();
        growing.status = Some(ResponseStatus { status: status.clone(), code: 0 });
        growing.response_object = object;
    }

    /// Forgets an answer that is not sent, since the request is judged again.
    pub fn unanswered(&self) {
        let mut growing = self.growing();
        growing.status = None;
        growing.response_object = None;
    }

    /// Notes the object of an answer, if the policy wants it.
    pub fn answered(&self, object: impl FnOnce() -> Option<Value>) {
        if self.wants_response()
            && let Some(object) = object()
        {
            let printed = self.printed(object);
            self.growing().response_object = Some(printed);
        }
    }

    /// The event to commit with a write of this object that is answered with this code, if the database wants it.
    /// Everything that it says of the answer has to be known by then, so an answer that is to be recorded whole is recorded
    /// afterwards.
    pub fn to_commit(&self, name: &str, code: u16) -> Option<Arc<AuditRow>> {
        let stage = Stage::ResponseComplete;
        if self.wants_response() || self.verdict.omitted.contains(stage) {
            return None;
        }
        let database = self.audit.database.get()?;
        let mut growing = self.growing();
        if growing.committed.is_some() {
            return None;
        }
        growing.status.get_or_insert_default().code = code;
        let event = Event::new(&self.head, &growing, stage, self.now());
        Some(Arc::new(database.row(&event, name)))
    }

    /// Notes that the event of [`Record::to_commit`] is in the database.
    pub fn committed(&self, code: u16) {
        if self.audit.database.get().is_some() && !self.wants_response() {
            self.growing().committed = Some(code);
        }
    }

    /// Notes the answer's code.
    pub fn answered_code(&self, code: u16) {
        self.growing().status.get_or_insert_default().code = code;
    }

    /// Notes that the head of the answer was never made.
    pub fn closed_early(&self) {
        let mut growing = self.growing();
        if growing.status.is_none() {
            let status = crate::tree::json!({"status": "Success", "message": "Connection closed early"});
            growing.status = Some(ResponseStatus { status, code: 200 });
        }
    }

    /// Notes a panic.
    pub fn panicked(&self, message: &str) {
        let status = crate::tree::json!({
            "status": "Failure",
            "message": format!("APIServer panic'd: {message}"),
            "reason": "InternalError",
        });
        self.growing().status = Some(ResponseStatus { status, code: 500 });
    }

    /// Records a stage with all sinks. Where that takes its time, the answer is what the request has to wait for.
    #[must_use]
    pub fn stage(&self, stage: Stage) -> Option<Storing> {
        let at = if stage == Stage::RequestReceived { self.head.received } else { self.now() };
        self.stage_at(stage, at)
    }

    /// The variant of [`Record::stage`] with the time of the event.
    #[must_use]
    pub fn stage_at(&self, stage: Stage, at: Timestamp) -> Option<Storing> {
        if self.verdict.omitted.contains(stage) {
            return None;
        }
        let mut receipts = Vec::new();
        {
            let growing = self.growing();
            let event = Event::new(&self.head, &growing, stage, at);
            self.audit.metrics.events.increment(1);
            for sink in self.audit.all_sinks() {
                match sink.take(&event) {
                    Receipt::Taken => {}
                    receipt => receipts.push(receipt),
                }
            }
        }
        if receipts.is_empty() {
            return None;
        }
        let kept = async move {
            let kept = join_all(receipts.into_iter().map(Receipt::kept)).await;
            if kept.into_iter().all(|kept| kept) { Ok(()) } else { Err(Lost) }
        };
        Some(kept.boxed())
    }

    /// Makes sinks deliver what they hold back, since the request takes longer than others.
    pub fn hurry(&self) {
        self.audit.all_sinks().for_each(Sink::hurry);
    }

    /// Records a stage, and lets nobody wait.
    pub fn stage_in_passing(&self, stage: Stage) {
        if let Some(storing) = self.stage(stage) {
            self.audit.tasks.spawn("audit-event", async move {
                let _ = storing.await;
            });
        }
    }

    /// The JSON text of an object, without managed fields if the policy leaves them out.
    fn printed(&self, mut object: Value) -> Bytes {
        if self.verdict.omits_managed_fields {
            omit_managed_fields(&mut object);
        }
        let mut out = Vec::with_capacity(1024);
        crate::json::text::write_json(&mut out, &object);
        out.into()
    }

    fn growing(&self) -> MutexGuard<'_, Growing> {
        self.growing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ObjectReference {
    pub fn of(attributes: &Attributes<'_>) -> Self {
        Self {
            resource: attributes.resource.into(),
            namespace: attributes.namespace.into(),
            name: attributes.name.into(),
            group: attributes.group.into(),
            version: attributes.version.into(),
            subresource: attributes.subresource.into(),
            ..Self::default()
        }
    }

    fn complete(&mut self, object: &Map) {
        for (field, name) in [
            (&mut self.namespace, "namespace"),
            (&mut self.name, "name"),
            (&mut self.uid, "uid"),
            (&mut self.resource_version, "resourceVersion"),
        ] {
            if field.is_empty() {
                *field = fields::text(object, &["metadata", name]).into();
            }
        }
    }
}

/// Removes the managed fields of an object, of the items of a list, and of the objects of a table's rows.
fn omit_managed_fields(object: &mut Value) {
    remove_from(object);
    for (list, member) in [("items", None), ("rows", Some("object"))] {
        let items = object.get_mut(list).and_then(Value::as_array_mut);
        for item in items.into_iter().flatten() {
            match member {
                None => remove_from(item),
                Some(member) => item.get_mut(member).into_iter().for_each(remove_from),
            }
        }
    }
}

fn remove_from(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
}
