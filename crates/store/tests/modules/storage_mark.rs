//! Tests of `storage::mark`.

use rowplane_objects::revision::Revision;
use rowplane_store::storage::{HighWaterMark, Sighting};

fn at(revision: u64, flushed: u64) -> Sighting {
    Sighting { revision: Revision(revision), timeline: 1, flushed, system: Some(7), identity: Some(9) }
}

#[test]
fn a_damaged_mark_is_no_mark_and_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mark");
    for damage in ["", "\0\0\0\0", "revision x\n", "revision 5\nsystem 1\n"] {
        std::fs::write(&path, damage).unwrap();
        let mark = HighWaterMark::load(path.clone());
        assert_eq!((mark.get(), mark.sighting()), (Revision(0), None), "{damage:?}");
        mark.raise(Revision(3));
        mark.save().unwrap();
        assert_eq!(HighWaterMark::load(path.clone()).get(), Revision(3), "{damage:?}");
    }
}

/// Two servers share a data directory, and one of them was paused for a while.
#[test]
fn a_lower_mark_never_replaces_a_higher_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mark");
    let (ahead, behind) = (HighWaterMark::load(path.clone()), HighWaterMark::load(path.clone()));
    ahead.raise(Revision(9));
    ahead.sight(at(9, 90));
    ahead.save().unwrap();
    behind.raise(Revision(2));
    behind.sight(at(2, 20));
    behind.save().unwrap();
    let found = HighWaterMark::load(path.clone());
    assert_eq!((found.get(), found.sighting()), (Revision(9), Some(at(9, 90))));
    // After a jump of the clock the log position may be lower than before; the higher revision decides.
    behind.raise(Revision(1009));
    behind.sight(at(1009, 30));
    behind.save().unwrap();
    ahead.sight(at(9, 91));
    ahead.save().unwrap();
    let found = HighWaterMark::load(path);
    assert_eq!((found.get(), found.sighting()), (Revision(1009), Some(at(1009, 30))));
}

/// Earlier builds wrote a bare number, into a file with another name.
#[test]
fn the_mark_of_earlier_builds_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mark-abc");
    std::fs::write(dir.path().join("high-water-mark-abc"), "41\n").unwrap();
    assert_eq!(HighWaterMark::load(path.clone()).get(), Revision(41));
    let mark = HighWaterMark::load(path.clone());
    mark.raise(Revision(42));
    mark.save().unwrap();
    assert_eq!(HighWaterMark::load(path).get(), Revision(42));
}
