use super::*;
use crate::json::Node;
use crate::schema::builtin;
use crate::schema::kind::Kind;
use crate::tree::Value;

fn known(gvk: &Gvk) -> Kind {
    builtin::kind(gvk).unwrap_or_else(|| Kind::opaque(gvk.clone()))
}

#[test]
fn misfits_are_told_as_upstream_tells_them() {
    let deployments = [
        (
            r#"{"spec":{"replicas":"x"}}"#,
            "string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            r#"{"spec":{"replicas":1.0}}"#,
            "number 1.0 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            r#"{"spec":{"replicas":99999999999}}"#,
            "number 99999999999 into Go struct field DeploymentSpec.spec.replicas",
        ),
        (r#"{"spec":[]}"#, "array into Go struct field Deployment.spec of type v1.DeploymentSpec"),
        (
            r#"{"spec":{"template":{"spec":{"containers":{}}}}}"#,
            "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            r#"{"spec":{"template":{"spec":{"containers":[{"name":1}]}}}}"#,
            "number into Go struct field Container.spec.template.spec.containers.name of type string",
        ),
        (
            r#"{"spec":{"template":{"spec":{"volumes":[{"configMap":{"name":1}}]}}}}"#,
            "number into Go struct field ConfigMapVolumeSource.spec.template.spec.volumes.VolumeSource.configMap.\
             LocalObjectReference.name of type string",
        ),
        (
            r#"{"spec":{"template":{"spec":{"volumes":[{"configMap":1}]}}}}"#,
            "Volume.spec.template.spec.volumes.VolumeSource.configMap of type v1.ConfigMapVolumeSource",
        ),
        (
            r#"{"spec":{"strategy":{"rollingUpdate":{"maxSurge":1.5}}}}"#,
            "number 1.5 into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
        ),
        (
            r#"{"spec":{"selector":{"matchLabels":[]}}}"#,
            "array into Go struct field LabelSelector.spec.selector.matchLabels of type map[string]string",
        ),
        (
            r#"{"spec":{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":true}}}]}}}}"#,
            "quantities must match the regular expression",
        ),
        (r#"{"metadata":{"creationTimestamp":1}}"#, "ObjectMeta.metadata.creationTimestamp of type string"),
    ];
    let others = [
        ("v1", "Secret", r#"{"data":{"a":"!"}}"#, "illegal base64 data at input byte 0"),
        ("v1", "Secret", r#"{"data":{"b":"!","a":1}}"#, "illegal base64 data at input byte 0"),
        ("v1", "Secret", r#"{"data":{"a":"Zm9"}}"#, "illegal base64 data at input byte 0"),
        ("v1", "Secret", r#"{"data":{"a":1}}"#, "number into Go struct field Secret.data of type []uint8"),
        (
            "coordination.k8s.io/v1",
            "Lease",
            r#"{"spec":{"renewTime":"2026-01-02T03:04:05Z"}}"#,
            "parsing time",
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            r#"{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"additionalProperties":"x"}}}]}}"#,
            "boolean or JSON schema expected",
        ),
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            r#"{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"items":{"not":{"items":{"x-kubernetes-validations":[{"rule":[]}]}}}}}}]}}"#,
            "array into Go struct field \
             JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.not.items.x-kubernetes-validations.rule of type string",
        ),
    ];
    let deployments = deployments.map(|(text, want)| ("apps/v1", "Deployment", text, want));
    for (version, kind, text, want) in deployments.into_iter().chain(others) {
        let mut object = serde_json::from_str(text).expect("JSON");
        let error = known(&Gvk::parse(version, kind).expect(version)).conform(&mut object).expect_err(text);
        assert!(error.contains(want), "{error}\n{want}");
    }
}

#[test]
fn objects_become_what_upstream_prints() {
    let cases = [
        (
            "v1",
            "Secret",
            r#"{"metadata":{"name":"a","labels":{}},"type":"","data":{"a":"Zm9v\n","b":null},"unknown":{"x":1}}"#,
            r#"{"metadata":{"name":"a"},"data":{"a":"Zm9v","b":""}}"#,
            true,
        ),
        (
            "v1",
            "ConfigMap",
            r#"{"data":null,"kind":"ConfigMap","apiVersion":"v1","metadata":{"managedFields":[{"fieldsV1":3}]}}"#,
            r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"managedFields":[{"fieldsV1":3}]}}"#,
            false,
        ),
        (
            "apps/v1",
            "Deployment",
            r#"{"spec":{"template":{"spec":{"containers":[null,{"tty":false,"name":"a","image":"b","resources":{"limits":{"cpu":0.1,"memory":"1024Ki"}}}]}},"paused":false,"replicas":0}}"#,
            r#"{"metadata":{},"spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":[{"name":"","resources":{}},{"name":"a","image":"b","resources":{"limits":{"cpu":"100m","memory":"1Mi"}}}]}},"strategy":{}},"status":{}}"#,
            false,
        ),
        (
            "v1",
            "Service",
            r#"{"spec":{"Type":"x","ports":[{"port":80}],"selector":{}}}"#,
            r#"{"metadata":{},"spec":{"ports":[{"port":80,"targetPort":0}]},"status":{"loadBalancer":{}}}"#,
            true,
        ),
        (
            "coordination.k8s.io/v1",
            "Lease",
            r#"{"metadata":{"creationTimestamp":"2026-01-02T03:04:05.5+01:00","deletionTimestamp":"0001-01-01T00:00:00Z"},"spec":{"renewTime":"2026-01-02T05:04:05.123456+02:00"}}"#,
            r#"{"metadata":{"creationTimestamp":"2026-01-02T02:04:05Z"},"spec":{"renewTime":"2026-01-02T03:04:05.123456Z"}}"#,
            false,
        ),
        ("rbac.authorization.k8s.io/v1", "Role", r#"{"rules":[]}"#, r#"{"metadata":{},"rules":null}"#, false),
        ("example.com/v1", "Widget", r#"{"spec":3}"#, r#"{"spec":3}"#, false),
    ];
    for (version, kind, text, want, unknown) in cases {
        let mut object = serde_json::from_str(text).expect("JSON");
        assert_eq!(
            known(&Gvk::parse(version, kind).expect(version)).conform(&mut object).map(|fit| fit.unknown),
            Ok(unknown),
            "{text}"
        );
        assert_eq!(serde_json::to_string(&object).expect("JSON"), want);
    }
}

/// The expected results are those of kube-apiserver 1.37.2.
#[test]
fn numbers_are_what_they_are_spelled_as() {
    let pod = |cpu: &str, priority: &str| {
        format!(
            r#"{{"spec":{{"priority":{priority},"containers":[{{"name":"c","resources":{{"limits":{{"z":1,"cpu":{cpu}}}}}}}]}}}}"#
        )
    };
    let conformed = |text: &str| {
        let mut object = serde_json::from_str(text).expect("JSON");
        let node = Node::parse(text.as_bytes()).expect("JSON");
        known(&Gvk::fixed("v1", "Pod"))
            .conform_spelled(&node, &mut object)
            .map(|_| Value::Object(object)["spec"].take())
    };
    for (cpu, want) in [
        ("1e3", "1e3"),
        ("1E3", "1E3"),
        ("1.0", "1"),
        ("1.50", "1500m"),
        ("1.500", "1.500"),
        ("0.10", "100m"),
        ("100e-1", "10"),
        ("1e-3", "1e-3"),
        ("\"2.0\"", "2"),
        ("2", "2"),
    ] {
        let text = pod(cpu, "-0");
        let spec = conformed(&text).expect("a Pod");
        assert_eq!(
            (&spec["containers"][0]["resources"]["limits"]["cpu"], &spec["priority"]),
            (&want.into(), &0.into())
        );
        let mut object = serde_json::from_str(&text.replace("-0", "0")).expect("JSON");
        let respelled = known(&Gvk::fixed("v1", "Pod")).conform(&mut object).map(|fit| fit.respelled);
        assert_eq!(respelled, Ok(cpu.contains(['.', 'e', 'E']) && !cpu.contains('"')), "{cpu}");
    }
    for spelling in ["1e3", "1.0", "1E0", "-0.0", "99999999999999999999", "9223372036854775808", "2147483648"]
    {
        let error = conformed(&pod("1", spelling)).expect_err(spelling);
        let want = "into Go struct field PodSpec.spec.priority of type int32";
        assert_eq!(error, format!("json: cannot unmarshal number {spelling} {want}"));
    }
}
