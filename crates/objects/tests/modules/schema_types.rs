//! Tests of `schema::types`.

use std::sync::{Arc, LazyLock};

use rowplane_objects::json::Node;
use rowplane_objects::kinds::built_in;
use rowplane_objects::schema::builtin;
use rowplane_objects::schema::kind::Kind;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::schema::types::{Cardinality, Field, FieldKind, Merging, Message, Strategic, Types};
use rowplane_objects::tree::Value;

static TYPES: LazyLock<Arc<Types>> = LazyLock::new(builtin::types);

fn known(gvk: &Gvk) -> Kind {
    builtin::kind(gvk).unwrap_or_else(|| Kind::opaque(gvk.clone()))
}

fn message(gvk: &Gvk) -> &'static Message {
    TYPES.message(TYPES.message_of(gvk).unwrap_or_else(|| panic!("{gvk}")))
}

fn field(message: &'static Message, name: &str) -> &'static Field {
    message.fields.iter().find(|field| &*field.json_name == name).expect(name)
}

#[test]
fn every_served_kind_has_a_type() {
    for definition in built_in::definitions() {
        let message = message(definition.gvk());
        assert_eq!(message.name, &**definition.kind_name());
        assert_eq!(&*message.fields[0].json_name, "metadata", "{}", definition.gvk());
        assert!(
            definition
                .subresources
                .iter()
                .filter_map(|sub| sub.kind.as_ref())
                .all(|kind| kind.go().is_some())
        );
    }
}

#[test]
fn fields_know_how_they_are_printed() {
    let types = &*TYPES;
    let FieldKind::Message(spec) = field(message(&Gvk::fixed("apps/v1", "Deployment")), "spec").kind else {
        panic!()
    };
    let spec = types.message(spec);
    let replicas = field(spec, "replicas");
    assert_eq!((replicas.kind, replicas.pointer, replicas.always), (FieldKind::Int32, true, false));
    assert!(field(spec, "selector").pointer && field(spec, "selector").always);
    assert_eq!(spec.index_of(replicas.number), Some(0));
    assert_eq!(spec.index_of(99), None);
    let data = field(message(&Gvk::fixed("v1", "Secret")), "data");
    assert_eq!((data.kind, data.cardinality), (FieldKind::Bytes, Cardinality::Map));
}

#[test]
fn options_are_kinds_of_every_version() {
    assert_eq!(message(&Gvk::fixed("apps/v1", "DeleteOptions")).name, "DeleteOptions");
    assert!(TYPES.kind(&Gvk::fixed("v1", "Nonsense")).is_none());
}

/// Upstream's converter leaves what is in the place of a schema to its own decoder.
#[test]
fn alternatives_of_applied_schemas_are_judged_apart() {
    for (schema, want) in [
        (
            r#"{"properties":{"a":{"items":{"properties":{"b":{"items":{"type":true}}}}}}}"#,
            "bool into Go struct field JSONSchemaProps.properties.items.type of type string",
        ),
        (
            r#"{"items":{"x-kubernetes-validations":[{"rule":[]}]}}"#,
            "array into Go struct field ValidationRule.x-kubernetes-validations.rule of type string",
        ),
        (r#"{"items":[5]}"#, "number into Go value of type v1.JSONSchemaProps"),
    ] {
        let text = format!(r#"{{"spec":{{"versions":[{{"schema":{{"openAPIV3Schema":{schema}}}}}]}}}}"#);
        let mut object = serde_json::from_str(&text).expect("JSON");
        let kind = known(&Gvk::fixed("apiextensions.k8s.io/v1", "CustomResourceDefinition"));
        let error = kind.convert(&mut object).expect_err(schema);
        assert_eq!(error, format!("json: cannot unmarshal {want}"));
    }
}

#[test]
fn fields_know_how_they_are_merged() {
    let types = &*TYPES;
    let sub = |message: &'static Message, name: &str| match field(message, name).kind {
        FieldKind::Message(id) => types.message(id),
        other => panic!("{name} is {other:?}"),
    };
    let deployment = sub(message(&Gvk::fixed("apps/v1", "Deployment")), "spec");
    let pod = sub(sub(deployment, "template"), "spec");
    let containers = field(pod, "containers");
    assert!(containers.required);
    assert_eq!(containers.merging, Merging::Map(&["name"]));
    assert_eq!(containers.strategic, Some(&Strategic { strategy: "merge", merge_key: "name" }));
    let port = sub(sub(pod, "containers"), "ports");
    let protocol = field(port, "protocol");
    assert_eq!(protocol.default, Some("\"TCP\""));
    assert_eq!(*protocol.allowed, ["SCTP", "TCP", "UDP"]);
    assert_eq!(field(pod, "nodeSelector").merging, Merging::Atomic);
    assert_eq!(sub(deployment, "selector").merging, Merging::Atomic);
    let seccomp = sub(sub(pod, "securityContext"), "seccompProfile");
    assert_eq!(seccomp.unions[0].discriminator, Some("type"));
    assert_eq!(seccomp.unions[0].members, [("localhostProfile", "LocalhostProfile")]);
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
