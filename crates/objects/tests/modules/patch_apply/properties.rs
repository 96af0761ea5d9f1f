//! Properties that hold for any configurations.

use proptest::prelude::*;
use rowplane_objects::patch::apply::ownership::Conflicts;
use rowplane_objects::patch::apply::{fields_v1, owned};
use rowplane_objects::schema::names::Gvk;
use rowplane_values::tree::{Map, Value, json};

use super::{Kind, State};

/// Parts of a Deployment. Managers share names of containers, variables and labels, but use different values.
fn config() -> impl Strategy<Value = Map> {
    let labels = prop::collection::btree_map("[a-c]", "[0-2]", 0..3);
    let env = prop::collection::btree_map("[A-C]", "[0-2]", 0..3);
    let ports = prop::collection::btree_set((80_u16..83, prop::option::of(Just("UDP"))), 0..3);
    let container = ("[a-c]", prop::option::of("[x-z]"), env, ports);
    let containers = prop::collection::btree_map("[p-r]", container, 0..3);
    let finalizers = prop::sample::subsequence(vec!["e/a", "e/b", "e/c"], 0..3).prop_shuffle();
    (labels, containers, finalizers, prop::option::of(0..3)).prop_map(
        |(labels, containers, finalizers, replicas)| {
            let containers: Vec<Value> = containers
                .into_iter()
                .map(|(name, (image, command, env, ports))| {
                    let env: Vec<Value> =
                        env.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
                    let ports: Vec<Value> = ports.into_iter().map(port).collect();
                    let command: Vec<String> = command.into_iter().collect();
                    json!({"name": name, "image": image, "env": env, "ports": ports, "command": command})
                })
                .collect();
            let spec = json!({"replicas": replicas, "template": {"spec": {"containers": containers}}});
            let object = json!({"metadata": {"labels": labels, "finalizers": finalizers}, "spec": spec});
            without_empty(object).as_object().unwrap().clone()
        },
    )
}

/// Drops empty values, since typed kinds do not distinguish empty from absent.
fn without_empty(value: Value) -> Value {
    let empty = |value: &Value| {
        value.is_null()
            || value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty)
    };
    match value {
        Value::Object(object) => {
            let members = object.into_iter().map(|(name, value)| (name, without_empty(value)));
            Value::Object(members.filter(|(_, value)| !empty(value)).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_empty).collect()),
        scalar => scalar,
    }
}

fn port((number, protocol): (u16, Option<&str>)) -> Value {
    match protocol {
        Some(protocol) => json!({"containerPort": number, "protocol": protocol}),
        None => json!({"containerPort": number}),
    }
}

fn forced(kind: &Kind, state: &State, manager: &str, body: &Map) -> State {
    kind.apply(state, manager, body, Conflicts::Force).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn applying_twice_is_applying_once(bodies in prop::collection::vec((config(), 0..3_u8), 1..4)) {
        let kind = Kind::new(&Gvk::fixed("apps/v1", "Deployment"));
        let mut state = State::default();
        for (body, manager) in bodies {
            let manager = format!("m{manager}");
            state = forced(&kind, &state, &manager, &body);
            prop_assert_eq!(&forced(&kind, &state, &manager, &body), &state);
            let unforced = kind.apply(&state, &manager, &body, Conflicts::Refuse);
            prop_assert_eq!(unforced.as_ref(), Ok(&state));
        }
    }

    #[test]
    fn what_one_applier_gives_up_is_gone(first in config(), second in config()) {
        let kind = Kind::new(&Gvk::fixed("apps/v1", "Deployment"));
        let both = forced(&kind, &forced(&kind, &State::default(), "m", &first), "m", &second);
        let alone = forced(&kind, &State::default(), "m", &second);
        let schema = &kind.schema;
        prop_assert_eq!(owned::owned(schema, &both.object), owned::owned(schema, &alone.object));
        prop_assert_eq!(both.managers, alone.managers);
    }

    #[test]
    fn appliers_of_equal_values_do_not_conflict(body in config()) {
        let kind = Kind::new(&Gvk::fixed("apps/v1", "Deployment"));
        let one = forced(&kind, &State::default(), "m", &body);
        let two = kind.apply(&one, "n", &body, Conflicts::Refuse);
        prop_assert_eq!(two.map(|state| state.object), Ok(one.object));
    }

    #[test]
    fn disjoint_appliers_commute(one in config(), other in config()) {
        let kind = Kind::new(&Gvk::fixed("apps/v1", "Deployment"));
        let one = without_empty(json!({"metadata": one.get("metadata")})).as_object().unwrap().clone();
        let other = without_empty(json!({"spec": other.get("spec")})).as_object().unwrap().clone();
        let apply = |state: &State, manager: &str, body| kind.apply(state, manager, body, Conflicts::Refuse);
        let start = State::default();
        let forth = apply(&apply(&start, "m", &one).unwrap(), "n", &other).unwrap();
        let back = apply(&apply(&start, "n", &other).unwrap(), "m", &one).unwrap();
        prop_assert_eq!(forth.object, back.object);
        prop_assert_eq!(forth.managers.encode(), back.managers.encode());
    }

    #[test]
    fn an_update_to_the_same_changes_nothing(body in config()) {
        let kind = Kind::new(&Gvk::fixed("apps/v1", "Deployment"));
        let state = forced(&kind, &State::default(), "m", &body);
        prop_assert_eq!(&kind.update(&state, "u", &state.object), &state);
    }

    #[test]
    fn sets_survive_their_json(body in config()) {
        let kind = Kind::new(&Gvk::fixed("apps/v1", "Deployment"));
        let set = owned::owned(&kind.schema, &body);
        let encoded = fields_v1::encode(&set);
        prop_assert_eq!(fields_v1::parse_text(&encoded), Ok(set.clone()));
        prop_assert!(fields_v1::covers(encoded.as_bytes(), 0, &set));
        prop_assert_eq!(fields_v1::touches(encoded.as_bytes(), 0, &set), !set.is_empty());
    }

    #[test]
    fn text_is_searched_as_the_set_it_is(one in config(), other in config()) {
        let kind = Kind::new(&Gvk::fixed("apps/v1", "Deployment"));
        let (one, other) = (owned::owned(&kind.schema, &one), owned::owned(&kind.schema, &other));
        let text = fields_v1::encode(&one);
        let left = other.clone().difference(&one);
        prop_assert_eq!(fields_v1::covers(text.as_bytes(), 0, &other), left.is_empty());
        prop_assert_eq!(fields_v1::touches(text.as_bytes(), 0, &other), !one.intersection(&other).is_empty());
    }

    #[test]
    fn any_json_is_a_set_or_an_error(text in "\\{(\"[fkvi.]:?[a{}\"0-9]{0,4}\":(\\{\\}|1|null),?){0,3}\\}") {
        if let Ok(fields) = serde_json::from_str::<Map>(&text) {
            let set = fields_v1::parse(&fields);
            prop_assert_eq!(&fields_v1::parse_text(&text), &set);
            if let Ok(set) = set {
                prop_assert_eq!(fields_v1::parse_text(&fields_v1::encode(&set)), Ok(set));
            }
        }
    }
}

/// A client may send a step that names no key field.
#[test]
fn a_step_by_no_field_is_written_as_it_came() {
    let set = fields_v1::parse_text(r#"{"f:a":{"k:{}":{}}}"#).expect("a set");
    assert_eq!(fields_v1::encode(&set), r#"{"f:a":{"k:{}":{}}}"#);
}
