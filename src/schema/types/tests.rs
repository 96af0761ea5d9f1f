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
