use std::sync::Arc;

use futures_util::FutureExt as _;

use super::*;
use crate::auth::authn::Settings;
use crate::auth::authorizer::{Answer, Attributes, Authorization, Decision, Given, Reason};
use crate::auth::token_file::Tokens;
use crate::tree::{Value, json};
use crate::user::MASTERS;

fn user(name: &str, groups: &[&str]) -> User {
    User { name: name.into(), groups: groups.iter().map(|&group| group.into()).collect(), ..User::default() }
}

/// Answers a review of a user who is in `system:masters`, or is not.
fn ask(kind: &str, master: bool, question: Value) -> Result<Value, String> {
    ask_of(&Authorization::default(), kind, master, question)
}

fn ask_of(authorizer: &dyn Authorizer, kind: &str, master: bool, question: Value) -> Result<Value, String> {
    let user = user("me", if master { &[MASTERS] } else { &["devs"] });
    let authenticator = &Authenticator::new(Settings::default(), Tokens::default());
    let sources = Sources { user: &user, authorizer, authenticator, now: "2026-07-01T10:00:00Z" };
    let question = question.as_object().unwrap().clone();
    let review = Review::of_kind(kind).unwrap();
    review.check(&question).map_err(|error| error.to_string())?;
    let answer = review.answer(question, &sources).now_or_never().expect("at once");
    answer.map(Value::Object).map_err(|error| error.to_string())
}

#[tokio::test]
async fn tokens() {
    let settings =
        Settings { audiences: ["api".to_owned(), "more".to_owned()].into(), ..Settings::default() };
    let authenticator = Authenticator::new(settings, Tokens::parse("secret,bob,,b\n").unwrap());
    let status = async |spec: Value| {
        let question = json!({"spec": spec}).as_object().unwrap().clone();
        identity::check_token(&question).map_err(|error| error.to_string())?;
        let answer = identity::review_token(question, &authenticator).await;
        answer.map(|answer| answer["status"].clone()).map_err(|error| error.to_string())
    };
    let bob = json!({"username": "bob", "groups": ["b", "system:authenticated"]});
    let cases = [
        (
            json!({"token": "secret"}),
            json!({"authenticated": true, "user": bob, "audiences": ["api", "more"]}),
        ),
        (
            json!({"token": "secret", "audiences": ["x", "more"]}),
            json!({"authenticated": true, "user": bob, "audiences": ["more"]}),
        ),
        (
            json!({"token": "secret", "audiences": ["x"]}),
            json!({"user": {}, "error": "invalid bearer token"}),
        ),
        (json!({"token": "wrong"}), json!({"user": {}, "error": "invalid bearer token"})),
    ];
    for (spec, want) in cases {
        assert_eq!(status(spec).await, Ok(want));
    }
    for spec in [json!({}), json!(null), json!({"token": 3})] {
        assert_eq!(status(spec).await, Err("token is required for TokenReview in authentication".to_owned()));
    }
}

#[test]
fn oneself() {
    let question = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {"name": "x"}});
    assert_eq!(
        ask("SelfSubjectReview", false, question),
        Ok(json!({
            "kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": "2026-07-01T10:00:00Z"},
            "status": {"userInfo": {"username": "me", "groups": ["devs"]}},
        }))
    );
}

#[test]
fn access() {
    let attributes = json!({"verb": "get", "resource": "pods"});
    let allowed =
        |kind: &str, master, question| ask(kind, master, question).map(|answer| answer["status"].clone());
    let subject =
        |groups: Value| json!({"spec": {"user": "u", "groups": groups, "resourceAttributes": attributes}});
    let (yes, no) = (json!({"allowed": true}), json!({"allowed": false}));
    assert_eq!(allowed("SubjectAccessReview", true, subject(json!(["devs"]))), Ok(no.clone()));
    assert_eq!(allowed("SubjectAccessReview", false, subject(json!([MASTERS]))), Ok(yes.clone()));

    let own = json!({"metadata": {"creationTimestamp": null, "managedFields": [1]}, "spec": {"nonResourceAttributes": {"path": "/x", "verb": "get"}}});
    assert_eq!(allowed("SelfSubjectAccessReview", true, own.clone()), Ok(yes));
    assert_eq!(allowed("SelfSubjectAccessReview", false, own), Ok(no.clone()));

    let local = json!({"metadata": {"namespace": "n"}, "spec": {"user": "u", "resourceAttributes": {"namespace": "n"}}});
    assert_eq!(allowed("LocalSubjectAccessReview", true, local), Ok(no));
}

#[test]
fn refused_questions() {
    let invalid = |text: &str| Err(format!(".authorization.k8s.io \"\" is invalid: {text}"));
    let neither = "spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let nobody = "spec.user: Invalid value: \"\": at least one of user or group must be specified";
    let cases = [
        ("SubjectAccessReview", json!({}), format!("[{neither}, {nobody}]")),
        ("SubjectAccessReview", json!({"spec": {"user": "u"}}), neither.to_owned()),
        ("SubjectAccessReview", json!({"spec": {"resourceAttributes": {}}}), nobody.to_owned()),
        ("SelfSubjectAccessReview", json!({"spec": 3}), neither.to_owned()),
        (
            "SelfSubjectAccessReview",
            json!({"spec": {"resourceAttributes": {}, "nonResourceAttributes": {"path": "/x"}}}),
            r#"spec: Invalid value: {"Path":"/x","Verb":""}: exactly one of nonResourceAttributes or resourceAttributes must be specified"#.to_owned(),
        ),
        (
            "SelfSubjectAccessReview",
            json!({"metadata": {"name": "x"}, "spec": {"resourceAttributes": {}}}),
            r#"metadata: Invalid value: {"name":"x"}: must be empty"#.to_owned(),
        ),
        (
            "LocalSubjectAccessReview",
            json!({"metadata": {"namespace": "n"}, "spec": {"user": "u", "resourceAttributes": {"namespace": "m"}}}),
            r#"spec.resourceAttributes.namespace: Invalid value: "m": must match metadata.namespace"#.to_owned(),
        ),
        (
            "LocalSubjectAccessReview",
            json!({"metadata": {"namespace": "n"}, "spec": {"user": "u", "nonResourceAttributes": {}}}),
            r#"spec.nonResourceAttributes: Invalid value: {"Path":"","Verb":""}: disallowed on this kind of request"#.to_owned(),
        ),
    ];
    for (kind, question, want) in cases {
        assert_eq!(ask(kind, true, question), invalid(&want));
    }
}

#[test]
fn the_authorizer_hears_the_whole_question() {
    struct Spelled;
    impl Authorizer for Spelled {
        fn decide<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a> {
            let a = attributes;
            let text = [
                a.verb,
                a.group,
                a.version,
                a.resource,
                a.subresource,
                a.namespace,
                a.name,
                a.path,
                &a.user.uid,
            ]
            .join(" ");
            Answer::Now(Decision::Deny(Reason::Given(Arc::new(Given { text, error: None }))))
        }
    }
    let reason = |spec: Value| {
        let answer = ask_of(&Spelled, "SubjectAccessReview", false, json!({"spec": spec})).unwrap();
        assert_eq!(answer["status"]["denied"], true);
        answer["status"]["reason"].clone()
    };
    let resource = json!({"verb": "get", "group": "apps", "resource": "deployments", "subresource": "scale", "namespace": "n", "name": "d"});
    assert_eq!(
        reason(json!({"user": "u", "uid": "7", "resourceAttributes": resource})),
        "get apps * deployments scale n d  7"
    );
    assert_eq!(
        reason(json!({"user": "u", "nonResourceAttributes": {"verb": "get", "path": "/x"}})),
        "get       /x "
    );
}

#[test]
fn rules() {
    let status = |master| {
        let question = json!({"spec": {"namespace": "n"}});
        ask("SelfSubjectRulesReview", master, question).map(|answer| answer["status"].clone())
    };
    assert_eq!(status(false), Ok(json!({"resourceRules": [], "nonResourceRules": [], "incomplete": false})));
    assert_eq!(status(true), status(false), "masters have the rules of their roles");
    assert_eq!(ask("SelfSubjectRulesReview", true, json!({})), Err("no namespace on request".to_owned()));
}
