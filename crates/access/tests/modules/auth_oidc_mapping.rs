//! Tests of `auth::oidc::mapping`.

use rowplane_access::auth::authn::CREDENTIAL_ID;
use rowplane_access::auth::oidc::Mapping;
use rowplane_objects::user::User;
use rowplane_values::tree::{Value, json};

fn mapping() -> Mapping {
    Mapping {
        username_claim: "email".into(),
        username_prefix: String::new(),
        groups_claim: "groups".into(),
        groups_prefix: "oidc:".into(),
        required: vec![("hd".into(), "example.com".into())],
        ..Mapping::default()
    }
}

fn user(claims: Value) -> Result<User, String> {
    mapping().user(claims.as_object().expect("an object"))
}

#[test]
fn claims_become_a_user() {
    let found = user(json!({"email": "a@b", "groups": ["x", "y"], "hd": "example.com", "jti": "7"})).unwrap();
    assert_eq!((&*found.name, &*found.groups[0]), ("a@b", "oidc:x"));
    assert_eq!(found.groups, ["oidc:x", "oidc:y", "system:authenticated"]);
    assert_eq!(found.extra[CREDENTIAL_ID], ["JTI=7"]);
    let one = user(json!({"email": "a@b", "groups": "x", "hd": "example.com"})).unwrap();
    assert_eq!(one.groups, ["oidc:x", "system:authenticated"]);
}

#[test]
fn claims_that_do_not_fit_are_named() {
    for (claims, why) in [
        (json!({}), "oidc: parse username claims \"email\": claim not present"),
        (
            json!({"email": 7}),
            "oidc: parse username claims \"email\": json: cannot unmarshal number into Go value of type string",
        ),
        (json!({"email": "a@b", "email_verified": false}), "oidc: email not verified"),
        (json!({"email": "a@b"}), "oidc: required claim hd not present in ID token"),
        (
            json!({"email": "a@b", "hd": "other"}),
            "oidc: required claim hd value does not match. Got = other, want = example.com",
        ),
        (
            json!({"email": "a@b", "hd": "example.com", "groups": [7]}),
            "oidc: parse groups claim \"groups\": neither a text nor a list of texts",
        ),
    ] {
        assert_eq!(user(claims).unwrap_err(), why);
    }
}
