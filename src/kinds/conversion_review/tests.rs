use super::*;

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
    review.converted(answer).map_err(|refused| refused.why)
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
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got \
             apiextensions.k8s.io/v1, Kind=Other",
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
