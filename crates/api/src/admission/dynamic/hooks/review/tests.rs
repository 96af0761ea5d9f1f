//! Answers of webhooks, right and wrong.

use super::*;
use crate::tree::json;

const V1: ReviewVersion = ReviewVersion::V1;

fn read_v1(response: Value, mutates: bool) -> Result<Answer, Wrong> {
    let review =
        json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
    read(review.to_string().as_bytes(), V1, "u", mutates)
}

#[test]
fn an_answer_has_to_fit_its_question() {
    let invalid = |why: &str| Err(Wrong::Invalid(why.to_owned()));
    let patch = gotext::encode_base64(b"[]");
    for (response, mutates, why) in [
        (Value::Null, true, "webhook response was absent"),
        (json!({"uid": "x"}), true, "expected response.uid=\"u\", got \"x\""),
        (
            json!({"uid": "u", "patch": patch}),
            true,
            "webhook returned response.patch but not response.patchType",
        ),
        (
            json!({"uid": "u", "patchType": "JSONPatch"}),
            true,
            "webhook returned response.patchType but not response.patch",
        ),
        (
            json!({"uid": "u", "patch": patch, "patchType": ""}),
            true,
            "webhook returned invalid response.patchType of \"\"",
        ),
        (json!({"uid": "u", "patch": patch}), false, "validating webhook may not return response.patch"),
        (
            json!({"uid": "u", "patchType": "x"}),
            false,
            "validating webhook may not return response.patchType",
        ),
    ] {
        assert_eq!(read_v1(response, mutates), invalid(why));
    }
    let silent = json!({"response": {"uid": "u"}}).to_string();
    assert_eq!(
        read(silent.as_bytes(), V1, "u", true),
        invalid("expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=")
    );
    let allowed = read_v1(json!({"uid": "u", "allowed": true, "warnings": ["w"]}), true).expect("an answer");
    assert!(allowed.is_allowed && allowed.warnings == ["w"] && allowed.patch.is_empty());
    let beta = json!({"response": {"patch": patch, "allowed": true}}).to_string();
    let beta = read(beta.as_bytes(), ReviewVersion::V1Beta1, "u", true).expect("an answer");
    assert_eq!((beta.patch_type.as_str(), &*beta.patch), ("JSONPatch", &b"[]"[..]));
}

#[test]
fn what_is_no_review_is_told_as_client_go_does() {
    let told = |body: &str| match read(body.as_bytes(), V1, "u", true) {
        Err(Wrong::Undecodable(why)) => why,
        other => panic!("{other:?}"),
    };
    let no_struct = "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { \
                     APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
    assert_eq!(told("<html>hello</html>"), no_struct);
    assert_eq!(
        told(r#"{"kind":"Pod","apiVersion":"v1"}"#),
        "no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\""
    );
    assert_eq!(
        told(r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"}"#),
        "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"
    );
    assert_eq!(
        told(r#"{"response":{"allowed":"yes"}}"#),
        "json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool"
    );
}

#[test]
fn a_refusal_keeps_the_status_of_the_webhook() {
    let told = |status: Value| {
        let (told, code) = refusal("h", status.as_object().cloned());
        (told.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(), code)
    };
    let denied = "admission webhook \"h\" denied the request";
    assert_eq!(told(Value::Null), (format!("{denied} without explanation"), 400));
    assert_eq!(told(json!({"reason": "Gone", "code": 200})), (format!("{denied}: Gone"), 400));
    assert_eq!(told(json!({"message": "m", "code": 409})), (format!("{denied}: m"), 409));
    let status =
        json!({"status": "Success", "message": "m", "code": 418, "reason": "T", "details": {"name": "n"}});
    let (told, _) = refusal("h", status.as_object().cloned());
    let expected = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("{denied}: m"), "reason": "T", "details": {"name": "n"}, "code": 418});
    assert_eq!(Value::Object(told), expected);
}
