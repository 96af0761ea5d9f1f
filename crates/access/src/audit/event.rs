//! The content of an audit event, and its two texts: JSON of `audit.k8s.io/v1`, and upstream's legacy line.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;

use super::head::Head;
use super::json::{any_key, key, object, text, text_if_any, time, user, write_plain};
use super::policy::Stage;
use crate::gotext::{put_digits, quote};
use crate::json::text::{write_json, write_string};
use crate::tree::{Text, Value};
use crate::user::User;

/// The beginning of the JSON of an event that stands alone. Items of an EventList have no type.
const TYPE: &[u8] = br#"{"kind":"Event","apiVersion":"audit.k8s.io/v1""#;
const TRUNCATED: (&str, &str) = ("audit.k8s.io/truncated", "true");

/// The part of an event that becomes known while the request is answered.
#[derive(Clone, Debug, Default)]
pub struct Growing {
    pub impersonated: Option<Impersonated>,
    pub object: Option<ObjectReference>,
    pub status: Option<ResponseStatus>,
    /// JSON text.
    pub request_object: Option<Bytes>,
    /// JSON text.
    pub response_object: Option<Bytes>,
    /// Sorted by their keys.
    pub annotations: Vec<Annotation>,
    /// The code with which the event is in the database, where it was committed with the write.
    pub committed: Option<u16>,
}

/// A key and its value.
pub type Annotation = (Cow<'static, str>, Cow<'static, str>);

/// The user as whom the requester acts.
#[derive(Clone, Debug)]
pub struct Impersonated {
    pub user: Arc<User>,
    /// The verb of the constrained impersonation; empty for an unconstrained one.
    pub constraint: String,
}

/// The object of a request. Empty fields are not shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectReference {
    pub resource: Text,
    pub namespace: Text,
    pub name: Text,
    pub uid: Text,
    pub group: Text,
    pub version: Text,
    pub resource_version: Text,
    pub subresource: Text,
}

/// The status that the client was told.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseStatus {
    /// `status`, `message`, `reason` and `details` of a `Status`; null for other answers.
    pub status: Value,
    /// 0 until the head of the answer is made.
    pub code: u16,
}

/// An event at one stage of a request.
pub struct Event<'a> {
    pub head: &'a Head,
    pub growing: &'a Growing,
    pub stage: Stage,
    pub at: Timestamp,
    item: OnceCell<Vec<u8>>,
}

impl<'a> Event<'a> {
    pub fn new(head: &'a Head, growing: &'a Growing, stage: Stage, at: Timestamp) -> Self {
        Self { head, growing, stage, at, item: OnceCell::new() }
    }

    /// The event as an item of an EventList: JSON without `kind` and `apiVersion`. Made once for all sinks.
    pub fn item(&self) -> &[u8] {
        self.item.get_or_init(|| self.json(Objects::Kept))
    }

    /// [`Event::item`] without the objects, and with the annotation that says so.
    pub fn truncated(&self) -> Vec<u8> {
        self.json(Objects::Omitted)
    }

    fn json(&self, objects: Objects) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.head.text().len() + 512);
        object(&mut out, |out| self.write_members(out, objects));
        out
    }

    /// Appends the line of a log in JSON. No text in it has a line end.
    pub fn append_line(&self, out: &mut Vec<u8>) {
        match self.item.get() {
            Some(item) => append_line(out, item),
            None => {
                out.extend_from_slice(TYPE);
                self.write_members(out, Objects::Kept);
                out.extend_from_slice(b"}\n");
            }
        }
    }

    /// Appends the members, each behind a comma.
    fn write_members(&self, out: &mut Vec<u8>, objects: Objects) {
        let Self { head, growing, .. } = self;
        let known = head.text();
        out.extend_from_slice(known.until_stage());
        write_plain(out, self.stage.as_str());
        out.extend_from_slice(known.until_user());
        if let Some(Impersonated { user: other, constraint }) = &growing.impersonated {
            key!(out, "impersonatedUser");
            user(out, Some(other));
            if !constraint.is_empty() {
                key!(out, "authenticationMetadata");
                object(out, |out| text!(out, "impersonationConstraint", constraint));
            }
        }
        out.extend_from_slice(known.until_agent());
        if let Some(object) = &growing.object {
            key!(out, "objectRef");
            object.write(out);
        }
        if let Some(status) = &growing.status {
            key!(out, "responseStatus");
            status.write(out);
        }
        if objects == Objects::Kept {
            if let Some(json) = &growing.request_object {
                key!(out, "requestObject");
                out.extend_from_slice(json.trim_ascii());
            }
            if let Some(json) = &growing.response_object {
                key!(out, "responseObject");
                out.extend_from_slice(json.trim_ascii());
            }
        }
        out.extend_from_slice(known.time());
        time!(out, "stageTimestamp", self.at);
        match objects {
            Objects::Kept => annotations(out, &growing.annotations),
            Objects::Omitted => annotations(out, &as_truncated(&growing.annotations)),
        }
    }

    /// Upstream's line of text.
    pub fn legacy(&self) -> String {
        let Self { head, growing, .. } = self;
        let user = head.user.as_deref().filter(|user| !user.name.is_empty());
        let groups = user.map(|user| &user.groups).filter(|groups| !groups.is_empty());
        let (as_user, as_groups) = match &growing.impersonated {
            Some(Impersonated { user, .. }) => (user.name.as_str(), quoted_list(&user.groups)),
            None => ("<self>", "<lookup>".to_owned()),
        };
        let namespace = growing.object.as_ref().map_or("", |object| object.namespace.as_str());
        let response = growing.status.as_ref().map(|status| status.code.to_string());
        format!(
            "{} AUDIT: id={} stage={} ip={} method={} user={} groups={} as={} asgroups={} user-agent={} namespace={} \
             uri={} response=\"{}\"",
            nanosecond_time(head.received),
            quote(&head.audit_id()),
            quote(self.stage.as_str()),
            quote(head.sources.iter().next().unwrap_or("<unknown>")),
            quote(&head.verb),
            quote(user.map_or("<none>", |user| &user.name)),
            quote(&groups.map_or_else(|| "<none>".to_owned(), |groups| quoted_list(groups))),
            quote(as_user),
            quote(&as_groups),
            quote(&head.user_agent()),
            quote(if namespace.is_empty() { "<none>" } else { namespace }),
            quote(&head.request_uri()),
            response.as_deref().unwrap_or("<deferred>"),
        )
    }
}

/// An item of an EventList as an event that stands alone.
pub fn standing_alone(item: &[u8]) -> Vec<u8> {
    [TYPE, b",", item.strip_prefix(b"{").unwrap_or(item)].concat()
}

/// Appends the line of a log in JSON.
pub fn append_line(out: &mut Vec<u8>, item: &[u8]) {
    out.reserve(size_standing_alone(item));
    out.extend_from_slice(TYPE);
    out.push(b',');
    out.extend_from_slice(item.strip_prefix(b"{").unwrap_or(item));
    out.push(b'\n');
}

/// The length of [`standing_alone`] and its line end.
pub fn size_standing_alone(item: &[u8]) -> usize {
    item.len() + TYPE.len() + 1
}

/// Whether the objects in the bodies of request and response are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Objects {
    Kept,
    Omitted,
}

impl ObjectReference {
    fn write(&self, out: &mut Vec<u8>) {
        object(out, |out| {
            text_if_any!(out, "resource", &self.resource);
            text_if_any!(out, "namespace", &self.namespace);
            text_if_any!(out, "name", &self.name);
            text_if_any!(out, "uid", &self.uid);
            text_if_any!(out, "apiGroup", &self.group);
            text_if_any!(out, "apiVersion", &self.version);
            text_if_any!(out, "resourceVersion", &self.resource_version);
            text_if_any!(out, "subresource", &self.subresource);
        });
    }
}

impl ResponseStatus {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"metadata":{}"#);
        for field in ["status", "message", "reason", "details"] {
            if let Some(value) = self.status.get(field) {
                any_key(out, field);
                write_json(out, value);
            }
        }
        if self.code > 0 {
            key!(out, "code");
            // The codes of HTTP have three digits.
            let mut digits = [0; 3];
            put_digits(&mut digits, i32::from(self.code));
            out.extend_from_slice(&digits);
        }
        out.push(b'}');
    }
}

fn annotations(out: &mut Vec<u8>, annotations: &[Annotation]) {
    if annotations.is_empty() {
        return;
    }
    key!(out, "annotations");
    object(out, |out| {
        for (name, value) in annotations {
            any_key(out, name);
            write_string(out, value);
        }
    });
}

/// The annotations of an event that has lost its objects, sorted.
fn as_truncated(annotations: &[Annotation]) -> Vec<Annotation> {
    let mut annotations = annotations.to_vec();
    annotations.retain(|(key, _)| key != TRUNCATED.0);
    let at = annotations.partition_point(|(key, _)| &**key < TRUNCATED.0);
    annotations.insert(at, (TRUNCATED.0.into(), TRUNCATED.1.into()));
    annotations
}

fn quoted_list(texts: &[String]) -> String {
    let quoted: Vec<String> = texts.iter().map(|text| quote(text)).collect();
    quoted.join(",")
}

/// Go's `time.RFC3339Nano`: no zeros at the end of the fraction.
fn nanosecond_time(at: Timestamp) -> String {
    at.to_string()
}

#[cfg(test)]
mod tests;
