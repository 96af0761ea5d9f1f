//! Tests of `tree::map`.

use std::hash::{DefaultHasher, Hash, Hasher};

use rowplane_values::tree::{Map, Value, json, work};

/// Comparing each level twice would take 2^100 steps.
#[test]
fn deep_objects_that_differ_at_the_bottom_are_compared_once() {
    let deep = |bottom: i64| (0..100).fold(json!(bottom), |value, _| json!({"a": value, "b": 1}));
    assert_ne!(deep(1), deep(2));
    assert_eq!(deep(1), deep(1));
    let turned = |bottom: i64| (0..100).fold(json!(bottom), |value, _| json!({"b": 1, "a": value}));
    assert_ne!(deep(1), turned(2));
    assert_eq!(deep(1), turned(1));
}

#[test]
fn equal_values_have_equal_hashes() {
    let hash = |value: &Value| {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    };
    let (one, other) = (json!({"a": 1, "b": [2, {"c": null}]}), json!({"b": [2, {"c": null}], "a": 1}));
    assert_eq!(hash(&one), hash(&other));
    assert_ne!(hash(&one), hash(&json!({"a": 1, "b": [2, {"d": null}]})));
    assert_ne!(hash(&json!({"a": "b", "c": "d"})), hash(&json!({"a": "d", "c": "b"})));
}

#[test]
fn order_is_not_what_they_are() {
    assert_eq!(json!({"a": 1, "b": [2, {"c": null}]}), json!({"b": [2, {"c": null}], "a": 1}));
    assert_ne!(json!({"a": 1, "b": 2}), json!({"a": 2, "b": 1}));
    assert_ne!(json!({"a": 1}), json!({"b": 1}));
}

#[test]
fn a_value_takes_four_words() {
    assert_eq!(size_of::<Value>(), 32);
}

/// Compares with a model: a list of pairs that is searched from end to end.
#[test]
fn members_of_small_and_large_objects() {
    let mut seed: u64 = 1;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for round in 0..200 {
        let mut map = Map::new();
        let mut model: Vec<(String, Value)> = Vec::new();
        for _ in 0..200 {
            let name = format!("n{}", next(1 + round % 60));
            let at = model.iter().position(|(known, _)| *known == name);
            match next(6) {
                5 => edit_both(&mut map, &mut model, &mut next, 1 + round % 60),
                0 => {
                    let removed = at.map(|at| model.remove(at).1);
                    assert_eq!(map.shift_remove(&name), removed);
                }
                1 if next(20) == 0 => {
                    let keeps = |name: &str| !name.ends_with('3');
                    map.retain(|name, _| keeps(name));
                    model.retain(|(name, _)| keeps(name));
                }
                2 if next(20) == 0 => {
                    map.sort_keys();
                    model.sort_by(|(one, _), (other, _)| one.cmp(other));
                }
                3 => {
                    let place = map.entry(&*name).or_insert(Value::Null);
                    let at = at.unwrap_or_else(|| {
                        model.push((name.clone(), Value::Null));
                        model.len() - 1
                    });
                    assert_eq!(*place, model[at].1);
                }
                _ => {
                    let value = Value::from(next(1000));
                    let before = at.map(|at| std::mem::replace(&mut model[at].1, value.clone()));
                    if before.is_none() {
                        model.push((name.clone(), value.clone()));
                    }
                    assert_eq!(map.insert(&*name, value), before);
                }
            }
            assert_eq!(map.len(), model.len());
            assert!(
                map.iter()
                    .map(|(name, value)| (name.as_str(), value))
                    .eq(model.iter().map(|(n, v)| (&**n, v)))
            );
            assert_eq!(
                map.get(&name),
                model.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
            );
        }
        let turned: Map = map.iter().rev().map(|(name, value)| (name.clone(), value.clone())).collect();
        assert_eq!(map, turned);
    }
}

/// Makes several changes in one edit of the map, and one after the other in the model.
fn edit_both(map: &mut Map, model: &mut Vec<(String, Value)>, next: &mut impl FnMut(u64) -> u64, names: u64) {
    let mut edit = map.edit();
    for _ in 0..next(40) {
        let name = format!("n{}", next(names));
        let at = model.iter().position(|(known, _)| *known == name);
        assert_eq!(edit.get_mut(&name).cloned(), at.map(|at| model[at].1.clone()));
        if next(3) > 0 {
            assert_eq!(edit.remove(&name), at.map(|at| model.remove(at).1));
            continue;
        }
        let value = Value::from(next(1000));
        match at {
            Some(at) => model[at].1 = value.clone(),
            None => model.push((name.clone(), value.clone())),
        }
        edit.insert(&*name, value);
    }
}

/// A thousand times as many removals from as many members take a thousand times the work, not a million times.
#[test]
fn removing_many_members_moves_each_a_few_times() {
    let steps = |members: usize| {
        let mut map: Map = (0..members).map(|n| (format!("n{n}"), Value::from(n))).collect();
        let taken = work::of(|| {
            let mut edit = map.edit();
            (0..members).filter(|n| n % 3 > 0).for_each(|n| drop(edit.remove(&format!("n{n}"))));
        });
        assert_eq!(map.len(), members.div_ceil(3));
        taken
    };
    assert!(steps(300) <= 3 * 300);
    assert!(steps(300_000) <= 3 * 300_000);
}
