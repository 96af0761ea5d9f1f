//! Tests of `schema::types`.

use std::sync::{Arc, LazyLock};

use rowplane_objects::kinds::built_in;
use rowplane_objects::schema::builtin;
use rowplane_objects::schema::kind::Kind;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::schema::types::{Cardinality, Field, FieldKind, Merging, Message, Strategic, Types};

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
