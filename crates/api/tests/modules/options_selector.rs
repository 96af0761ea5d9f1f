//! Tests of `options::selector`.

use rowplane_api::error::Error;
use rowplane_api::options::selector::field::FieldSelector;
use rowplane_objects::kinds::behavior::selectable::SelectableFields;
use rowplane_objects::kinds::built_in::any_version;
use rowplane_values::tree::Value;
use rowplane_values::tree::json;

fn of(group: &str, kind: &str) -> SelectableFields {
    (any_version(group, kind).fields)()
}

fn matches(fields: &SelectableFields, selector: &str, object: &Value) -> bool {
    let selector = FieldSelector::parse(selector).unwrap().resolve(fields).unwrap();
    selector.matches_object(fields, object)
}

#[test]
fn refusals() {
    let cases = [
        (
            of("", "ConfigMap"),
            r#""spec.x" is not a known field selector: only "metadata.name", "metadata.namespace""#,
        ),
        (of("", "Pod"), "field label not supported: spec.x"),
        (of("batch", "Job"), r#"field label "spec.x" not supported for Job"#),
        (
            of("resource.k8s.io", "ResourceSlice"),
            "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: spec.x",
        ),
        (
            of("apps", "ReplicaSet"),
            r#""spec.x" is not a known field selector: only "metadata.name", "metadata.namespace""#,
        ),
        (SelectableFields::custom(true, []), "field label not supported: spec.x"),
    ];
    for (fields, want) in cases {
        let error = FieldSelector::parse("spec.x=1").unwrap().resolve(&fields).unwrap_err();
        assert_eq!(error, Error::bad_request(want));
    }
    let cluster = SelectableFields::custom(false, []);
    assert!(cluster.canonical("metadata.namespace").is_err());
    assert!(SelectableFields::metadata().canonical("metadata.namespace").is_ok());
}

#[test]
fn values() {
    let pod = of("", "Pod");
    let object = json!({
        "metadata": {"name": "a", "namespace": "n"},
        "spec": {"nodeName": "node", "hostNetwork": true},
        "status": {"podIPs": [{"ip": "1.2.3.4"}]},
    });
    for yes in [
        "metadata.name=a,metadata.namespace!=b",
        "spec.nodeName=node",
        "spec.host=node",
        "spec.hostNetwork=true",
        "status.phase=",
        "status.podIPs=",
    ] {
        assert!(matches(&pod, yes, &object), "{yes}");
    }
    assert!(matches(&pod, "spec.hostNetwork=false", &json!({})));
    let slice = json!({"spec": {"nodeName": "n", "driver": "d.example"}});
    assert!(matches(
        &of("resource.k8s.io", "ResourceSlice"),
        "spec.nodeName=n,spec.driver=d.example",
        &slice
    ));
    let bundle = json!({"spec": {"signerName": "example.com/s"}});
    let of_bundles = of("certificates.k8s.io", "ClusterTrustBundle");
    assert!(matches(&of_bundles, "spec.signerName=example.com/s", &bundle));
    assert!(!matches(&of_bundles, "spec.signerName=example.com/t", &bundle));
    let request = json!({"spec": {"signerName": "example.com/s", "podName": "p", "nodeName": "n"}});
    let all = "spec.signerName=example.com/s,spec.podName=p,spec.nodeName=n";
    assert!(matches(&of("certificates.k8s.io", "PodCertificateRequest"), all, &request));
    let job = of("batch", "Job");
    assert!(matches(&job, "status.successful=0", &json!({})));
    assert!(matches(&job, "status.successful=2", &json!({"status": {"succeeded": 2}})));
    let custom = SelectableFields::custom(true, [".spec.color"]);
    assert!(matches(&custom, "spec.color=red", &json!({"spec": {"color": "red"}})));
    assert!(matches(&custom, "spec.color=", &json!({"spec": {}})));
}

#[test]
fn events_in_both_forms() {
    let core = of("", "Event");
    let new = of("events.k8s.io", "Event");
    let old = json!({"involvedObject": {"kind": "Pod"}, "source": {"component": "kubelet"}});
    let regarding = json!({"regarding": {"kind": "Pod"}, "reportingController": "kubelet"});
    assert!(matches(&core, "involvedObject.kind=Pod,source=kubelet", &old));
    assert!(matches(&new, "regarding.kind=Pod,reportingController=kubelet", &regarding));
    assert!(matches(&core, "source=kubelet", &regarding));
}
