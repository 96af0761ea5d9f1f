//! An AdmissionReview: what a webhook is sent, and what its answer has to be (`pkg/admission/plugin/webhook/request`).

use bytes::Bytes;

use super::configuration::ReviewVersion;
use crate::ObjectMap;
use crate::codec::{managed, yaml};
use crate::fields;
use crate::gotext::{self, decode_base64, quote};
use crate::json::text::write_json;
use crate::options::strictness::conform;
use crate::schema::kind::Kind;
use crate::schema::names::Gvk;
use crate::tree::{Map, Value};

const KIND: &str = "AdmissionReview";
/// The name of upstream's scheme, in Go's quotes.
const SCHEME: &str = r#""pkg/runtime/scheme.go:111""#;

/// The request in an AdmissionReview, but for the members that differ between the webhooks of one version: text of JSON.
pub struct Payload {
    /// The members `kind` and `resource`, and from `subResource` on.
    text: Vec<u8>,
}

impl Payload {
    /// `described` is the request as expressions see it; the objects are of this kind, and may be [closed](managed).
    pub fn new(
        described: &ObjectMap,
        kind: &Kind,
        object: Option<&ObjectMap>,
        old: Option<&ObjectMap>,
    ) -> Self {
        let mut text = Vec::with_capacity(1024);
        for (name, value) in described {
            if name == "dryRun" {
                put(&mut text, "object", &printed(kind, object));
                put(&mut text, "oldObject", &printed(kind, old));
            }
            put(&mut text, name, value);
        }
        Self { text }
    }

    /// The body of a call.
    pub fn body(&self, version: ReviewVersion, uid: &str) -> Bytes {
        let mut body = Vec::with_capacity(self.text.len() + 128);
        body.extend_from_slice(br#"{"kind":"AdmissionReview","apiVersion":""#);
        body.extend_from_slice(version.api_version().as_bytes());
        body.extend_from_slice(br#"","request":{"uid":""#);
        body.extend_from_slice(uid.as_bytes());
        body.push(b'"');
        body.extend_from_slice(&self.text);
        body.extend_from_slice(b"}}\n");
        body.into()
    }
}

fn put(text: &mut Vec<u8>, name: &str, value: &Value) {
    text.push(b',');
    write_json(text, name);
    text.push(b':');
    write_json(text, value);
}

/// An object as its type prints it: plugins add members where they like.
fn printed(kind: &Kind, object: Option<&ObjectMap>) -> Value {
    let Some(object) = object else { return Value::Null };
    let mut object = object.clone();
    // What does not fit is refused later, by whoever decodes it.
    let _ = conform(kind, &mut object);
    managed::open(&mut object);
    Value::Object(object)
}

/// The answer of a webhook.
#[derive(Debug, Default, PartialEq)]
pub struct Answer {
    pub is_allowed: bool,
    pub status: Option<Map>,
    pub patch: Vec<u8>,
    pub patch_type: String,
    pub warnings: Vec<String>,
    pub annotations: Vec<(String, String)>,
}

/// A fault of a webhook's answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Wrong {
    /// It is no AdmissionReview.
    Undecodable(String),
    /// It does not answer the question.
    Invalid(String),
}

/// Reads the answer to a review. `mutates` tells the two kinds of webhooks apart.
pub fn read(body: &[u8], version: ReviewVersion, uid: &str, mutates: bool) -> Result<Answer, Wrong> {
    let review = decode(body).map_err(Wrong::Undecodable)?;
    check_claims(&review, version).map_err(Wrong::Undecodable)?;
    let Some(response) = review.get("response").and_then(Value::as_object) else {
        return Err(Wrong::Invalid("webhook response was absent".to_owned()));
    };
    if version == ReviewVersion::V1 {
        check_v1(&review, response, uid).map_err(Wrong::Invalid)?;
    }
    let patch = decode_base64(fields::text(response, &["patch"]));
    let patch = patch.map_err(|why| Wrong::Undecodable(format!("illegal base64 data: {why}")))?;
    let patch_type = response.get("patchType").and_then(Value::as_str);
    let patch_type = match (version, mutates) {
        (ReviewVersion::V1, true) => {
            check_patch(&patch, patch_type).map_err(Wrong::Invalid)?;
            patch_type.unwrap_or_default()
        }
        (ReviewVersion::V1, false) if !patch.is_empty() => {
            return Err(Wrong::Invalid("validating webhook may not return response.patch".to_owned()));
        }
        (ReviewVersion::V1, false) if patch_type.is_some() => {
            return Err(Wrong::Invalid("validating webhook may not return response.patchType".to_owned()));
        }
        (_, true) if !patch.is_empty() => "JSONPatch",
        _ => "",
    };
    let texts = |value: &Value| value.as_str().map(str::to_owned);
    let annotations = fields::object(response, "auditAnnotations").into_iter().flatten();
    Ok(Answer {
        is_allowed: response.get("allowed") == Some(&Value::Bool(true)),
        status: fields::object(response, "status").cloned(),
        patch: if mutates { patch } else { Vec::new() },
        patch_type: patch_type.to_owned(),
        warnings: fields::items(response, &["warnings"]).iter().filter_map(texts).collect(),
        annotations: annotations.filter_map(|(key, value)| Some((key.to_string(), texts(value)?))).collect(),
    })
}

/// The JSON of an answer, or what client-go says of a body that is none.
fn decode(body: &[u8]) -> Result<Map, String> {
    let start = "couldn't get version/kind; json parse error: ";
    let parsed = match body.trim_ascii_start().first() {
        // client-go takes everything for YAML that does not begin as an object.
        Some(first) if *first != b'{' => yaml::parse(body).map_or_else(|_| serde_json::from_slice(body), Ok),
        _ => serde_json::from_slice(body),
    };
    match parsed {
        Ok(Value::Object(review)) => Ok(review),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(other) => {
            let found = gotext::json_kind(&other);
            let fields = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
            Err(format!("{start}json: cannot unmarshal {found} into Go value of type {fields}"))
        }
        Err(error) if error.is_eof() => Err(format!("{start}unexpected end of JSON input")),
        Err(error) => {
            Err(format!("{start}{}", crate::json::complaint(body).unwrap_or_else(|| error.to_string())))
        }
    }
}

/// Checks the kind that an answer claims to have, of which nothing may be said, and then its members.
fn check_claims(review: &Map, version: ReviewVersion) -> Result<(), String> {
    let text = |field| fields::text(review, &[field]);
    let other = match version {
        ReviewVersion::V1 => ReviewVersion::V1Beta1,
        ReviewVersion::V1Beta1 => ReviewVersion::V1,
    };
    let claimed = (text("apiVersion"), text("kind"));
    let is = |known: ReviewVersion| {
        matches!(claimed.0, "" if known == version) || claimed.0 == known.api_version()
    };
    let is_review = matches!(claimed.1, "" | KIND);
    if !is_review || !(is(version) || is(other)) {
        let api_version = if claimed.0.is_empty() { version.api_version() } else { claimed.0 };
        let kind = if claimed.1.is_empty() { KIND } else { claimed.1 };
        let (kind, api_version) = (quote(kind), quote(api_version));
        return Err(format!("no kind {kind} is registered for version {api_version} in scheme {SCHEME}"));
    }
    check_types(review, version)?;
    if is(version) {
        return Ok(());
    }
    let [from, to] = [other, version].map(ReviewVersion::name);
    Err(format!("converting ({from}.{KIND}) to ({to}.{KIND}): unknown conversion"))
}

fn check_types(review: &Map, version: ReviewVersion) -> Result<(), String> {
    let package = if version == ReviewVersion::V1 { "v1" } else { "v1beta1" };
    let wrong = |value: &Value, field: &str, kind: &str| {
        let found = gotext::json_kind(value);
        Err(format!("json: cannot unmarshal {found} into Go struct field {field} of type {kind}"))
    };
    let response = match review.get("response") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(response)) => response,
        Some(other) => {
            return wrong(other, "AdmissionReview.response", &format!("{package}.AdmissionResponse"));
        }
    };
    for (name, fits, kind) in FIELDS {
        if let Some(value) = response.get(name).filter(|value| !value.is_null() && !fits(value)) {
            return wrong(value, &format!("AdmissionResponse.response.{name}"), kind);
        }
    }
    Ok(())
}

/// A member of an answer, whether a value fits, and its type in Go.
type Field = (&'static str, fn(&Value) -> bool, &'static str);

const FIELDS: [Field; 7] = [
    ("uid", Value::is_string, "types.UID"),
    ("allowed", Value::is_boolean, "bool"),
    ("status", Value::is_object, "v1.Status"),
    ("patch", Value::is_string, "[]uint8"),
    ("patchType", Value::is_string, "v1.PatchType"),
    ("auditAnnotations", Value::is_object, "map[string]string"),
    ("warnings", Value::is_array, "[]string"),
];

fn check_v1(review: &Map, response: &Map, uid: &str) -> Result<(), String> {
    let found = fields::text(response, &["uid"]);
    if found != uid {
        return Err(format!("expected response.uid={}, got {}", quote(uid), quote(found)));
    }
    let text = |field| fields::text(review, &[field]);
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version != ReviewVersion::V1.api_version() || kind != KIND {
        let expected = Gvk::fixed("admission.k8s.io/v1", KIND);
        let found = Gvk::parse(version, kind).map_or_else(
            |_| format!("{version}, Kind={kind}"),
            |found| match found.group().is_empty() {
                true => format!("/{}, Kind={kind}", found.version()),
                false => found.to_string(),
            },
        );
        return Err(format!("expected webhook response of {expected}, got {found}"));
    }
    Ok(())
}

fn check_patch(patch: &[u8], patch_type: Option<&str>) -> Result<(), String> {
    Err(match (patch.is_empty(), patch_type) {
        (false, None) => "webhook returned response.patch but not response.patchType",
        (true, Some(_)) => "webhook returned response.patchType but not response.patch",
        (false, Some("")) => "webhook returned invalid response.patchType of \"\"",
        _ => return Ok(()),
    }
    .to_owned())
}

/// The Status with which a refusal is answered, and its code (`pkg/admission/plugin/webhook/errors`).
pub fn refusal(webhook: &str, status: Option<Map>) -> (Map, u16) {
    let mut status = status.unwrap_or_default();
    let code = status.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| *code >= 400).unwrap_or(400);
    let denied = format!("admission webhook {} denied the request", quote(webhook));
    let text = |field| fields::text(&status, &[field]).to_owned();
    let message = match (text("message"), text("reason")) {
        (message, _) if !message.is_empty() => format!("{denied}: {message}"),
        (_, reason) if !reason.is_empty() => format!("{denied}: {reason}"),
        _ => format!("{denied} without explanation"),
    };
    let outcome = match text("status").as_str() {
        "" | "Success" => "Failure".to_owned(),
        other => other.to_owned(),
    };
    let mut told = Map::new();
    told.insert("kind", "Status".into());
    told.insert("apiVersion", "v1".into());
    told.insert("metadata", status.get("metadata").cloned().unwrap_or_else(|| Value::Object(Map::new())));
    told.insert("status", outcome.into());
    told.insert("message", message.into());
    for member in ["reason", "details"] {
        if let Some(value) = status.shift_remove(member).filter(|value| !value.is_null() && *value != "") {
            told.insert(member, value);
        }
    }
    told.insert("code", code.into());
    (told, code)
}

#[cfg(test)]
mod tests;
