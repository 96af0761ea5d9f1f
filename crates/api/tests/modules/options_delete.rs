//! Tests of `options::delete`.

use rowplane_api::error::Error;
use rowplane_api::options::DryRun;
use rowplane_api::options::delete::DeleteOptions;
use rowplane_api::options::delete::IGNORE_READ_ERROR;
use rowplane_api::options::delete::Preconditions;
use rowplane_api::options::query::Query;
use rowplane_objects::kinds::behavior::deletion::Dependents;
use rowplane_objects::kinds::behavior::deletion::Propagation;
use rowplane_values::tree::Value;
use rowplane_values::tree::json;

fn body(body: Value) -> Result<DeleteOptions, Error> {
    DeleteOptions::parse(Some(&body), &Query::parse("propagationPolicy=Orphan"))
}

#[test]
fn from_body() {
    assert_eq!(body(json!({})), Ok(DeleteOptions::default()));
    let options = body(json!({
        "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0, "dryRun": ["All"],
        "propagationPolicy": "Foreground", "preconditions": {"uid": "u", "resourceVersion": "5"},
    }))
    .unwrap();
    assert_eq!(options.grace_period, Some(0));
    assert_eq!(options.dry_run, DryRun::Yes);
    assert_eq!(options.dependents, Dependents::Policy(Propagation::Foreground));
    assert_eq!(options.preconditions.uid.as_deref(), Some("u"));
    assert_eq!(options.preconditions.resource_version.as_deref(), Some("5"));
}

#[test]
fn from_query() {
    let parse = |query: &str| DeleteOptions::parse(None, &Query::parse(query));
    assert_eq!(parse(""), Ok(DeleteOptions::default()));
    let options = parse("gracePeriodSeconds=-3&orphanDependents=false&uid=u&resourceVersion=").unwrap();
    assert_eq!(options.grace_period, Some(-3));
    assert_eq!(options.dependents, Dependents::Orphan(false));
    assert_eq!(options.preconditions, Preconditions { uid: Some("u".into()), resource_version: None });
    assert!(parse("gracePeriodSeconds=x").is_err());
    assert!(parse(&format!("{IGNORE_READ_ERROR}=true")).unwrap().ignore_read_error);
    assert!(!parse(&format!("{IGNORE_READ_ERROR}=false&uid=u")).unwrap().ignore_read_error);
}

#[test]
fn refusals() {
    let invalid = "DeleteOptions.meta.k8s.io \"\" is invalid: ";
    let cases = [
        (
            json!({"propagationPolicy": "Foreground", "orphanDependents": true}),
            format!(
                "{invalid}propagationPolicy: Invalid value: \"Foreground\": orphanDependents and deletionPropagation cannot be both set"
            ),
        ),
        (
            json!({"propagationPolicy": "x"}),
            format!(
                "{invalid}propagationPolicy: Unsupported value: \"x\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            ),
        ),
        (
            json!({"dryRun": ["none"]}),
            format!("{invalid}dryRun: Unsupported value: [\"none\"]: supported values: \"All\""),
        ),
        (
            json!({"gracePeriodSeconds": "x"}),
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
                .to_owned(),
        ),
        (
            json!({IGNORE_READ_ERROR: true, "orphanDependents": true, "gracePeriodSeconds": 1, "preconditions": {}}),
            format!(
                "{invalid}[{IGNORE_READ_ERROR}: Invalid value: true: cannot be set together with .orphanDependents, \
                 {IGNORE_READ_ERROR}: Invalid value: true: cannot be set together with .gracePeriodSeconds, \
                 {IGNORE_READ_ERROR}: Invalid value: true: cannot be set together with .preconditions]"
            ),
        ),
        (json!({"kind": "Pod"}), "decoded object cannot be converted to DeleteOptions".to_owned()),
        (json!([]), "json: cannot unmarshal array into Go value of type v1.DeleteOptions".to_owned()),
    ];
    for (value, want) in cases {
        assert_eq!(body(value).unwrap_err().to_string(), want);
    }
}
