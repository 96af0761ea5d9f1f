//! Tests of `cache::state`.

use std::sync::Arc;

use bytes::Bytes;
use rowplane_objects::codec::object::{Draft, Object};
use rowplane_objects::revision::Revision;
use rowplane_store::cache::{Objects, Range, State};
use rowplane_store::storage::ResourceId;

fn object(namespace: &str, name: &str) -> Arc<Object> {
    let draft = Draft::of_json(namespace, name, Bytes::from_static(b"{\"metadata\":{}}"));
    Arc::new(draft.into_object(Revision(1)))
}

#[test]
fn ranges_follow_namespace_then_name() {
    let keys = [("a-b", "x"), ("a", "z"), ("a", "b"), ("", "n"), ("ab", "c")];
    let objects = Objects::of_sorted(keys.into_iter().map(|(namespace, name)| object(namespace, name)));
    let names = |range: Range| objects.range(&range).map(|o| o.key().to_owned()).collect::<Vec<_>>();
    assert_eq!(names(Range::of(None)), ["\0n", "a\0b", "a\0z", "a-b\0x", "ab\0c"]);
    assert_eq!(names(Range::of(Some("a"))), ["a\0b", "a\0z"]);
    assert_eq!(names(Range::of(Some("a")).after("a", "b")), ["a\0z"]);
    assert_eq!(names(Range::of(None).after("a", "z")), ["a-b\0x", "ab\0c"]);
    assert_eq!(names(Range::of(Some("c"))), [""; 0]);
}

#[test]
fn a_quiet_resource_is_the_same_at_every_later_revision() {
    let mut state = State::at(Revision(5));
    state.load(ResourceId(1), Objects::of_sorted([object("a", "b")].into_iter()));
    state.revision = Revision(9);
    assert!(state.unchanged_since(ResourceId(1), Revision(4)).is_none());
    assert_eq!(state.unchanged_since(ResourceId(1), Revision(5)).map(|o| o.len()), Some(1));
    assert_eq!(state.unchanged_since(ResourceId(1), Revision(9)).map(|o| o.len()), Some(1));
    assert!(state.unchanged_since(ResourceId(1), Revision(10)).is_none());
}
