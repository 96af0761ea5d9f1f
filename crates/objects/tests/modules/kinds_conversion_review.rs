//! Tests of `kinds::conversion_review`.

use rowplane_objects::kinds::conversion_review::{Review, ReviewVersion};
use rowplane_objects::kinds::prelude::*;
use rowplane_objects::schema::names::GroupVersion;
use rowplane_values::tree::json;

const DESIRED: GroupVersion = GroupVersion::fixed("ex.io/v2");

fn widget(version: &str, name: &str) -> ObjectMap {
    let object = json!({
        "apiVersion": format!("ex.io/{version}"), "kind": "Widget",
        "metadata": {"name": name, "uid": "u", "labels": {"a": "b"}, "finalizers": ["ex.io/f"]},
        "spec": {"size": 1},
    });
    object.as_object().cloned().expect("an object")
}

fn converted_by(objects: &[ObjectMap], answer: Value) -> Result<Vec<ObjectMap>, String> {
    let review = Review { version: ReviewVersion::V1, uid: "7", desired: &DESIRED, objects };
    review.read(answer.to_string().as_bytes()).map_err(|refused| refused.why)
}

fn answer(objects: Value) -> Value {
    json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1",
        "response": {"uid": "7", "result": {"status": "Success"}, "convertedObjects": objects}})
}

#[test]
fn a_review_asks_in_upstreams_form() {
    let objects = [widget("v1", "w")];
    let review = Review { version: ReviewVersion::V1, uid: "7", desired: &DESIRED, objects: &objects };
    let text = review.request().to_string();
    assert!(text.starts_with(
        r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"7","desiredAPIVersion":"ex.io/v2","objects":[{"#
    ));
    assert!(text.ends_with(r#"]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}"#));
    assert_eq!(ReviewVersion::first_of(["v9", "v1", "v1beta1"]), Some(ReviewVersion::V1));
    assert_eq!(ReviewVersion::first_of(["v9"]), None);
}

#[test]
fn only_labels_and_annotations_are_taken() {
    let mut changed = widget("v2", "w");
    changed["metadata"] =
        json!({"name": "w", "uid": "u", "labels": {"c": "d"}, "annotations": {"x": "y"}, "finalizers": []});
    let objects = converted_by(&[widget("v1", "w")], answer(json!([changed]))).expect("converted");
    assert_eq!(
        objects[0]["metadata"],
        json!({"name": "w", "uid": "u", "labels": {"c": "d"}, "finalizers": ["ex.io/f"], "annotations": {"x": "y"}})
    );
}

#[test]
fn a_wrong_answer_is_refused_in_upstreams_words() {
    let with = |edit: &dyn Fn(&mut Value)| {
        let mut whole = answer(json!([widget("v2", "w")]));
        edit(&mut whole);
        converted_by(&[widget("v1", "w")], whole).expect_err("a wrong answer")
    };
    type Edit<'a> = &'a dyn Fn(&mut Value);
    let cases: [(Edit<'_>, &str); 14] = [
        (
            &|answer| answer["kind"] = "Other".into(),
            "failed: no kind \"Other\" is registered for version \"apiextensions.k8s.io/v1\" in scheme",
        ),
        (&|answer| answer["response"] = Value::Null, "failed: no response provided"),
        (&|answer| answer["response"]["uid"] = "8".into(), r#"failed: expected response.uid="7", got "8""#),
        (
            &|answer| answer["response"]["result"] = json!({"status": "Failure", "message": "no"}),
            "failed: no",
        ),
        (
            &|answer| answer["response"]["result"]["status"] = "Failure".into(),
            "failed: response.result.status was 'Failure', not 'Success'",
        ),
        (&|answer| answer["response"]["convertedObjects"] = json!([]), "returned 0 objects, expected 1"),
        (
            &|answer| answer["response"]["convertedObjects"][0]["apiVersion"] = "ex.io/v3".into(),
            "returned invalid object at index 0: invalid groupVersion (expected ex.io/v2, received ex.io/v3)",
        ),
        (
            &|answer| answer["response"]["convertedObjects"][0]["kind"] = "Gadget".into(),
            "returned invalid object at index 0: invalid kind (expected Widget, received Gadget)",
        ),
        (
            &|answer| answer["response"]["convertedObjects"][0]["metadata"]["name"] = "x".into(),
            "returned invalid object: must have the same name: w != x",
        ),
        (
            &|answer| answer["response"]["convertedObjects"][0]["metadata"]["uid"] = "x".into(),
            "returned invalid object: must have the same UID: u != x",
        ),
        (
            &|answer| answer["response"]["convertedObjects"][0]["metadata"]["labels"] = json!({"a": 1}),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
        ),
        (
            &|answer| answer["response"]["convertedObjects"][0]["metadata"]["labels"] = json!([]),
            "returned invalid metadata: invalid metadata.labels of type []interface {} in converted object",
        ),
        (
            &|answer| answer["response"]["convertedObjects"][0]["metadata"]["labels"] = json!({"-": "b"}),
            "returned invalid metadata: metadata.labels: Invalid value: \"-\": name part must consist of",
        ),
        (
            &|answer| {
                answer["response"]["convertedObjects"][0]["metadata"]["annotations"] = json!({"-": "b"})
            },
            "returned invalid metadata: metadata.annotation: Invalid value: \"-\": name part must consist of",
        ),
    ];
    for (edit, want) in cases {
        let error = with(edit);
        assert!(error.starts_with(want), "{error}");
    }
}

/// What kube-apiserver 1.36.3 says of answers that are no review.
#[test]
fn answers_that_are_none_are_refused_in_upstreams_words() {
    let review = |version, body: &str| {
        let objects = [widget("v1", "w")];
        let review = Review { version, uid: "7", desired: &DESIRED, objects: &objects };
        review.read(body.as_bytes()).map(drop).map_err(|refused| (refused.why, refused.is_bare))
    };
    let failed = |why: &str| Err((format!("failed: {why}"), false));
    let untyped = |found: &str| {
        failed(&format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into Go value of type struct \
             {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        ))
    };
    let nobody = "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=";
    let unknown = |kind: &str, version: &str| {
        let scheme = "in scheme \"pkg/runtime/scheme.go:111\"";
        failed(&format!("no kind \"{kind}\" is registered for version \"{version}\" {scheme}"))
    };
    for (body, expected) in [
        ("{", failed("couldn't get version/kind; json parse error: unexpected end of JSON input")),
        ("hello", untyped("string")),
        ("[]", untyped("array")),
        ("null", failed(nobody)),
        (r#"{"response":{}}"#, failed(nobody)),
        (r#"{"kind":"Pod","apiVersion":"v1"}"#, unknown("Pod", "v1")),
        (
            r#"{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1beta1"}"#,
            failed("converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion"),
        ),
        (
            r#"{"response":{"uid":7}}"#,
            failed(
                "json: cannot unmarshal number into Go struct field ConversionResponse.response.uid of type types.UID",
            ),
        ),
        (
            r#"{"response":{"convertedObjects":{}}}"#,
            failed(
                "json: cannot unmarshal object into Go struct field ConversionResponse.response.convertedObjects of type []runtime.RawExtension",
            ),
        ),
        (
            r#"{"response":"x"}"#,
            failed(
                "json: cannot unmarshal string into Go struct field ConversionReview.response of type v1.ConversionResponse",
            ),
        ),
    ] {
        assert_eq!(review(ReviewVersion::V1, body), expected, "{body}");
    }
    let beta = review(ReviewVersion::V1Beta1, r#"{"kind":"Q","apiVersion":"apiextensions.k8s.io/v1beta1"}"#);
    assert_eq!(beta, unknown("Q", "apiextensions.k8s.io/v1beta1"));
    for (object, why) in [
        (json!(null), "unexpected end of JSON input"),
        (json!("x"), "json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (json!([]), "json: cannot unmarshal array into Go value of type map[string]interface {}"),
        (json!({}), "Object 'Kind' is missing in '{}'"),
    ] {
        let body = answer(json!([object])).to_string();
        assert_eq!(review(ReviewVersion::V1, &body), Err((why.to_owned(), true)));
    }
}
