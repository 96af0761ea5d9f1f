use super::*;
use crate::schema::builtin;

fn message(api_version: &str, kind: &str) -> &'static Message {
    let types = Types::built_in();
    types.message(types.kind(api_version, kind).unwrap_or_else(|| panic!("{api_version} {kind}")))
}

fn field(message: &'static Message, name: &str) -> &'static Field {
    message.fields.iter().find(|field| &*field.json_name == name).expect(name)
}

#[test]
fn every_served_kind_has_a_type() {
    for definition in builtin::definitions() {
        let message = message(&definition.api_version(), &definition.kind);
        assert_eq!(message.name, (*definition.kind).into());
        assert_eq!(&*message.fields[0].json_name, "metadata", "{}", definition.kind);
    }
}

#[test]
fn fields_know_how_they_are_printed() {
    let types = Types::built_in();
    let FieldKind::Message(spec) = field(message("apps/v1", "Deployment"), "spec").kind else { panic!() };
    let spec = types.message(spec);
    let replicas = field(spec, "replicas");
    assert_eq!((replicas.kind, replicas.pointer, replicas.always), (FieldKind::Int32, true, false));
    assert!(field(spec, "selector").pointer && field(spec, "selector").always);
    assert_eq!(spec.index_of(replicas.number), Some(0));
    assert_eq!(spec.index_of(99), None);
    let data = field(message("v1", "Secret"), "data");
    assert_eq!((data.kind, data.cardinality), (FieldKind::Bytes, Cardinality::Map));
}

#[test]
fn options_are_kinds_of_every_version() {
    assert_eq!(&*message("apps/v1", "DeleteOptions").name, "DeleteOptions");
    assert_eq!(Types::built_in().kind("v1", "Nonsense"), None);
}

#[test]
fn fields_know_how_they_are_merged() {
    let types = Types::built_in();
    let sub = |message: &'static Message, name: &str| match field(message, name).kind {
        FieldKind::Message(id) => types.message(id),
        other => panic!("{name} is {other:?}"),
    };
    let deployment = sub(message("apps/v1", "Deployment"), "spec");
    let pod = sub(sub(deployment, "template"), "spec");
    let containers = field(pod, "containers");
    assert!(containers.required);
    assert_eq!(containers.merging, Merging::Map(["name".into()].into()));
    assert_eq!(
        containers.strategic.as_deref(),
        Some(&Strategic { strategy: "merge".into(), merge_key: "name".into() })
    );
    let port = sub(sub(pod, "containers"), "ports");
    let protocol = field(port, "protocol");
    assert_eq!(protocol.default.as_deref(), Some("\"TCP\""));
    assert_eq!(&*protocol.allowed, ["SCTP", "TCP", "UDP"].map(Box::from));
    assert_eq!(field(pod, "nodeSelector").merging, Merging::Atomic);
    assert_eq!(sub(deployment, "selector").merging, Merging::Atomic);
    let seccomp = sub(sub(pod, "securityContext"), "seccompProfile");
    assert_eq!(seccomp.unions[0].discriminator.as_deref(), Some("type"));
    assert_eq!(&*seccomp.unions[0].members, [("localhostProfile".into(), "LocalhostProfile".into())]);
}
