//! What an audit event holds, and its two texts: JSON of `audit.k8s.io/v1`, and upstream's legacy line.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::io::Write as _;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;

use super::policy::{Level, Stage};
use crate::gotext::{push_micro_time, quote};
use crate::json::text::{write_json, write_string};
use crate::tree::{Text, Value};
use crate::user::User;

/// The longest user agent that is recorded whole, as upstream has it.
const LONGEST_AGENT: usize = 1024;
const AGENT_SUFFIX: &str = "...TRUNCATED";
/// What begins an event that stands alone. Items of an EventList have no type.
const TYPE: &[u8] = br#""kind":"Event","apiVersion":"audit.k8s.io/v1","#;
const TRUNCATED: (&str, &str) = ("audit.k8s.io/truncated", "true");

/// What is known when the request comes in, and does not change.
#[derive(Clone, Debug)]
pub struct Head {
    pub level: Level,
    pub audit_id: Text,
    pub uri: String,
    pub verb: Text,
    /// `None` if nobody was authenticated.
    pub user: Option<Arc<User>>,
    pub source_ips: Vec<IpAddr>,
    pub user_agent: String,
    pub received: Timestamp,
    /// What all events of the request say of it, made with the first of them.
    pub text: OnceLock<HeadText>,
}

/// JSON of a [`Head`], a brace and three parts: what differs between events stands between them.
#[derive(Clone, Debug)]
pub struct HeadText {
    text: Vec<u8>,
    /// Where the first part ends, in a member that says the stage.
    stage: usize,
    /// Where the second part ends, behind the user.
    user: usize,
}

impl Head {
    fn text(&self) -> &HeadText {
        self.text.get_or_init(|| {
            let mut out = Vec::with_capacity(512);
            out.push(b'{');
            text(&mut out, "level", self.level.as_str());
            text(&mut out, "auditID", &self.audit_id);
            key(&mut out, "stage");
            let stage = out.len();
            text(&mut out, "requestURI", &self.uri);
            text(&mut out, "verb", &self.verb);
            key(&mut out, "user");
            user(&mut out, self.user.as_deref());
            let user = out.len();
            if !self.source_ips.is_empty() {
                key(&mut out, "sourceIPs");
                addresses(&mut out, &self.source_ips);
            }
            text_if_any(&mut out, "userAgent", &self.user_agent);
            HeadText { text: out, stage, user }
        })
    }
}

impl HeadText {
    fn until_stage(&self) -> &[u8] {
        &self.text[1..self.stage]
    }

    fn until_user(&self) -> &[u8] {
        &self.text[self.stage..self.user]
    }

    fn source_addresses(&self) -> &[u8] {
        &self.text[self.user..]
    }
}

/// What becomes known while the request is answered.
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

/// As whom the user acts.
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

/// What the client was told.
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

/// Shortens the header as upstream does.
pub fn user_agent(header: &str) -> String {
    if header.len() <= LONGEST_AGENT {
        return header.to_owned();
    }
    let mut end = LONGEST_AGENT;
    while !header.is_char_boundary(end) {
        end -= 1;
    }
    [&header[..end], AGENT_SUFFIX].concat()
}

/// The addresses that a request came through, the client's first: those that proxies name, and the peer. Proxies are
/// believed, as upstream believes them.
pub fn source_ips(forwarded_for: &str, real_ip: &str, peer: Option<IpAddr>) -> Vec<IpAddr> {
    let parse = |text: &str| text.trim().parse().ok().map(|ip: IpAddr| ip.to_canonical());
    let mut ips: Vec<IpAddr> = forwarded_for.split(',').filter_map(parse).collect();
    ips.extend(parse(real_ip).filter(|ip| !ips.contains(ip)));
    let peer = peer.map(|ip| ip.to_canonical());
    if peer.as_ref() != ips.last() {
        ips.extend(peer);
    }
    ips
}

impl<'a> Event<'a> {
    pub fn new(head: &'a Head, growing: &'a Growing, stage: Stage, at: Timestamp) -> Self {
        Self { head, growing, stage, at, item: OnceCell::new() }
    }

    /// The event as an item of an EventList: JSON without `kind` and `apiVersion`. Made once for all backends.
    pub fn item(&self) -> &[u8] {
        self.item.get_or_init(|| self.json(Objects::Kept))
    }

    /// [`Event::item`] without the objects, and with the annotation that says so.
    pub fn truncated(&self) -> Vec<u8> {
        self.json(Objects::Omitted)
    }

    fn json(&self, objects: Objects) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.head.text().text.len() + 512);
        out.push(b'{');
        self.write_members(&mut out, objects);
        out
    }

    /// Appends the line of a log in JSON. No text in it has a line end.
    pub fn append_line(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        out.extend_from_slice(TYPE);
        match self.item.get() {
            Some(item) => out.extend_from_slice(item.strip_prefix(b"{").unwrap_or(item)),
            None => self.write_members(out, Objects::Kept),
        }
        out.push(b'\n');
    }

    /// Appends what stands behind the brace, and the one that ends the event.
    fn write_members(&self, out: &mut Vec<u8>, objects: Objects) {
        let Self { head, growing, .. } = self;
        let known = head.text();
        out.extend_from_slice(known.until_stage());
        write_string(out, self.stage.as_str());
        out.extend_from_slice(known.until_user());
        if let Some(Impersonated { user: other, constraint }) = &growing.impersonated {
            key(out, "impersonatedUser");
            user(out, Some(other));
            if !constraint.is_empty() {
                key(out, "authenticationMetadata");
                out.push(b'{');
                text(out, "impersonationConstraint", constraint);
                out.push(b'}');
            }
        }
        out.extend_from_slice(known.source_addresses());
        if let Some(object) = &growing.object {
            key(out, "objectRef");
            object.write(out);
        }
        if let Some(status) = &growing.status {
            key(out, "responseStatus");
            status.write(out);
        }
        if objects == Objects::Kept {
            embedded(out, "requestObject", growing.request_object.as_ref());
            embedded(out, "responseObject", growing.response_object.as_ref());
        }
        time(out, "requestReceivedTimestamp", head.received);
        time(out, "stageTimestamp", self.at);
        match objects {
            Objects::Kept => annotations(out, &growing.annotations),
            Objects::Omitted => annotations(out, &as_truncated(&growing.annotations)),
        }
        out.push(b'}');
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
        let ip = head.source_ips.first().map(IpAddr::to_string);
        format!(
            "{} AUDIT: id={} stage={} ip={} method={} user={} groups={} as={} asgroups={} user-agent={} namespace={} \
             uri={} response=\"{}\"",
            nanosecond_time(head.received),
            quote(&head.audit_id),
            quote(self.stage.as_str()),
            quote(ip.as_deref().unwrap_or("<unknown>")),
            quote(&head.verb),
            quote(user.map_or("<none>", |user| &user.name)),
            quote(&groups.map_or_else(|| "<none>".to_owned(), |groups| quoted_list(groups))),
            quote(as_user),
            quote(&as_groups),
            quote(&head.user_agent),
            quote(if namespace.is_empty() { "<none>" } else { namespace }),
            quote(&head.uri),
            response.as_deref().unwrap_or("<deferred>"),
        )
    }
}

/// An item of an EventList as an event that stands alone.
pub fn standing_alone(item: &[u8]) -> Vec<u8> {
    [b"{", TYPE, item.strip_prefix(b"{").unwrap_or(item)].concat()
}

/// Appends the line of a log in JSON.
pub fn append_line(out: &mut Vec<u8>, item: &[u8]) {
    out.reserve(size_standing_alone(item));
    out.push(b'{');
    out.extend_from_slice(TYPE);
    out.extend_from_slice(item.strip_prefix(b"{").unwrap_or(item));
    out.push(b'\n');
}

/// The length of [`standing_alone`] and its line end.
pub fn size_standing_alone(item: &[u8]) -> usize {
    item.len() + TYPE.len() + 1
}

/// Whether the objects that were sent and answered are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Objects {
    Kept,
    Omitted,
}

impl ObjectReference {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        text_if_any(out, "resource", &self.resource);
        text_if_any(out, "namespace", &self.namespace);
        text_if_any(out, "name", &self.name);
        text_if_any(out, "uid", &self.uid);
        text_if_any(out, "apiGroup", &self.group);
        text_if_any(out, "apiVersion", &self.version);
        text_if_any(out, "resourceVersion", &self.resource_version);
        text_if_any(out, "subresource", &self.subresource);
        out.push(b'}');
    }
}

impl ResponseStatus {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"metadata":{}"#);
        for field in ["status", "message", "reason", "details"] {
            if let Some(value) = self.status.get(field) {
                key(out, field);
                write_json(out, value);
            }
        }
        if self.code > 0 {
            key(out, "code");
            let _ = write!(out, "{}", self.code);
        }
        out.push(b'}');
    }
}

fn user(out: &mut Vec<u8>, user: Option<&User>) {
    out.push(b'{');
    if let Some(user) = user {
        text_if_any(out, "username", &user.name);
        text_if_any(out, "uid", &user.uid);
        if !user.groups.is_empty() {
            key(out, "groups");
            texts(out, &user.groups);
        }
        if !user.extra.is_empty() {
            key(out, "extra");
            out.push(b'{');
            for (name, values) in &user.extra {
                any_key(out, name);
                texts(out, values);
            }
            out.push(b'}');
        }
    }
    out.push(b'}');
}

fn annotations(out: &mut Vec<u8>, annotations: &[Annotation]) {
    if annotations.is_empty() {
        return;
    }
    key(out, "annotations");
    out.push(b'{');
    for (name, value) in annotations {
        any_key(out, name);
        write_string(out, value);
    }
    out.push(b'}');
}

/// The annotations of an event that has lost its objects, sorted.
fn as_truncated(annotations: &[Annotation]) -> Vec<Annotation> {
    let mut annotations = annotations.to_vec();
    annotations.retain(|(key, _)| key != TRUNCATED.0);
    let at = annotations.partition_point(|(key, _)| &**key < TRUNCATED.0);
    annotations.insert(at, (TRUNCATED.0.into(), TRUNCATED.1.into()));
    annotations
}

fn embedded(out: &mut Vec<u8>, name: &'static str, json: Option<&Bytes>) {
    if let Some(json) = json {
        key(out, name);
        out.extend_from_slice(json.trim_ascii());
    }
}

/// Appends a member's name, behind a comma unless it is the first of its object. The name needs no escape.
fn key(out: &mut Vec<u8>, name: &'static str) {
    separate(out);
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// The same with a name that others have chosen.
fn any_key(out: &mut Vec<u8>, name: &str) {
    separate(out);
    write_string(out, name);
    out.push(b':');
}

fn separate(out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
}

fn text(out: &mut Vec<u8>, name: &'static str, value: &str) {
    key(out, name);
    write_string(out, value);
}

fn text_if_any(out: &mut Vec<u8>, name: &'static str, value: &str) {
    if !value.is_empty() {
        text(out, name, value);
    }
}

fn time(out: &mut Vec<u8>, name: &'static str, at: Timestamp) {
    key(out, name);
    out.push(b'"');
    push_micro_time(out, at);
    out.push(b'"');
}

fn texts(out: &mut Vec<u8>, values: &[String]) {
    out.push(b'[');
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, value);
    }
    out.push(b']');
}

fn addresses(out: &mut Vec<u8>, addresses: &[IpAddr]) {
    out.push(b'[');
    for (index, address) in addresses.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\"{address}\"");
    }
    out.push(b']');
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
