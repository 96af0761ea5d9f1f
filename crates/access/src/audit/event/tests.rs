use std::sync::OnceLock;

use http::{HeaderValue, Uri};

use super::super::head::Sources;
use super::super::policy::Level;
use super::*;
use crate::tree::json;

fn head(level: Level) -> Head {
    let user = User {
        name: "u<1>".to_owned(),
        groups: vec!["g".to_owned(), "system:authenticated".to_owned()],
        extra: [("k".to_owned(), vec!["v".to_owned()])].into(),
        ..User::default()
    };
    Head {
        level,
        audit_id: Some(HeaderValue::from_static("id-1")),
        uri: Uri::from_static("/api/v1/namespaces/n/pods?x=1&y=2"),
        long_query: None,
        verb: "create".into(),
        user: Some(Arc::new(user)),
        sources: Sources::of("10.0.0.1", "", Some(&"::1".into())),
        sent_user_agent: Some(HeaderValue::from_static("kubectl")),
        received: "2026-01-02T03:04:05.000600Z".parse().expect("a time"),
        text: OnceLock::new(),
    }
}

fn shown(head: &Head, growing: &Growing, stage: Stage) -> String {
    let at = "2026-01-02T03:04:06.5Z".parse().expect("a time");
    String::from_utf8(standing_alone(Event::new(head, growing, stage, at).item())).expect("text")
}

#[test]
fn json_is_upstreams() {
    let growing = Growing {
        object: Some(ObjectReference {
            resource: "pods".into(),
            namespace: "n".into(),
            version: "v1".into(),
            ..ObjectReference::default()
        }),
        status: Some(ResponseStatus { status: Value::Null, code: 201 }),
        request_object: Some(Bytes::from_static(b"{\"a\":1}\n")),
        annotations: vec![("authorization.k8s.io/decision".into(), "allow".into()), ("b".into(), "2".into())],
        ..Growing::default()
    };
    assert_eq!(
        shown(&head(Level::Request), &growing, Stage::ResponseComplete),
        concat!(
            r#"{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Request","auditID":"id-1","stage":"ResponseComplete","#,
            r#""requestURI":"/api/v1/namespaces/n/pods?x=1\u0026y=2","verb":"create","#,
            r#""user":{"username":"u\u003c1\u003e","groups":["g","system:authenticated"],"extra":{"k":["v"]}},"#,
            r#""sourceIPs":["10.0.0.1","::1"],"userAgent":"kubectl","#,
            r#""objectRef":{"resource":"pods","namespace":"n","apiVersion":"v1"},"#,
            r#""responseStatus":{"metadata":{},"code":201},"requestObject":{"a":1},"#,
            r#""requestReceivedTimestamp":"2026-01-02T03:04:05.000600Z","stageTimestamp":"2026-01-02T03:04:06.500000Z","#,
            r#""annotations":{"authorization.k8s.io/decision":"allow","b":"2"}}"#
        )
    );
}

#[test]
fn a_status_nobody_and_impersonation() {
    let mut nobody = head(Level::Metadata);
    nobody.user = None;
    nobody.sources = Sources::default();
    let status = json!({"kind": "Status", "status": "Failure", "message": "m", "reason": "r", "details": {"kind": "pods"}, "code": 1});
    let growing = Growing {
        status: Some(ResponseStatus { status, code: 403 }),
        impersonated: Some(Impersonated {
            user: Arc::new(User { name: "bob".to_owned(), ..User::default() }),
            constraint: "impersonate:user-info".to_owned(),
        }),
        ..Growing::default()
    };
    let text = shown(&nobody, &growing, Stage::ResponseStarted);
    for part in [
        r#""user":{},"impersonatedUser":{"username":"bob"},"authenticationMetadata":{"impersonationConstraint":"impersonate:user-info"},"userAgent""#,
        r#""responseStatus":{"metadata":{},"status":"Failure","message":"m","reason":"r","details":{"kind":"pods"},"code":403},"#,
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("annotations"));
}

#[test]
fn truncated_events_lose_their_objects() {
    let head = head(Level::RequestResponse);
    let growing = Growing {
        request_object: Some(Bytes::from_static(b"{}")),
        response_object: Some(Bytes::from_static(b"{}")),
        annotations: vec![("a".into(), "1".into()), ("b".into(), "2".into())],
        ..Growing::default()
    };
    let event = Event::new(&head, &growing, Stage::ResponseComplete, head.received);
    let text = String::from_utf8(event.truncated()).expect("text");
    assert!(!text.contains("requestObject") && !text.contains("responseObject"));
    assert!(text.ends_with(r#""annotations":{"a":"1","audit.k8s.io/truncated":"true","b":"2"}}"#), "{text}");
}

#[test]
fn the_legacy_line_is_upstreams() {
    let head = head(Level::Metadata);
    let growing = Growing::default();
    let event = Event::new(&head, &growing, Stage::RequestReceived, head.received);
    assert_eq!(
        event.legacy(),
        concat!(
            r#"2026-01-02T03:04:05.0006Z AUDIT: id="id-1" stage="RequestReceived" ip="10.0.0.1" method="create" user="u<1>" "#,
            r#"groups="\"g\",\"system:authenticated\"" as="<self>" asgroups="<lookup>" user-agent="kubectl" "#,
            r#"namespace="<none>" uri="/api/v1/namespaces/n/pods?x=1&y=2" response="<deferred>""#
        )
    );
}
