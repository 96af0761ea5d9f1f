//! Tests of `auth::authorizer::conditions`.

use rowplane_access::auth::authorizer::conditions::Condition;
use rowplane_access::auth::authorizer::conditions::Conditions;
use rowplane_access::auth::authorizer::conditions::Match;
use rowplane_values::tree::json;

fn judge(texts: &[&str]) -> Match {
    let spec = json!({
        "user": "alice",
        "groups": ["devs"],
        "uid": "",
        "extra": {"scopes": ["x"]},
        "resourceAttributes": {
            "namespace": "a", "verb": "list", "group": "", "version": "v1", "resource": "pods",
            "subresource": "", "name": "",
            "fieldSelector": {"requirements": [
                {"key": "spec.nodeName", "operator": "In", "values": ["n"]}]},
        },
    });
    let compiled = texts.iter().map(|text| Condition::compile(text).expect("an expression"));
    Conditions::new(compiled.collect()).judge(spec.as_object().expect("an object"))
}

#[test]
fn auth_73_all_have_to_hold() {
    for text in [
        "has(request.resourceAttributes) && request.resourceAttributes.verb == 'list'",
        "!has(request.nonResourceAttributes)",
        "'devs' in request.groups && request.user.startsWith('al')",
        "request.extra['scopes'] == ['x']",
        "request.resourceAttributes.fieldSelector.requirements.exists(r, r.key == 'spec.nodeName' && 'n' in r.values)",
        "!has(request.resourceAttributes.labelSelector)",
        "request.?resourceAttributes.?labelSelector.hasValue() == false",
    ] {
        assert_eq!(judge(&[text]), Match::Yes, "{text}");
    }
    assert_eq!(judge(&[]), Match::Yes);
    let erroneous = "request.nonResourceAttributes.path == '/x'";
    assert_eq!(judge(&[erroneous, "request.user == 'bob'"]), Match::No);
    let why = format!(
        "cel evaluation error: expression '{erroneous}' resulted in error: no such key: nonResourceAttributes"
    );
    assert_eq!(judge(&["true", erroneous]), Match::Unknown(why));
}

#[test]
fn what_is_no_condition_is_refused() {
    let refused = |text: &str| Condition::compile(text).expect_err("refused");
    assert_eq!(refused("request.user"), "must evaluate to bool but got string");
    assert!(
        refused("request.nobody == ''")
            .starts_with("compilation failed: ERROR: <input>:1:8: undefined field")
    );
}
