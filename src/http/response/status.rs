//! The only conversion from [`Error`] to HTTP: status code, `Status` body and `Retry-After`.

use crate::api::error::{Error, Exists, Refuser, Subject};
use crate::causes::Cause;
use crate::causes::CauseReason;
use crate::schema::names::{GroupKind, GroupResource};
use crate::tree::{Map, Value, json};

/// An [`Error`] in the form that the client sees.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub code: u16,
    /// The machine-readable reason, which can be used as a metric label; empty for unclassified errors.
    pub reason: &'static str,
    /// A `v1` `Status`, which can also be used in an ERROR event of a watch.
    pub body: Value,
    /// The seconds of `Retry-After`, which equal `details.retryAfterSeconds`.
    pub retry_after: Option<u32>,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        if let Error::Denied { status, code } = error {
            return denied(status, *code);
        }
        let Parts { code, reason, details } = parts(error);
        let retry_after = details.as_ref().map(|d| d.retry_after).filter(|seconds| *seconds > 0);
        let metadata = match error {
            Error::Expired { continue_token: Some(token), .. } => json!({ "continue": token }),
            _ => json!({}),
        };
        let mut body = status(metadata, "Failure");
        put_text(&mut body, "message", &error.for_clients());
        put_text(&mut body, "reason", reason);
        if let Some(details) = details {
            body.insert("details", details.into_json());
        }
        body.insert("code", code.into());
        Self { code, reason, body: Value::Object(body), retry_after }
    }
}

/// The Status of an admission webhook, as it is.
fn denied(status: &Map, code: u16) -> Failure {
    let seconds = status.get("details").and_then(|details| details.get("retryAfterSeconds")?.as_u64());
    let retry_after = seconds.and_then(|seconds| u32::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    Failure { code, reason: "", body: Value::Object(status.clone()), retry_after }
}

/// The answer to a DELETE that removed the object at once: success without a code (upstream's `rest.finishDelete`).
pub fn deleted(resource: &GroupResource, name: &str, uid: &str) -> Value {
    let details = Details { uid: uid.to_owned(), ..Details::of(resource, name) };
    let mut body = status(json!({}), "Success");
    body.insert("details", details.into_json());
    Value::Object(body)
}

/// The answer to a DELETE of an object that nobody could read (upstream's `handlers.DeleteResource` without a result).
pub fn deleted_unread(kind: &str, name: &str) -> Value {
    let details = Details { name: name.to_owned(), kind: kind.to_owned(), ..Details::default() };
    let mut body = status(json!({}), "Success");
    body.insert("details", details.into_json());
    body.insert("code", 200.into());
    Value::Object(body)
}

/// The answer to a POST that created no object.
pub fn done() -> Value {
    let mut body = status(json!({}), "Success");
    body.insert("code", 201.into());
    Value::Object(body)
}

fn status(metadata: Value, outcome: &str) -> Map {
    let mut body = Map::new();
    body.insert("kind", "Status".into());
    body.insert("apiVersion", "v1".into());
    body.insert("metadata", metadata);
    body.insert("status", outcome.into());
    body
}

struct Parts {
    code: u16,
    reason: &'static str,
    details: Option<Details>,
}

#[derive(Default)]
struct Details {
    name: String,
    group: String,
    kind: String,
    uid: String,
    causes: Vec<Value>,
    retry_after: u32,
}

impl Details {
    fn of(resource: &GroupResource, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            group: resource.group.to_string(),
            kind: resource.plural.to_string(),
            ..Self::default()
        }
    }

    fn of_kind(kind: &GroupKind, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            group: kind.group.to_string(),
            kind: kind.kind.to_string(),
            ..Self::default()
        }
    }

    fn retry(retry_after: u32) -> Self {
        Self { retry_after, ..Self::default() }
    }

    fn because(self, causes: &[Cause]) -> Self {
        let causes = causes.iter().map(|c| cause(c.reason.as_str(), &c.message, &c.field)).collect();
        Self { causes, ..self }
    }

    fn into_json(self) -> Value {
        let mut details = Map::new();
        put_text(&mut details, "name", &self.name);
        put_text(&mut details, "group", &self.group);
        put_text(&mut details, "kind", &self.kind);
        put_text(&mut details, "uid", &self.uid);
        if !self.causes.is_empty() {
            details.insert("causes", self.causes.into());
        }
        if self.retry_after > 0 {
            details.insert("retryAfterSeconds", self.retry_after.into());
        }
        Value::Object(details)
    }
}

fn cause(reason: &str, message: &str, field: &str) -> Value {
    let mut cause = Map::new();
    put_text(&mut cause, "reason", reason);
    put_text(&mut cause, "message", message);
    put_text(&mut cause, "field", field);
    Value::Object(cause)
}

fn put_text(object: &mut Map, key: &str, text: &str) {
    if !text.is_empty() {
        object.insert(key, text.into());
    }
}

fn parts(error: &Error) -> Parts {
    let (code, reason, details) = match error {
        Error::BadRequest(_) => (400, "BadRequest", None),
        Error::Unauthorized => (401, "Unauthorized", None),
        Error::Forbidden { resource, name, .. } => (403, "Forbidden", Some(Details::of(resource, name))),
        Error::ForbiddenPath(_) => (403, "Forbidden", Some(Details::default())),
        Error::ForbiddenBecause { resource, name, causes, .. } => {
            (403, "Forbidden", Some(Details::of(resource, name).because(causes)))
        }
        Error::Denied { code, .. } => (*code, "", None),
        Error::NotFound { resource, name } => (404, "NotFound", Some(Details::of(resource, name))),
        Error::UnknownResource | Error::NoCluster => (404, "NotFound", Some(Details::default())),
        Error::MethodNotAllowed => (405, "MethodNotAllowed", Some(Details::default())),
        Error::NotSupported { resource, .. } => (405, "MethodNotAllowed", Some(Details::of(resource, ""))),
        Error::NotAcceptable { by, .. } => (406, "NotAcceptable", refused_by(*by)),
        Error::AlreadyExists { resource, name, cause } => {
            (409, "AlreadyExists", Some(taken(resource, name, *cause)))
        }
        Error::Conflict { subject, name, .. } => (409, "Conflict", Some(conflicting(subject, name))),
        Error::ApplyConflict { causes, .. } => (409, "Conflict", Some(Details::default().because(causes))),
        Error::Expired { .. } => (410, "Expired", None),
        Error::TooLarge { .. }
        | Error::TooManyOperations { .. }
        | Error::TooManyMoves { .. }
        | Error::TooBroad { .. }
        | Error::DefaultsTooLarge(_)
        | Error::AnswerTooLarge(_)
        | Error::ObjectTooLarge => (413, "RequestEntityTooLarge", None),
        Error::UnsupportedMediaType { by, .. } => (415, "UnsupportedMediaType", refused_by(*by)),
        Error::Invalid { kind, name, causes } => {
            (422, "Invalid", Some(Details::of_kind(kind, name).because(causes)))
        }
        Error::Unprocessable => (422, "Invalid", Some(Details::default())),
        Error::Disruption { cause, retry_after } => {
            let causes = std::slice::from_ref(cause);
            (429, "TooManyRequests", Some(Details::retry(*retry_after).because(causes)))
        }
        Error::NoSeat { .. } => (429, "TooManyRequests", None),
        Error::TooManyRequests { retry_after, .. } => {
            (429, "TooManyRequests", Some(Details::retry(*retry_after)))
        }
        Error::Internal(text) | Error::NotAuthorized(text) => (500, "InternalError", Some(internal(text))),
        Error::Unclassified(_) => (500, "", None),
        Error::ServerTimeout { resource, operation } => {
            (500, "ServerTimeout", Some(Details { retry_after: 2, ..Details::of(resource, operation) }))
        }
        Error::Unavailable { retry_after: 0, .. } => (503, "ServiceUnavailable", None),
        Error::Unavailable { retry_after, .. } => {
            (503, "ServiceUnavailable", Some(Details::retry(*retry_after)))
        }
        Error::Datastore(_) => (503, "ServiceUnavailable", Some(Details::retry(1))),
        Error::Timeout(_) => (504, "Timeout", Some(Details::default())),
        Error::FutureRevision { .. } => (504, "Timeout", Some(ahead_of_store())),
        Error::Done(cause) => return parts(cause),
    };
    Parts { code, reason, details }
}

fn refused_by(refuser: Refuser) -> Option<Details> {
    match refuser {
        Refuser::Router => Some(Details::default()),
        Refuser::Handler => None,
    }
}

fn taken(resource: &GroupResource, name: &str, cause: Exists) -> Details {
    let retry_after = match cause {
        Exists::Generated => 1,
        Exists::Plain | Exists::Terminating => 0,
    };
    Details { retry_after, ..Details::of(resource, name) }
}

fn conflicting(subject: &Subject, name: &str) -> Details {
    match subject {
        Subject::Resource(resource) => Details::of(resource, name),
        Subject::Kind(kind) => Details::of_kind(kind, name),
    }
}

fn internal(text: &str) -> Details {
    Details { causes: vec![cause("", text, "")], ..Details::default() }
}

/// client-go recognizes this cause and lists again without a revision.
fn ahead_of_store() -> Details {
    let cause = Cause::new(
        CauseReason::ResourceVersionTooLarge,
        String::new(),
        "Too large resource version".to_owned(),
    );
    Details::retry(1).because(&[cause])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn widgets() -> GroupResource {
        GroupResource::new("example.com", "widgets")
    }

    fn pods() -> GroupResource {
        GroupResource::new("", "pods")
    }

    #[test]
    fn bodies_as_upstream_prints_them() {
        let cases = [
            (
                Error::bad_request("no"),
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":"BadRequest","code":400}"#,
            ),
            (
                Error::NotFound { resource: widgets(), name: "x".into() },
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"widgets.example.com \"x\" not found","reason":"NotFound","details":{"name":"x","group":"example.com","kind":"widgets"},"code":404}"#,
            ),
            (
                Error::NotFound { resource: pods(), name: "x".into() },
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"x\" not found","reason":"NotFound","details":{"name":"x","kind":"pods"},"code":404}"#,
            ),
            (
                Error::UnknownResource,
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404}"#,
            ),
            (
                Error::NotSupported { resource: pods(), verb: "watch" },
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"watch is not supported on resources of kind \"pods\"","reason":"MethodNotAllowed","details":{"kind":"pods"},"code":405}"#,
            ),
            (
                Error::Expired { message: "old".into(), continue_token: Some("t".into()) },
                r#"{"kind":"Status","apiVersion":"v1","metadata":{"continue":"t"},"status":"Failure","message":"old","reason":"Expired","code":410}"#,
            ),
            (
                Error::FutureRevision { requested: 9, current: 5 },
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 9, current: 5","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}"#,
            ),
            (
                Error::Internal("boom".into()),
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Internal error occurred: boom","reason":"InternalError","details":{"causes":[{"message":"boom"}]},"code":500}"#,
            ),
            (
                Error::Unclassified("raw".into()),
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"raw","code":500}"#,
            ),
            (
                Error::invalid_options("ListOptions", vec![Cause::forbidden("f", "no")]),
                r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"ListOptions.meta.k8s.io \"\" is invalid: f: Forbidden: no","reason":"Invalid","details":{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":"FieldValueForbidden","message":"Forbidden: no","field":"f"}]},"code":422}"#,
            ),
        ];
        for (error, want) in cases {
            assert_eq!(Failure::from(&error).body.to_string(), want);
        }
    }

    #[test]
    fn retry_after_goes_with_its_detail() {
        let generated = Error::AlreadyExists { resource: pods(), name: "a".into(), cause: Exists::Generated };
        let busy = Error::ServerTimeout { resource: pods(), operation: "list" };
        let down = Error::Unavailable { message: "down".into(), retry_after: 0 };
        for (error, seconds) in [(generated, Some(1)), (busy, Some(2)), (down, None)] {
            let failure = Failure::from(&error);
            assert_eq!(failure.retry_after, seconds);
            let detail = failure.body["details"]["retryAfterSeconds"].as_u64();
            assert_eq!(detail, seconds.map(u64::from));
        }
    }

    #[test]
    fn a_delete_precondition_names_the_kind() {
        let error = Error::Conflict {
            subject: Subject::Kind(GroupKind::new("example.com", "Widget")),
            name: "n".into(),
            reason: "r".into(),
        };
        let body = Failure::from(&error).body;
        assert_eq!(body["message"], "Operation cannot be fulfilled on Widget.example.com \"n\": r");
        assert_eq!(body["details"], json!({"name": "n", "group": "example.com", "kind": "Widget"}));
    }

    #[test]
    fn success_has_no_code() {
        assert_eq!(
            deleted(&pods(), "a", "u").to_string(),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"a","kind":"pods","uid":"u"}}"#
        );
    }
}
