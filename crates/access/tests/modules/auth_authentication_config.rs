//! Tests of `auth::authentication_config`.

use rowplane_access::auth::authentication_config::parse;
use rowplane_access::auth::authn::Anonymous;
use rowplane_values::tree::Value;
use rowplane_values::tree::json;

const RIGHT: &str = r#"
apiVersion: apiserver.config.k8s.io/v1
kind: AuthenticationConfiguration
anonymous:
  enabled: true
  conditions: [{path: /livez}]
jwt:
- issuer:
    url: https://issuer.example
    audiences: [a, b]
    audienceMatchPolicy: MatchAny
  claimMappings:
    username: {expression: '"user:" + claims.sub'}
    groups: {expression: 'claims.roles.split(",")'}
    uid: {claim: id}
    extra: [{key: example.com/team, valueExpression: 'claims.?team.orValue("")'}]
  claimValidationRules:
  - {claim: hd, requiredValue: example.com}
  - {expression: 'claims.level > 2', message: too low}
  userValidationRules:
  - {expression: '!user.username.startsWith("user:system:")', message: reserved}
"#;

#[test]
fn claims_are_mapped_by_expressions() {
    let file = parse(RIGHT.as_bytes(), &[]).unwrap();
    assert_eq!(file.anonymous, Some(Anonymous::At(vec!["/livez".into()])));
    let issuer = &file.issuers[0];
    assert_eq!(issuer.audiences, ["a", "b"]);
    let mapped = |claims: Value| issuer.mapping.user(claims.as_object().expect("an object"));
    let claims =
        json!({"sub": "jane", "roles": "x,y", "id": "7", "team": "red", "hd": "example.com", "level": 3});
    let user = mapped(claims.clone()).unwrap();
    assert_eq!((&*user.name, &*user.uid), ("user:jane", "7"));
    assert_eq!(user.groups, ["x", "y", "system:authenticated"]);
    assert_eq!(user.extra["example.com/team"], ["red"]);
    let with = |key: &str, value: Value| {
        let mut claims = claims.clone();
        claims[key] = value;
        mapped(claims)
    };
    assert!(!with("team", "".into()).unwrap().extra.contains_key("example.com/team"));
    let failed = with("level", 2.into()).unwrap_err();
    let why = "oidc: error evaluating claim validation expression: validation expression 'claims.level > 2' failed: too low";
    assert_eq!(failed, why);
    let reserved = with("sub", "system:x".into()).unwrap_err();
    assert!(
        reserved.starts_with("oidc: error evaluating user info validation rule: ")
            && reserved.ends_with(": reserved")
    );
    assert!(with("roles", 7.into()).is_err());
}

#[test]
fn what_is_wrong_is_named() {
    for (from, to, why) in [
        ("kind: AuthenticationConfiguration", "kind: Other", "no kind \"Other\" is registered"),
        ("https://issuer.example", "http://issuer.example", "URL scheme must be https"),
        (
            "https://issuer.example",
            "https://own",
            "URL must not overlap with disallowed issuers: [\"https://own\"]",
        ),
        (
            "    audienceMatchPolicy: MatchAny\n",
            "",
            "audienceMatchPolicy must be MatchAny for multiple audiences",
        ),
        ("audiences: [a, b]", "audiences: [a, a]", "jwt[0].issuer.audiences[1]: Duplicate value: \"a\""),
        ("claims.level > 2", "claims.level >", "jwt[0].claimValidationRules[1].expression: Invalid value"),
        ("claims.level > 2", "\"x\"", "must evaluate to bool"),
        ("claims.sub'", "claims.email'", "claims.email_verified must be used"),
        ("example.com/team", "kubernetes.io/team", "reserved"),
        ("enabled: true", "enabled: false", "enabled should be set to true"),
        ("anonymous:", "surprise: 1\nanonymous:", "unknown field \"surprise\""),
        ("username: {expression: '\"user:\" + claims.sub'}", "username: {claim: sub}", "prefix is required"),
        (
            "audiences: [a, b]",
            "audiences: [a, b]\n    certificateAuthority: nothing",
            "jwt[0].issuer.certificateAuthority: Invalid value: \"<omitted>\": data does not contain any valid RSA or ECDSA \
             certificates",
        ),
    ] {
        let text = RIGHT.replacen(from, to, 1);
        assert_ne!(text, RIGHT, "{from}");
        let found = parse(text.as_bytes(), &["https://own".into()]).unwrap_err();
        assert!(found.contains(why), "{found}: {why}");
    }
}
