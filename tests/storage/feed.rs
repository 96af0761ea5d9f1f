//! The changefeed.

use rowplane::revision::Revision;
use rowplane::storage::{ChangeKind, Key};

use crate::support::database::Database;
use crate::support::object::{create, delete, feed, pass, resource, update, value};

pub async fn tells_every_write_with_its_values(database: &Database) {
    let backend = database.open().await;
    let things = resource(&*backend, "things").await;
    let others = resource(&*backend, "others").await;
    let (key, other) = (Key::new(things, "ns", "a"), Key::new(others, "", "b"));
    let start = backend.clock().await.expect("clock").revision;
    let first = pass(&*backend, create(&key, 1)).await;
    let second = pass(&*backend, update(&key, first, 2)).await;
    let foreign = pass(&*backend, create(&other, 7)).await;
    let third = pass(&*backend, delete(&key, second)).await;
    let fourth = pass(&*backend, create(&key, 4)).await;

    let told = |rows: Vec<rowplane::storage::ChangeRow>| -> Vec<_> {
        rows.into_iter().map(|row| (row.revision, row.key, row.kind, row.value, row.previous)).collect()
    };
    let mut expected = vec![
        (first, key.clone(), ChangeKind::Added, Some(value(1)), None),
        (second, key.clone(), ChangeKind::Modified, Some(value(2)), Some((first, value(1)))),
        (foreign, other, ChangeKind::Added, Some(value(7)), None),
        (third, key.clone(), ChangeKind::Deleted, None, Some((second, value(2)))),
        (fourth, key, ChangeKind::Added, Some(value(4)), None),
    ];
    assert_eq!(told(feed(&*backend, start, Some(others), 1000).await), expected[2..3]);
    let foreign = expected.remove(2);
    assert_eq!(told(feed(&*backend, start, Some(things), 1000).await), expected);
    expected.insert(2, foreign);
    for (.., previous) in &mut expected {
        *previous = None;
    }
    assert_eq!(told(feed(&*backend, start, None, 1000).await), expected);
    assert_eq!(told(feed(&*backend, second, None, 1000).await), expected[2..]);
}

/// `through` tells up to which revision a piece is complete: to its last row if it is full, otherwise to the clock.
pub async fn comes_in_pieces(database: &Database) {
    let backend = database.open().await;
    let things = resource(&*backend, "things").await;
    let others = resource(&*backend, "others").await;
    let start = backend.clock().await.expect("clock").revision.0;
    for n in 0..10 {
        let resource = if n % 2 == 0 { things } else { others };
        pass(&*backend, create(&Key::new(resource, "ns", &format!("{n}")), n)).await;
    }
    let piece = async |after: u64, resource, limit| {
        let changes = backend.changes(Revision(start + after), resource, limit).await.expect("changes");
        let rows: Vec<u64> = changes.rows.iter().map(|row| row.revision.0 - start).collect();
        (rows, changes.through.0 - start)
    };
    assert_eq!(piece(0, None, 3).await, (vec![1, 2, 3], 3));
    assert_eq!(piece(8, None, 3).await, (vec![9, 10], 10));
    assert_eq!(piece(10, None, 3).await, (vec![], 10));
    assert_eq!(piece(0, Some(things), 2).await, (vec![1, 3], 3));
    assert_eq!(piece(7, Some(things), 2).await, (vec![9], 10), "the clock, though the last row is older");
    assert_eq!(piece(7, Some(others), 2).await, (vec![8, 10], 10));
    for limit in 1..12 {
        let rows = feed(&*backend, Revision(start), Some(others), limit).await;
        let revisions: Vec<u64> = rows.iter().map(|row| row.revision.0 - start).collect();
        assert_eq!(revisions, [2, 4, 6, 8, 10], "in pieces of {limit}");
    }
}
