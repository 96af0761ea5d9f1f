use super::*;
use crate::codec::at_rest::StorageMediaType;
use crate::codec::object::Draft;
use crate::tree::{Value, json};

fn object(version: &str, revision: u64, bytes: usize) -> (Id, Arc<Object>) {
    let value =
        json!({"apiVersion": version, "kind": "K", "metadata": {"name": "a"}, "long": "x".repeat(bytes)});
    let Value::Object(map) = value else { unreachable!("an object") };
    let draft = Draft::encode("", "a", map, StorageMediaType::Json);
    let revision = Revision(revision);
    (Id { revision, version: 7 }, Arc::new(draft.into_object(revision)))
}

fn work<'a>(kept: &'a Kept, wanted: &[(Id, Arc<Object>)], found: &mut [Option<Arc<Object>>]) -> Work<'a> {
    match kept.turn(wanted, found) {
        Turn::Work(work) => work,
        Turn::Done | Turn::Wait(_) => panic!("there is work"),
    }
}

fn objects(wanted: &[(Id, Arc<Object>)], places: &[usize]) -> Vec<Arc<Object>> {
    places.iter().map(|place| wanted[*place].1.clone()).collect()
}

#[tokio::test]
async fn one_converts_and_the_others_wait() {
    let kept = Kept::default();
    let wanted = [object("ex/v1", 1, 0), object("ex/v1", 2, 0)];
    let (mut one, mut other) = ([None, None], [None, None]);
    let first = work(&kept, &wanted, &mut one);
    let Turn::Wait(outcome) = kept.turn(&wanted, &mut other) else { panic!("somebody works") };
    let converted = objects(&wanted, first.places());
    first.finish(converted, &mut one);
    assert!(one.iter().all(Option::is_some));
    outcome.wait().await.expect("no error");
    assert!(matches!(kept.turn(&wanted, &mut other), Turn::Done));
    assert!(other.iter().all(Option::is_some));
}

#[tokio::test]
async fn a_failure_of_all_is_told_and_one_that_is_not_is_tried_again() {
    let kept = Kept::default();
    let wanted = [object("ex/v1", 1, 0), object("ex/v1", 2, 0)];
    let fails = |is_of_all| Failed { error: Error::Unclassified("down".to_owned()), is_of_all };
    for (is_of_all, told) in [(true, Err(Error::Unclassified("down".to_owned()))), (false, Ok(()))] {
        let mut found = [None, None];
        let first = work(&kept, &wanted, &mut found);
        let Turn::Wait(outcome) = kept.turn(&wanted, &mut [None, None]) else { panic!("somebody works") };
        first.fail(fails(is_of_all));
        assert_eq!(outcome.wait().await, told);
        drop(work(&kept, &wanted, &mut found));
    }
    // Whoever gives up leaves the work to others.
    let first = work(&kept, &wanted, &mut [None, None]);
    let Turn::Wait(outcome) = kept.turn(&wanted, &mut [None, None]) else { panic!("somebody works") };
    drop(first);
    outcome.wait().await.expect("no error");
    drop(work(&kept, &wanted, &mut [None, None]));
}

#[test]
fn a_call_is_bounded_and_of_one_version() {
    let kept = Kept::default();
    let mut wanted: Vec<_> = (0..600).map(|revision| object("ex/v1", revision, 0)).collect();
    wanted.insert(1, object("ex/v0", 1000, 0));
    let mut found = vec![None; wanted.len()];
    let many = work(&kept, &wanted, &mut found);
    assert_eq!(many.places().len(), 500);
    assert!(!many.places().contains(&1));
    let older = work(&kept, &wanted, &mut found);
    assert_eq!(older.places(), [1]);
    let large =
        [object("ex/v1", 2000, 2 << 20), object("ex/v1", 2001, 2 << 20), object("ex/v1", 2002, 4 << 20)];
    let mut found = vec![None; 3];
    for place in 0..3 {
        let one = work(&kept, &large, &mut found);
        assert_eq!(one.places(), [place]);
        let converted = objects(&large, one.places());
        one.finish(converted, &mut found);
    }
}

#[test]
fn the_oldest_results_go_when_there_are_too_many() {
    let kept = Kept::default();
    let large: Vec<_> = (0..70).map(|revision| object("ex/v1", revision, 1 << 20)).collect();
    for one in large.chunks(1) {
        let mut found = [None];
        let work = work(&kept, one, &mut found);
        let converted = objects(one, work.places());
        work.finish(converted, &mut found);
        assert!(found[0].is_some());
    }
    let mut found = vec![None; large.len()];
    drop(kept.turn(&large, &mut found));
    assert!(found[0].is_none() && found[69].is_some());
    let state = kept.state();
    assert!(state.bytes <= MOST_KEPT && state.order.len() == state.done.len() && state.working.is_empty());
}
