//! The cases in `testdata/apply`, and properties of all writes.
//!
//! A case is a list of writes to one object. After the last write, the object and the managers' sets in FieldsV1 are
//! compared.

use std::collections::BTreeMap;

use rowplane_objects::codec::protobuf;
use rowplane_objects::patch::apply::conflict;
use rowplane_objects::patch::apply::fields::{self, FieldSet};
use rowplane_objects::patch::apply::fields_v1;
use rowplane_objects::patch::apply::filter::Filter;
use rowplane_objects::patch::apply::managers::{Acting, Identity, Manager, Managers, Operation};
use rowplane_objects::patch::apply::nulls;
use rowplane_objects::patch::apply::ownership::{self, Conflicts, Refusal, Update, Versions};
use rowplane_objects::patch::apply::path::PathElement;
use rowplane_objects::patch::apply::schema::Schema;
use rowplane_objects::schema::builtin;
use rowplane_objects::schema::kind;
use rowplane_objects::schema::names::Gvk;
use rowplane_values::tree::{Map, Value, work};
use serde::Deserialize;

mod properties;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The object before the first write; `None` if there is none.
    before: Option<Before>,
    writes: Vec<Write>,
    /// The object afterwards, without apiVersion and kind.
    object: Option<Map>,
    /// The sets by manager name. Managers that did not apply have ` (Update)` behind their name.
    managers: Option<BTreeMap<String, Map>>,
}

/// A stored object and its managers' sets.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Before {
    object: Map,
    managers: BTreeMap<String, Map>,
}

/// A write. Exactly one of `apply`, `force` and `update` is set, and names the manager.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Write {
    apply: Option<String>,
    force: Option<String>,
    update: Option<String>,
    body: Map,
    /// The error, if the write is refused.
    refused: Option<String>,
}

/// A kind with a single version.
pub(super) struct Kind {
    schema: Schema,
    api_version: String,
    kind: kind::Kind,
    filter: Filter,
}

/// An object and its managers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    pub object: Map,
    pub managers: Managers,
}

impl Kind {
    pub fn new(gvk: &Gvk) -> Self {
        let kind = builtin::kind(gvk).unwrap();
        let schema = Schema::of(&kind).unwrap();
        let filter = Filter::Exclude(fields::field_paths(&[&["status"]]));
        Self { schema, api_version: gvk.api_version().to_string(), kind, filter }
    }

    fn claimed(&self, body: &Map) -> Map {
        self.kind.gvk.claims().into_iter().chain(body.clone()).collect()
    }

    /// The object as its Go type prints it, with the fields that are always printed.
    fn stored(&self, object: &Map) -> Map {
        let raw = protobuf::encode(&self.kind, object).unwrap();
        protobuf::decode(&self.kind, &raw).unwrap()
    }

    fn state(&self, before: &Before) -> State {
        let managers = before.managers.iter().map(|(name, fields)| {
            let (name, operation) = match name.strip_suffix(" (Update)") {
                Some(name) => (name, Operation::Update),
                None => (name.as_str(), Operation::Apply),
            };
            let fields = fields_v1::parse(fields).unwrap();
            Manager { identity: self.acting(name, operation).identity, time: None, fields }
        });
        State { object: before.object.clone(), managers: Managers(managers.collect()) }
    }

    fn acting(&self, name: &str, operation: Operation) -> Acting {
        let api_version = self.api_version.clone();
        let identity = Identity { name: name.to_owned(), operation, api_version, subresource: String::new() };
        Acting { identity, now: "2030-01-01T00:00:00Z".to_owned() }
    }

    pub fn apply(
        &self,
        state: &State,
        manager: &str,
        body: &Map,
        conflicts: Conflicts,
    ) -> Result<State, String> {
        let (live, config) = (self.claimed(&state.object), self.claimed(body));
        let acting = self.acting(manager, Operation::Apply);
        let applied = ownership::apply(self, &live, &config, &state.managers, &acting, conflicts);
        let applied = applied.map_err(|refusal| match refusal {
            Refusal::Unfit(why) => why,
            Refusal::Conflicts(found) => conflict::message(&found).0,
        })?;
        let object = nulls::without_nulls(&self.schema, applied.object);
        Ok(State { object: bare(object), managers: applied.managers })
    }

    pub fn update(&self, state: &State, manager: &str, body: &Map) -> State {
        let (old, new) = (self.claimed(&state.object), self.claimed(body));
        let acting = self.acting(manager, Operation::Update);
        let managers = ownership::update(self, &old, &new, &state.managers, &acting);
        let mut update = Update::new(self, &old, &new, &acting).expect("a version that is served");
        if let Some(Value::Array(entries)) = state.managers.encode()
            && let Some(retouched) = update.retouched(&entries)
        {
            let expected = managers.as_ref().unwrap_or(&state.managers).encode();
            assert_eq!(Some(Value::Array(retouched)), expected);
        }
        State { object: body.clone(), managers: managers.unwrap_or_else(|| state.managers.clone()) }
    }

    fn write(&self, state: &State, write: &Write) -> Result<State, String> {
        match (&write.apply, &write.force, &write.update) {
            (Some(manager), None, None) => self.apply(state, manager, &write.body, Conflicts::Refuse),
            (None, Some(manager), None) => self.apply(state, manager, &write.body, Conflicts::Force),
            (None, None, Some(manager)) => Ok(self.update(state, manager, &write.body)),
            _ => panic!("a write has one manager"),
        }
    }
}

impl Versions for Kind {
    fn schema(&self, api_version: &str) -> Option<&Schema> {
        (api_version == self.api_version).then_some(&self.schema)
    }

    fn convert(&self, object: &Map, _: &str) -> Map {
        object.clone()
    }

    fn filter(&self) -> &Filter {
        &self.filter
    }
}

fn bare(mut object: Map) -> Map {
    object.retain(|name, _| name != "kind" && name != "apiVersion");
    object
}

impl State {
    fn sets(&self) -> BTreeMap<String, Map> {
        let managers = self.managers.0.iter().map(|manager| {
            let name = match manager.identity.operation {
                Operation::Apply => manager.identity.name.clone(),
                Operation::Update => format!("{} (Update)", manager.identity.name),
            };
            (name, serde_json::from_str(&fields_v1::encode(&manager.fields)).unwrap())
        });
        managers.collect()
    }
}

#[test]
fn cases() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/apply");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let file: File =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let kind = Kind::new(&Gvk::parse(&file.api_version, &file.kind).unwrap());
        for case in file.cases {
            run(&kind, &case);
            count += 1;
        }
    }
    assert!(count >= 40, "{count} cases");
}

fn run(kind: &Kind, case: &Case) {
    let mut state = case.before.as_ref().map(|before| kind.state(before)).unwrap_or_default();
    for write in &case.writes {
        match (kind.write(&state, write), &write.refused) {
            (Ok(next), None) => state = next,
            (Err(why), Some(refused)) => assert_eq!(&why, refused, "{}", case.name),
            (Ok(_), Some(refused)) => panic!("{}: not refused: {refused}", case.name),
            (Err(why), None) => panic!("{}: refused: {why}", case.name),
        }
    }
    match (&case.object, &case.before) {
        (Some(object), None) => assert_eq!(&state.object, object, "{}", case.name),
        (Some(object), Some(_)) => {
            assert_eq!(kind.stored(&state.object), kind.stored(object), "{}", case.name);
        }
        (None, _) => {}
    }
    if let Some(managers) = &case.managers {
        assert_eq!(&state.sets(), managers, "{}", case.name);
    }
}

#[test]
fn an_update_of_what_one_owns_alone_moves_only_the_time() {
    let kind = Kind::new(&Gvk::fixed("v1", "ConfigMap"));
    let body = |text: &str| serde_saphyr::from_str::<Map>(text).unwrap();
    let empty = State::default();
    let first = kind.apply(&empty, "b", &body("data: {y: '1'}"), Conflicts::Refuse).unwrap();
    let mut state = kind.update(&first, "a", &body("data: {x: '1', y: '1'}"));
    // Defaults and plugins set fields that nobody owns; an update must not take them.
    state.object.insert("immutable", true.into());
    let Some(Value::Array(entries)) = state.managers.encode() else { panic!("no managers") };
    let retouched = |manager: &str, text: &str| {
        let (old, new) = (kind.claimed(&state.object), kind.claimed(&body(text)));
        let acting = kind.acting(manager, Operation::Update);
        let acting = Acting { now: "2031-01-01T00:00:00Z".to_owned(), ..acting };
        Update::new(&kind, &old, &new, &acting).unwrap().retouched(&entries)
    };
    let mut later = entries.clone();
    later[1]["time"] = "2031-01-01T00:00:00Z".into();
    assert_eq!(retouched("a", "data: {x: '2', y: '1'}"), Some(later));
    assert_eq!(retouched("a", "data: {x: '1', y: '1'}"), Some(entries.clone()));
    for changes_sets in ["data: {x: '1', y: '2'}", "data: {x: '1', y: '1', z: '1'}", "data: {y: '1'}"] {
        assert_eq!(retouched("a", changes_sets), None, "{changes_sets}");
    }
    assert_eq!(retouched("c", "data: {x: '2', y: '1'}"), None);
    state.managers = Managers::decode(&entries).unwrap();
    assert_eq!(kind.update(&state, "a", &body("data: {x: '1', y: '1'}")).managers, state.managers);
}

/// With a thousand managers of one field each, beside one that owns them all, each set is visited a few times, instead
/// of visiting the large set for each of the small ones.
#[test]
fn thousands_of_small_sets_cost_no_more_than_they_hold() {
    let path = |n: usize| [PathElement::Field("data".into()), PathElement::Field(format!("k{n}").into())];
    let set = |range: std::ops::Range<usize>| {
        let mut set = FieldSet::default();
        range.for_each(|n| set.insert(&path(n)));
        set
    };
    let steps = |count: usize| {
        let small: Vec<FieldSet> = (0..count).map(|n| set(n..n + 1)).collect();
        let all = set(0..count);
        let united = work::of(|| {
            let sets = small.iter().cloned().chain([all.clone()]).collect();
            assert_eq!(FieldSet::union_of(sets), all);
        });
        let parted =
            work::of(|| small.iter().for_each(|one| assert!(one.clone().difference(&all).is_empty())));
        (united, parted)
    };
    let (one, double) = (steps(1000), steps(2000));
    assert!(double.0 <= 2 * one.0 + one.0 / 2, "{one:?} and {double:?} steps to unite them");
    assert!(double.1 <= 2 * one.1 + 1000, "{one:?} and {double:?} steps to part them");
}

/// Uniting sets in pairs has the same result as uniting them one after the other.
#[test]
fn sets_are_united_in_any_order() {
    let sets: Vec<FieldSet> = (1..12usize)
        .map(|n| {
            let name = |n: usize| PathElement::Field(format!("f{n}").into());
            let mut set = FieldSet::default();
            (0..20)
                .filter(|m| m % n == 0)
                .for_each(|m| set.insert(&[name(m), name(m % 3), name(n)][..1 + m % 3]));
            set
        })
        .collect();
    for count in 0..=sets.len() {
        let sets = &sets[..count];
        let one_by_one = sets.iter().fold(FieldSet::default(), |all, set| all.union(set));
        assert_eq!(FieldSet::union_of(sets.to_vec()), one_by_one);
        for set in sets {
            let left = one_by_one.clone().difference(set);
            assert!(left.intersection(set).is_empty());
            assert_eq!(left.clone().union(set), one_by_one.clone().union(set));
            assert!(set.clone().difference(&one_by_one).is_empty());
        }
    }
}
