use std::sync::Arc;

use super::samples::{custom, first};
use crate::schema::names::Gvr;

fn name(number: usize) -> Gvr {
    custom(number).gvr()
}

#[test]
fn a_definition_makes_little_anew() {
    let definitions: Vec<_> = (0..600).map(custom).collect();
    let before = first().with([], &definitions);
    let after = before.with(&definitions[9..10], &[custom(9), custom(600)]);
    let same = |number: usize| {
        let [old, new] = [&before, &after].map(|served| served.get(&name(number)));
        old.zip(new).is_some_and(|(old, new)| Arc::ptr_eq(old, new))
    };
    let anew: Vec<_> = (0..=600).filter(|number| !same(*number)).collect();
    assert_eq!(anew, [9, 600]);
    let known = |group| before.registry().groups().iter().any(|before| Arc::ptr_eq(before, group));
    let groups = after.registry().groups().iter();
    let anew: Vec<_> = groups.filter(|group| !known(group)).map(|group| &*group.name).collect();
    assert_eq!(anew, ["g1.example.com", "g100.example.com"]);
}

#[test]
fn what_is_stored_follows_what_is_served() {
    let first = first();
    let built_in = first.stored_count();
    assert_eq!(first.stored().count(), first.registry().stored().count());
    let [one, other] = [custom(1), custom(2)];
    let second = first.with([], &[one.clone(), other.clone()]);
    assert_eq!((second.generation, second.stored_count()), (first.generation + 1, built_in + 2));
    let resource = second.get(&name(1)).expect("served");
    assert!(Arc::ptr_eq(resource, second.by_id(resource.id).expect("stored")));
    let third = second.with([&one], &[]);
    assert!(third.get(&name(1)).is_none() && !third.stores(resource.id) && third.get(&name(2)).is_some());
    // What is served already is not replaced.
    let fourth = third.with([], &[custom(2)]);
    assert!(Arc::ptr_eq(&fourth.get(&name(2)).expect("served").definition, &other));
    assert_eq!(fourth.with([&other], &[]).stored_count(), built_in);
}
