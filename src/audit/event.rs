//! What an audit event holds, and its two texts: JSON of `audit.k8s.io/v1`, and upstream's legacy line.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jiff::Timestamp;

use super::policy::{Level, Stage};
use crate::gotext::{micro_time, quote};
use crate::json::text::{write_json, write_string};
use crate::tree::Value;
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
    pub audit_id: String,
    pub uri: String,
    pub verb: String,
    /// `None` if nobody was authenticated.
    pub user: Option<Arc<User>>,
    pub source_ips: Vec<IpAddr>,
    pub user_agent: String,
    pub received: Timestamp,
    /// What all events of the request say of it, made with the first of them.
    pub text: OnceLock<HeadText>,
}

/// JSON members of a [`Head`], in two parts: what becomes known later stands between them.
#[derive(Clone, Debug)]
pub struct HeadText {
    until_user: Box<[u8]>,
    from_addresses: Box<[u8]>,
    received: String,
}

impl Head {
    fn text(&self) -> &HeadText {
        self.text.get_or_init(|| {
            let (mut until_user, mut from_addresses) = (Vec::with_capacity(256), Vec::with_capacity(128));
            text(&mut until_user, "requestURI", &self.uri);
            text(&mut until_user, "verb", &self.verb);
            key(&mut until_user, "user");
            user(&mut until_user, self.user.as_deref());
            if !self.source_ips.is_empty() {
                key(&mut from_addresses, "sourceIPs");
                texts(&mut from_addresses, self.source_ips.iter().map(|ip| Cow::Owned(ip.to_string())));
            }
            text_if_any(&mut from_addresses, "userAgent", &self.user_agent);
            HeadText {
                until_user: until_user.into(),
                from_addresses: from_addresses.into(),
                received: micro_time(self.received),
            }
        })
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
    pub annotations: Vec<(Cow<'static, str>, String)>,
    /// The code with which the event is in the database, where it was committed with the write.
    pub committed: Option<u16>,
}

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
    pub resource: String,
    pub namespace: String,
    pub name: String,
    pub uid: String,
    pub group: String,
    pub version: String,
    pub resource_version: String,
    pub subresource: String,
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
    body: OnceCell<Bytes>,
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
        Self { head, growing, stage, at, body: OnceCell::new() }
    }

    /// The event as an item of an EventList: JSON without `kind` and `apiVersion`. Made once for all backends.
    pub fn item(&self) -> Bytes {
        self.body.get_or_init(|| self.json(Objects::Kept)).clone()
    }

    /// [`Event::item`] without the objects, and with the annotation that says so.
    pub fn truncated(&self) -> Bytes {
        self.json(Objects::Omitted)
    }

    fn json(&self, objects: Objects) -> Bytes {
        let Self { head, growing, .. } = self;
        let mut out = Vec::with_capacity(1024);
        out.push(b'{');
        text(&mut out, "level", head.level.as_str());
        text(&mut out, "auditID", &head.audit_id);
        text(&mut out, "stage", self.stage.as_str());
        let known = head.text();
        out.extend_from_slice(&known.until_user);
        if let Some(Impersonated { user: other, constraint }) = &growing.impersonated {
            key(&mut out, "impersonatedUser");
            user(&mut out, Some(other));
            if !constraint.is_empty() {
                key(&mut out, "authenticationMetadata");
                out.push(b'{');
                text(&mut out, "impersonationConstraint", constraint);
                out.push(b'}');
            }
        }
        out.extend_from_slice(&known.from_addresses);
        if let Some(object) = &growing.object {
            key(&mut out, "objectRef");
            object.write(&mut out);
        }
        if let Some(status) = &growing.status {
            key(&mut out, "responseStatus");
            status.write(&mut out);
        }
        if objects == Objects::Kept {
            embedded(&mut out, "requestObject", growing.request_object.as_ref());
            embedded(&mut out, "responseObject", growing.response_object.as_ref());
        }
        text(&mut out, "requestReceivedTimestamp", &known.received);
        match self.at == head.received {
            true => text(&mut out, "stageTimestamp", &known.received),
            false => text(&mut out, "stageTimestamp", &micro_time(self.at)),
        }
        annotations(&mut out, &growing.annotations, objects);
        out.push(b'}');
        out.into()
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
        let namespace = growing.object.as_ref().map_or("", |object| &object.namespace);
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

/// The line of a log in JSON.
pub fn line_of(item: &[u8]) -> Vec<u8> {
    [b"{", TYPE, item.strip_prefix(b"{").unwrap_or(item), b"\n"].concat()
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
            out.extend_from_slice(self.code.to_string().as_bytes());
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
            texts(out, user.groups.iter().map(|group| Cow::Borrowed(group.as_str())));
        }
        if !user.extra.is_empty() {
            key(out, "extra");
            out.push(b'{');
            for (name, values) in &user.extra {
                key(out, name);
                texts(out, values.iter().map(|value| Cow::Borrowed(value.as_str())));
            }
            out.push(b'}');
        }
    }
    out.push(b'}');
}

/// Maps are sorted in Go's JSON.
fn annotations(out: &mut Vec<u8>, annotations: &[(Cow<'static, str>, String)], objects: Objects) {
    let mut sorted: Vec<(&str, &str)> =
        annotations.iter().map(|(key, value)| (&**key, value.as_str())).collect();
    if objects == Objects::Omitted {
        sorted.retain(|(key, _)| *key != TRUNCATED.0);
        sorted.push(TRUNCATED);
    }
    if sorted.is_empty() {
        return;
    }
    sorted.sort_unstable();
    key(out, "annotations");
    out.push(b'{');
    for (name, value) in sorted {
        text(out, name, value);
    }
    out.push(b'}');
}

fn embedded(out: &mut Vec<u8>, name: &str, json: Option<&Bytes>) {
    if let Some(json) = json {
        key(out, name);
        out.extend_from_slice(json.trim_ascii());
    }
}

/// Appends a member's name, behind a comma unless it is the first of its object.
fn key(out: &mut Vec<u8>, name: &str) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    write_string(out, name);
    out.push(b':');
}

fn text(out: &mut Vec<u8>, name: &str, value: &str) {
    key(out, name);
    write_string(out, value);
}

fn text_if_any(out: &mut Vec<u8>, name: &str, value: &str) {
    if !value.is_empty() {
        text(out, name, value);
    }
}

fn texts<'a>(out: &mut Vec<u8>, values: impl Iterator<Item = Cow<'a, str>>) {
    out.push(b'[');
    for (index, value) in values.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, &value);
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
