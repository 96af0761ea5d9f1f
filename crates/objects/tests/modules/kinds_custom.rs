//! Tests of `kinds::custom`.

use std::sync::Arc;

use bytes::Bytes;
use rowplane_objects::codec::object::{Draft, Object};
use rowplane_objects::kinds::custom::{CustomDefinition, Digest, Unserved};
use rowplane_objects::kinds::prelude::*;
use rowplane_objects::revision::Revision;
use rowplane_objects::schema::builtin;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::schema::resource::{ResourceDefinition, Scope, Verb};
use rowplane_objects::schema::structural::Schemas;
use rowplane_values::tree::json;

fn stored(change: impl FnOnce(&mut Value)) -> Arc<Object> {
    let names = json!({"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
        "shortNames": ["w"], "categories": ["all"]});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties":
        {"color": {"type": "string", "default": "red"}}}}});
    let mut definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io", "uid": "u"},
        "spec": {"group": "ex.io", "scope": "Namespaced", "names": names, "versions": [
            {"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": schema}},
            {"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas"}}},
            {"name": "v3", "served": false, "storage": false, "schema": {"openAPIV3Schema": schema}},
        ]},
        "status": {"acceptedNames": names, "storedVersions": ["v2"], "conditions": [
            {"type": "NamesAccepted", "status": "True"}, {"type": "Established", "status": "True"}]},
    });
    change(&mut definition);
    let draft = Draft::of_json("", "widgets.ex.io", Bytes::from(definition.to_string()));
    Arc::new(draft.into_object(Revision(3)))
}

fn read(object: &Arc<Object>) -> Result<Arc<CustomDefinition>, Unserved> {
    let mut numbers = 1..;
    CustomDefinition::read(object, &Schemas::new(builtin::types()), || numbers.next().unwrap_or(0))
        .map(Arc::new)
}

#[test]
fn a_definition_defines_a_resource_for_each_version_that_is_served() {
    let definition = read(&stored(|_| {})).expect("established");
    assert_eq!(definition.stored().kind.gvk, Gvk::fixed("ex.io/v2", "Widget"));
    let served = definition.served();
    let versions: Vec<&str> = served.iter().map(|served| served.resource.version()).collect();
    assert_eq!(versions, ["v1", "v2"]);
    let (v1, v2) = (&*served[0].resource, &*served[1].resource);
    assert_eq!((&*v1.list_kind, &*v1.singular, &*v1.plural), ("WidgetList", "widget", "widgets"));
    assert_eq!((v1.short_names.len(), v1.categories.len(), v1.scope), (1, 1, Scope::Namespaced));
    assert_eq!(v1.storage, v2.storage, "all versions share their rows");
    let names = |definition: &ResourceDefinition| {
        definition.subresources.iter().map(|sub| sub.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!((names(v1), names(v2)), (vec![], vec!["scale".to_owned(), "status".to_owned()]));
    let spec = v2.declaration.as_ref().and_then(|declaration| declaration.spec()).expect("a spec");
    let schema = &spec["versions"][1]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["properties"]["spec"]["properties"]["color"]["default"], "red");
    let mut object = json!({"spec": {"x": 1}}).as_object().expect("an object").clone();
    v2.kind.conform(&mut object).expect("conforms");
    v2.kind.default(&mut object).expect("room");
    assert_eq!(Value::Object(object), json!({"spec": {"color": "red"}}));
    assert!(definition.version("ex.io/v3").is_some_and(|version| !version.is_served));
    assert!(definition.version("ex.io/v4").is_none());
}

#[test]
fn who_has_no_names_is_not_served() {
    let rival = stored(|definition| definition["status"]["conditions"] = json!([]));
    assert!(matches!(read(&rival), Err(Unserved::NotAccepted)));
    // Once established, a definition is served by the names it has.
    let renamed = stored(|definition| {
        definition["status"]["conditions"][0]["status"] = "False".into();
        definition["spec"]["names"]["singular"] = "thing".into();
    });
    assert_eq!(&*read(&renamed).expect("established").served()[0].resource.singular, "widget");
}

#[test]
fn what_goes_away_lists_fewer_verbs_and_has_all() {
    let ending = stored(|definition| {
        let conditions = definition["status"]["conditions"].as_array_mut().expect("conditions");
        conditions.push(json!({"type": "Terminating", "status": "True"}));
    });
    let definition = read(&ending).expect("established");
    assert!(definition.is_terminating);
    let resource = &definition.served()[0].resource;
    assert!(!resource.verbs.contains(&Verb::Update) && resource.allows(Verb::Update));
}

#[test]
fn a_digest_is_of_what_a_definition_means() {
    let digest =
        |change: fn(&mut Value)| Digest::of(stored(change).json().expect("an object")).expect("a digest");
    let first = digest(|_| {});
    assert_eq!(first, digest(|definition| definition["metadata"]["labels"] = json!({"a": "b"})));
    assert_eq!(first, digest(|definition| definition["status"]["storedVersions"] = json!(["v1", "v2"])));
    let others: [fn(&mut Value); 4] = [
        |definition| definition["spec"]["versions"][0]["served"] = false.into(),
        |definition| definition["status"]["acceptedNames"]["singular"] = "thing".into(),
        |definition| definition["status"]["conditions"][1]["status"] = "False".into(),
        |definition| definition["status"]["conditions"][0]["type"] = "Terminating".into(),
    ];
    for other in others {
        assert_ne!(first, digest(other));
    }
}
