//! Tests of `meta`.

use rowplane_api::error::Error;
use rowplane_api::meta::{Metadata, check_name, create, drop_empty, ensure_namespace, text, types, update};
use rowplane_objects::causes::Causes;
use rowplane_objects::kinds::behavior::names::NameFormat;
use rowplane_objects::revision::Revision;
use rowplane_objects::schema::names::GroupResource;
use rowplane_objects::schema::resource::Scope;
use rowplane_values::tree::{Value, json};

fn meta(value: Value) -> Metadata {
    value.as_object().cloned().unwrap()
}

fn texts(causes: Causes) -> Vec<String> {
    causes.into_vec().iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

fn created(value: Value) -> Vec<String> {
    texts(create::validate(&meta(value), Scope::Namespaced, NameFormat::Dns1123Subdomain))
}

fn updated(new: Value, old: Value) -> Vec<String> {
    let (mut new, old) = (meta(new), meta(old));
    update::prepare(&mut new, &old);
    texts(update::validate(&new, &old, Scope::Namespaced))
}

#[test]
fn empty_fields_are_left_out() {
    let mut metadata = meta(json!({
        "name": "a", "generateName": "", "labels": {}, "annotations": {"a": ""}, "finalizers": [],
        "generation": 0, "deletionGracePeriodSeconds": 0, "creationTimestamp": null,
    }));
    drop_empty(&mut metadata);
    let kept = json!({"name": "a", "annotations": {"a": ""}, "deletionGracePeriodSeconds": 0});
    assert_eq!(Value::Object(metadata), kept);
}

#[test]
fn preparing_a_create() {
    let stamp = create::Stamp { uid: "u", now: "2026-01-01T00:00:00Z" };
    let mut metadata = meta(json!({
        "name": "a", "uid": "x", "selfLink": "/x", "deletionTimestamp": "2020-01-01T00:00:00Z",
        "creationTimestamp": null, "deletionGracePeriodSeconds": 3, "resourceVersion": "0",
    }));
    create::prepare(&mut metadata, &stamp);
    assert_eq!(
        Value::Object(metadata),
        json!({"name": "a", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"})
    );
    let error = create::refuse_version("5").unwrap_err();
    assert_eq!(error.to_string(), "resourceVersion should not be set on objects to be created");
    assert!(["", "0", "x"].iter().all(|version| create::refuse_version(version).is_ok()));
    assert!(create::wants_generated_name(&meta(json!({"generateName": "a-"}))));
    assert!(!create::wants_generated_name(&meta(json!({"generateName": "a-", "name": "b"}))));
}

#[test]
fn validating_a_create() {
    assert_eq!(created(json!({"name": "a.b", "namespace": "n", "labels": {"a/b": ""}})), [""; 0]);
    assert_eq!(
        created(json!({"namespace": "n"})),
        ["metadata.name: Required value: name or generateName is required"]
    );
    assert_eq!(created(json!({"name": "a"})), ["metadata.namespace: Required value"]);
    let bad = created(json!({
        "name": "A", "namespace": "n", "labels": {"-": "a b"}, "annotations": {"Ok": "x", "no no": ""},
        "finalizers": ["orphan", "foregroundDeletion", "a b"],
    }));
    let starts = [
        "metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain",
        "metadata.labels: Invalid value: \"-\": name part must consist",
        "metadata.labels: Invalid value: \"a b\": a valid label must be",
        "metadata.annotations: Invalid value: \"no no\": name part must consist",
        "metadata.finalizers: Invalid value: \"a b\": name part must consist",
        "metadata.finalizers: Invalid value: [\"orphan\",\"foregroundDeletion\",\"a b\"]: finalizer orphan and foregroundDeletion cannot be both set",
    ];
    assert_eq!(bad.len(), starts.len());
    assert!(bad.iter().zip(starts).all(|(bad, start)| bad.starts_with(start)), "{bad:?}");
    let big = json!({"name": "a", "namespace": "n", "annotations": {"a": "x".repeat(262_144)}});
    assert_eq!(created(big), ["metadata.annotations: Too long: may not be more than 262144 bytes"]);
    let cluster = meta(json!({"name": "system:x", "namespace": "n"}));
    assert_eq!(
        texts(create::validate(&cluster, Scope::Cluster, NameFormat::PathSegment)),
        ["metadata.namespace: Forbidden: not allowed on this type"]
    );
}

#[test]
fn owners() {
    let reference =
        |kind: &str| json!({"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": true});
    let with = |owners: Value| created(json!({"name": "a", "namespace": "n", "ownerReferences": owners}));
    assert_eq!(with(json!([reference("Pod")])), [""; 0]);
    assert_eq!(
        with(json!([{"apiVersion": "a/b/c", "kind": "K", "name": "n"}])),
        [
            "metadata.ownerReferences[0].apiVersion: Invalid value: \"a/b/c\": must be <group>/<version> or <version>",
            "metadata.ownerReferences[0].uid: Required value: must not be empty",
        ]
    );
    assert!(
        with(json!([reference("Event")]))[0].ends_with("/v1, Kind=Event is disallowed from being an owner")
    );
    assert!(with(json!([reference("A"), reference("B")]))[0].ends_with(
        "Only one reference can have Controller set to true. Found \"true\" in references for A/o and B/o"
    ));
}

#[test]
fn updates() {
    let old = json!({
        "name": "a", "namespace": "n", "uid": "u", "generation": 3, "creationTimestamp": "2026-01-01T00:00:00Z",
    });
    let mut new = meta(
        json!({"name": "a", "namespace": "n", "generation": 9, "creationTimestamp": "2020-01-01T00:00:00Z", "selfLink": "x"}),
    );
    update::prepare(&mut new, &meta(old.clone()));
    assert_eq!(Value::Object(new), old);
    let mut gone = old.clone();
    gone["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
    gone["deletionGracePeriodSeconds"] = json!(30);
    gone["finalizers"] = json!(["keep"]);
    assert_eq!(updated(old.clone(), gone.clone()), [""; 0]);
    let mut more = old.clone();
    more["finalizers"] = json!(["x", "keep", "b", "x"]);
    assert_eq!(
        updated(more, gone.clone()),
        [
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"b\", \"x\"}"
        ]
    );
    let mut other = old.clone();
    other["uid"] = json!("v");
    other["deletionGracePeriodSeconds"] = json!(5);
    assert_eq!(
        updated(other, old.clone()),
        [
            "metadata.uid: Invalid value: \"v\": field is immutable",
            "metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable",
        ]
    );
    assert!(
        updated(gone, old)[0]
            .starts_with("metadata.deletionTimestamp: Invalid value: \"2026-01-02T00:00:00Z\": field")
    );
}

#[test]
fn preconditions() {
    let revision = |text: &str| update::expected_revision(&meta(json!({"resourceVersion": text})));
    assert_eq!(revision(""), Ok(None));
    assert_eq!(revision("0"), Ok(None));
    assert_eq!(revision("7"), Ok(Some(Revision(7))));
    let invalid = "strconv.ParseUint: parsing \"x\": invalid syntax";
    assert_eq!(revision("x"), Err(Error::Unclassified(invalid.to_owned())));
    let (a, b) = (meta(json!({"name": "n", "uid": "A"})), meta(json!({"name": "n", "uid": "B"})));
    let pods = GroupResource::new("", "pods");
    assert_eq!(
        update::check_uid(&a, &b, &pods, "n").unwrap_err().to_string(),
        "Operation cannot be fulfilled on pods \"n\": Precondition failed: UID in precondition: A, UID in object meta: B"
    );
    assert!(update::check_uid(&meta(json!({})), &b, &pods, "a").is_ok());
    let mut metadata = meta(json!({"name": "b"}));
    assert_eq!(
        check_name(&metadata, "a").unwrap_err().to_string(),
        "the name of the object (b) does not match the name on the URL (a)"
    );
    assert!(check_name(&meta(json!({})), "a").unwrap_err().to_string().contains("(a based on URL)"));
    ensure_namespace(&mut metadata, Some("n")).unwrap();
    assert_eq!(text(&metadata, "namespace"), "n");
    assert!(ensure_namespace(&mut metadata, Some("m")).is_err());
    ensure_namespace(&mut metadata, None).unwrap();
    assert!(!metadata.contains_key("namespace"));
}

#[test]
fn the_end_of_a_deletion() {
    let done = |value: Value| update::completes_deletion(&meta(value));
    let at = "2026-01-01T00:00:00Z";
    assert!(done(json!({"deletionTimestamp": at})));
    assert!(done(json!({"deletionTimestamp": at, "deletionGracePeriodSeconds": 0, "finalizers": []})));
    assert!(!done(json!({"deletionTimestamp": at, "deletionGracePeriodSeconds": 30})));
    assert!(!done(json!({"deletionTimestamp": at, "finalizers": ["x"]})));
    assert!(!done(json!({})));
}

#[test]
fn field_types() {
    let good = json!({
        "name": null, "labels": {"a": null}, "creationTimestamp": "2026-01-01T00:00:00.5+02:00",
        "finalizers": ["a"], "ownerReferences": [{"controller": true}], "generation": 1, "managedFields": [],
    });
    assert_eq!(types::check(&meta(json!({"metadata": good}))), Ok(()));
    assert_eq!(types::check(&meta(json!({"metadata": null}))), Ok(()));
    let cases = [
        (json!("x"), "cannot unmarshal string into Go struct field .metadata of type v1.ObjectMeta"),
        (
            json!({"name": 5}),
            "cannot unmarshal number into Go struct field ObjectMeta.metadata.name of type string",
        ),
        (
            json!({"labels": []}),
            "array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            json!({"labels": {"a": 1}}),
            "number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            json!({"generation": 1.5}),
            "number into Go struct field ObjectMeta.metadata.generation of type int64",
        ),
        (
            json!({"ownerReferences": [{"kind": 1}]}),
            "ObjectMeta.metadata.ownerReferences.kind of type string",
        ),
        (json!({"deletionTimestamp": "2026-01-01 00:00:00Z"}), "parsing time \"2026-01-01 00:00:00Z\" as"),
        (json!({"creationTimestamp": ""}), "parsing time \"\" as"),
    ];
    for (value, want) in cases {
        let error = types::check(&meta(json!({"metadata": value}))).unwrap_err();
        assert!(error.contains(want), "{error}");
    }
}
