//! Tests of `auth::authorization_config`.

use std::time::Duration;

use rowplane_access::auth::authorization_config::OnFailure;
use rowplane_access::auth::authorization_config::parse;
use rowplane_access::auth::authorizer::mode::Mode;

fn file(authorizers: &str) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: {authorizers}\n"
    )
}

fn refused(authorizers: &str) -> String {
    parse(file(authorizers).as_bytes(), &[]).expect_err("refused")
}

fn hook(fields: &str) -> String {
    format!("[{{type: Webhook, name: h, webhook: {{{fields}}}}}]")
}

#[test]
fn a_webhook_is_configured() {
    let kubeconfig = tempfile::NamedTempFile::new().expect("a file");
    let path = kubeconfig.path().display();
    let text = file(&format!(
        "[{{type: Node, name: node}}, {{type: Webhook, name: hook.example.com, webhook: {{timeout: 3s, \
         authorizedTTL: 1m, cacheUnauthorizedRequests: false, subjectAccessReviewVersion: v1, \
         matchConditionSubjectAccessReviewVersion: v1, failurePolicy: Deny, \
         connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {path}}}, \
         matchConditions: [{{expression: \"request.user != 'root'\"}}]}}}}, {{type: RBAC, name: rbac}}]"
    ));
    let found = parse(text.as_bytes(), &[Mode::Node]).expect("a configuration");
    assert_eq!(found.iter().map(|one| one.mode).collect::<Vec<_>>(), [Mode::Node, Mode::Webhook, Mode::Rbac]);
    let webhook = found[1].webhook.clone().expect("settings");
    assert_eq!(found[1].name, "hook.example.com");
    assert_eq!(
        (webhook.timeout, webhook.authorized_ttl),
        (Duration::from_secs(3), Some(Duration::from_secs(60)))
    );
    assert_eq!((webhook.unauthorized_ttl, webhook.on_failure), (None, OnFailure::Deny));
    assert!(!webhook.conditions.is_empty());
    assert_eq!(parse(text.as_bytes(), &[]), Ok(found), "the same text says the same");
    let missing = parse(text.as_bytes(), &[Mode::Abac, Mode::AlwaysDeny]).expect_err("refused");
    assert_eq!(missing, "missing required types: [ABAC AlwaysDeny]");
}

/// The texts are those of kube-apiserver.
#[test]
fn auth_75_what_cannot_be_used_is_refused() {
    let long = vec!["{expression: 'true'}"; 65].join(", ");
    for (authorizers, why) in [
        ("[]", "authorizers: Required value: at least one authorization mode must be defined"),
        ("[{name: x}]", "authorizers[0].type: Required value"),
        (
            "[{type: X, name: x}]",
            r#"authorizers[0].type: Unsupported value: "X": supported values: "ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook""#,
        ),
        (
            "[{type: RBAC, name: rbac}, {type: RBAC, name: other}]",
            r#"authorizers[1].type: Duplicate value: "RBAC""#,
        ),
        ("[{type: RBAC}]", "authorizers[0].name: Required value"),
        ("[{type: RBAC, name: x}]", "expected name rbac for authorizer RBAC instead of x"),
        (
            "[{type: RBAC, name: rbac, webhook: {}}]",
            r#"authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook"#,
        ),
        ("[{type: Webhook, name: h}]", "authorizers[0].webhook: Required value: required when type=Webhook"),
        (
            "[{type: RBAC, nam: rbac}]",
            r#"failed to load AuthorizationConfiguration from file: strict decoding error: unknown field "authorizers[0].nam""#,
        ),
    ] {
        assert_eq!(refused(authorizers), why);
    }
    for (fields, why) in [
        ("", "authorizers[0].timeout: Required value"),
        ("timeout: 31s", r#"authorizers[0].timeout: Invalid value: "31s": must be > 0s and <= 30s"#),
        ("authorizedTTL: -1m", r#"authorizers[0].authorizedTTL: Invalid value: "-1m0s": must be > 0s"#),
        (
            "subjectAccessReviewVersion: v2",
            r#"authorizers[0].subjectAccessReviewVersion: Unsupported value: "v2": supported values: "v1", "v1beta1""#,
        ),
        (
            "failurePolicy: Maybe",
            r#"authorizers[0].failurePolicy: Unsupported value: "Maybe": supported values: "NoOpinion", "Deny""#,
        ),
        ("connectionInfo: {}", "authorizers[0].connectionInfo.type: Required value"),
        (
            "connectionInfo: {type: X}",
            r#"authorizers[0].connectionInfo.type: Unsupported value: {"Type":"X","KubeConfigFile":null}: supported values: "InClusterConfig", "KubeConfigFile""#,
        ),
        (
            "connectionInfo: {type: KubeConfigFile, kubeConfigFile: x}",
            r#"authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "x": must be an absolute path"#,
        ),
        (
            "connectionInfo: {type: KubeConfigFile, kubeConfigFile: /no/such}",
            r#"authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "/no/such": error loading file: stat /no/such: no such file or directory"#,
        ),
        (
            "connectionInfo: {type: KubeConfigFile, kubeConfigFile: /}",
            r#"authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "/": must be a regular file"#,
        ),
        (
            "matchConditions: [{expression: 'true'}]",
            "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified",
        ),
        (
            "matchConditions: [{expression: ' '}, {expression: 'true'}, {expression: 'true'}]",
            r#"authorizers[0].matchConditions[0].expression: Required value, authorizers[0].matchConditions[2].expression: Duplicate value: "true""#,
        ),
        (
            "matchConditions: [{expression: request.user}]",
            r#"authorizers[0].matchConditions[0].expression: Invalid value: "request.user": must evaluate to bool but got string"#,
        ),
        (
            &format!("matchConditions: [{long}]"),
            "authorizers[0].matchConditions: Too many: 65: must have at most 64 items",
        ),
    ] {
        let told = refused(&hook(fields));
        assert!(told.contains(why), "{fields}: {told}");
    }
    let told = parse(b"kind: Pod\napiVersion: v1", &[]).expect_err("refused");
    assert!(told.ends_with(r#"no kind "Pod" is registered for version "v1""#), "{told}");
}
