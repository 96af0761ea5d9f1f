//! Tests of `identity::instance`.

use std::path::Path;

use rowplane_store::identity::Instance;
use uuid::Uuid;

fn take(directory: &Path) -> Instance {
    Instance::take(&directory.join("servers"), "laptop", 6443).expect("an instance")
}

#[test]
fn a_restart_finds_its_id_and_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = take(directory.path());
    assert_eq!(first.last_name(), None);
    first.remember("laptop-6443").expect("kept");
    let id = first.id();
    drop(first);
    let again = take(directory.path());
    assert_eq!((again.id(), again.last_name().as_deref()), (id.clone(), Some("laptop-6443")));
    again.forget().expect("kept");
    drop(again);
    let other = take(directory.path());
    assert!(other.id() != id && other.last_name().is_none());
}

#[test]
fn two_that_live_are_two() {
    let directory = tempfile::tempdir().expect("a directory");
    let (one, other) = (take(directory.path()), take(directory.path()));
    assert_ne!(one.id(), other.id());
    let id = one.id();
    drop(one);
    assert_eq!(take(directory.path()).id(), id);
}

#[test]
fn what_a_crash_has_cut_is_made_anew() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(take(directory.path()));
    std::fs::write(directory.path().join("servers/laptop-6443"), "3f2a").expect("write");
    let id = take(directory.path()).id();
    assert!(Uuid::parse_str(&id).is_ok());
    assert_eq!(take(directory.path()).id(), id);
}
