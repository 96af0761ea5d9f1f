//! Bugs planted in a good record of deletions: the judge must find each of them, and nothing in the unchanged record.

use serde_json::{Value, json};

use super::deletions::{Asked, BATCH, Collection, HOLD, PICK, Place, TREES, judge};
use super::records::Row;

fn put(revision: u64, name: &str, mut metadata: Value) -> Row {
    metadata["uid"] = name.into();
    let object = Some(json!({"metadata": metadata}));
    let (plural, namespace, name) = ("secrets".to_owned(), TREES.to_owned(), name.to_owned());
    Row { revision, plural, namespace, uid: name.clone(), name, object }
}

fn gone(revision: u64, name: &str) -> Row {
    Row { object: None, ..put(revision, name, json!({})) }
}

fn namespace(revision: u64, name: &str, metadata: Value) -> Row {
    let row = put(revision, name, metadata);
    Row { plural: "namespaces".to_owned(), namespace: String::new(), ..row }
}

fn place(name: &str) -> Place {
    ("secrets".to_owned(), TREES.to_owned(), name.to_owned())
}

fn owned_by(owner: &str) -> Value {
    json!({"ownerReferences": [{"uid": owner, "blockOwnerDeletion": true}]})
}

/// `metadata` of an object that is being deleted.
fn ending(mut metadata: Value, finalizers: &[&str]) -> Value {
    metadata["deletionTimestamp"] = "2026-11-26T12:00:00Z".into();
    metadata["finalizers"] = json!(finalizers);
    metadata
}

/// `owner` is deleted in the foreground and waits for `child`, which is held until 6; a batch of two is deleted, of which
/// one is picked.
fn good() -> (Vec<Row>, Asked) {
    let batch = |pick: &str| json!({"labels": {BATCH: "b", PICK: pick}});
    let rows = vec![
        namespace(1, TREES, json!({})),
        put(2, "owner", json!({})),
        put(3, "child", held(owned_by("owner"))),
        put(4, "owner", ending(json!({}), &["foregroundDeletion"])),
        put(5, "child", ending(owned_by("owner"), &[HOLD])),
        gone(6, "child"),
        gone(7, "owner"),
        put(8, "picked", batch("yes")),
        put(9, "other", batch("no")),
        gone(10, "picked"),
    ];
    let collection = Collection {
        plural: "secrets".to_owned(),
        namespace: TREES.to_owned(),
        batch: "b".to_owned(),
        answered: Some(9),
    };
    let asked = Asked {
        deletions: [place("owner")].into(),
        collections: vec![collection],
        released: [(place("child"), 5)].into(),
        killed: Default::default(),
    };
    (rows, asked)
}

fn held(mut metadata: Value) -> Value {
    metadata["finalizers"] = json!([HOLD]);
    metadata
}

fn found(rows: &[Row], asked: &Asked) -> Vec<String> {
    judge(rows, asked, false).1.iter().map(|violation| violation.story.clone()).collect()
}

/// Judges the good record after a bug was planted in it.
#[track_caller]
fn finds(story: &str, plant: impl FnOnce(&mut Vec<Row>, &mut Asked)) {
    let (mut rows, mut asked) = good();
    assert_eq!(found(&rows, &asked), [""; 0]);
    plant(&mut rows, &mut asked);
    let found = found(&rows, &asked);
    assert!(found.iter().any(|found| found.contains(story)), "{story} in {found:?}");
}

fn metadata(row: &mut Row) -> &mut Value {
    &mut row.object.as_mut().expect("an object")["metadata"]
}

#[test]
fn what_is_held_and_goes() {
    finds("nobody took off", |_, asked| asked.released.clear());
    // Of another version.
    finds("nobody took off", |_, asked| asked.released = [(place("child"), 3)].into());
}

#[test]
fn a_deletion_that_is_taken_back_or_put_off() {
    finds("taken back", |rows, _| rows.insert(5, put(5, "child", held(owned_by("owner")))));
    finds("put off", |rows, _| {
        let mut later = rows[4].clone();
        metadata(&mut later)["deletionTimestamp"] = "2026-11-26T12:00:01Z".into();
        rows.insert(5, later);
    });
    finds("held anew", |rows, _| {
        let held = put(5, "child", ending(owned_by("owner"), &[HOLD, "another"]));
        rows.insert(5, held);
    });
}

#[test]
fn an_object_without_its_uid() {
    finds("uid of its own", |rows, _| metadata(&mut rows[2])["uid"] = "another".into());
    finds("another one", |rows, _| metadata(&mut rows[4])["uid"] = Value::Null);
}

#[test]
fn an_owner_that_does_not_wait() {
    finds("did not wait for 1", |rows, _| rows.swap(5, 6));
    // What came after the owner was marked may have been overlooked, but has to go in the end.
    let (mut rows, asked) = good();
    rows.insert(4, put(4, "late", owned_by("owner")));
    let found = found(&rows, &asked);
    assert!(found.len() == 1 && found[0].contains("left in the end"), "{found:?}");
}

#[test]
fn an_owner_that_orphans_nobody() {
    finds("still name it", |rows, _| {
        *metadata(&mut rows[3]) = json!({"uid": "owner", "deletionTimestamp": "2", "finalizers": ["orphan"]});
        rows.swap(5, 6);
    });
}

#[test]
fn what_is_collected_though_it_has_an_owner() {
    finds("nobody wanted", |rows, _| rows.swap(3, 4));
    finds("nobody wanted", |rows, asked| {
        asked.deletions.clear();
        rows.truncate(4);
    });
    finds("is not named any more", |rows, _| rows.insert(3, put(3, "child", held(json!({})))));
}

#[test]
fn what_is_left_of_owners_and_deletions() {
    finds("left in the end", |rows, _| rows.truncate(6));
    finds("left in the end", |rows, asked| {
        rows.truncate(3);
        rows.push(gone(4, "owner"));
        asked.collections.clear();
    });
}

#[test]
fn a_collection_that_takes_too_much_or_too_little() {
    finds("nobody wanted", |rows, _| rows.push(gone(11, "other")));
    finds("has left", |rows, _| drop(rows.pop()));
}

#[test]
fn a_pod_that_goes_too_early() {
    let pod = |row: Row| Row { plural: "pods".to_owned(), ..row };
    let (mut rows, mut asked) = good();
    let mut running = pod(put(11, "pod", json!({})));
    running.object.as_mut().expect("an object")["spec"] = json!({"nodeName": "n"});
    let mut graceful = ending(json!({}), &[]);
    graceful["deletionGracePeriodSeconds"] = 30.into();
    rows.extend([running, pod(put(12, "pod", graceful)), pod(gone(13, "pod"))]);
    let at = ("pods".to_owned(), TREES.to_owned(), "pod".to_owned());
    asked.deletions.insert(at.clone());
    assert_eq!(found(&rows, &asked).len(), 1);
    rows.remove(11);
    assert_eq!(found(&rows, &asked).len(), 1, "without any grace");
    asked.killed.insert((at, 11));
    assert_eq!(found(&rows, &asked), [""; 0]);
}

#[test]
fn what_is_left_of_a_namespace() {
    let inside = |row: Row| Row { namespace: "gone-1".to_owned(), ..row };
    let (mut rows, mut asked) = good();
    rows.extend([
        namespace(11, "gone-1", json!({})),
        inside(put(12, "inside", json!({}))),
        namespace(13, "gone-1", ending(json!({}), &[])),
        inside(gone(14, "inside")),
        namespace(15, "gone-1", Value::Null),
    ]);
    rows.last_mut().expect("rows").object = None;
    asked.deletions.insert(("namespaces".to_owned(), String::new(), "gone-1".to_owned()));
    assert_eq!(found(&rows, &asked), [""; 0]);
    let left = [&rows[..13], &rows[14..]].concat();
    assert!(found(&left, &asked).iter().any(|story| story.contains("1 objects are left")));
    rows.insert(13, inside(put(13, "late", json!({}))));
    assert!(found(&rows, &asked).iter().any(|story| story.contains("into a namespace that ends")));
}
