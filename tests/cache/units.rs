//! Rows that share a revision in etcd's terms become visible together: in states, in the feed, on other servers.

use std::sync::atomic::{AtomicBool, Ordering};

use rowplane::storage::Unit;

use super::*;
use crate::support::object::put;

on_every_backend!(a_unit_is_seen_whole);

/// Writes the rows of a set again, in one unit, and returns their revisions.
async fn write_set(server: &Server, set: &str, size: usize, before: Option<Revision>) -> Revision {
    let row = |n: usize| {
        let expect = before.map_or(Expect::Absent, |first| Expect::At(Revision(first.0 + n as u64)));
        put(&server.key(&name(set, n)), expect, n as u64)
    };
    let unit = Unit::of_one_revision((0..size - 1).map(row).collect(), row(size - 1));
    match server.store.write_unit(unit).await.expect("write") {
        Written::Committed { revision, .. } => Revision(revision.0 - (size as u64 - 1)),
        lost => panic!("the write lost: {lost:?}"),
    }
}

fn name(set: &str, n: usize) -> String {
    format!("{set}-{n:04}")
}

/// The revision of the first row of a set, if it is there. Those of the others follow, since one unit has written them all.
fn first_of(set: &str, size: usize, revision: impl Fn(&str) -> Option<Revision>) -> Option<Revision> {
    let first = revision(&name(set, 0));
    for n in 1..size {
        let expected = first.map(|first| Revision(first.0 + n as u64));
        assert_eq!(revision(&name(set, n)), expected, "row {n} of {set}, whose first one is at {first:?}");
    }
    first
}

/// Two sets, of which one is longer than a page of the feed that is read here.
const SETS: [(&str, usize); 2] = [("short", 3), ("long", 40)];

async fn a_unit_is_seen_whole(database: Database) {
    const ROUNDS: usize = 60;
    const PAGE: u32 = 7;
    let server = Server::start(&database).await;
    let start = server.cache.any().revision;
    let ended = AtomicBool::new(false);
    let writers = async {
        let write = async |set, size| {
            let mut first = None;
            for _ in 0..ROUNDS {
                first = Some(write_set(&server, set, size, first).await);
            }
        };
        futures_util::join!(write(SETS[0].0, SETS[0].1), write(SETS[1].0, SETS[1].1));
        ended.store(true, Ordering::SeqCst);
    };
    let states = async {
        let mut seen = 0;
        while !ended.load(Ordering::SeqCst) {
            let state = server.cache.any();
            let of = |name: &str| state.get(server.pods, "ns", name).map(|object| object.revision());
            seen += SETS.iter().filter(|(set, size)| first_of(set, *size, of).is_some()).count();
            tokio::task::yield_now().await;
        }
        seen
    };
    let pages = async {
        let (mut at, mut rows) = (start, std::collections::BTreeMap::new());
        loop {
            // Asked first: what is committed afterwards is in no page that is read before.
            let is_last = ended.load(Ordering::SeqCst);
            let page = server.backend.changes(at, None, PAGE).await.expect("changes");
            at = page.through;
            rows.extend(page.rows.into_iter().map(|row| (row.key.name.to_string(), row.revision)));
            for (set, size) in SETS {
                first_of(set, size, |name| rows.get(name).copied());
            }
            if is_last && !page.cut {
                return at;
            }
            tokio::task::yield_now().await;
        }
    };
    let ((), seen, read) = futures_util::join!(writers, states, pages);
    assert!(seen > 0);
    let all: usize = SETS.iter().map(|(_, size)| size * ROUNDS).sum();
    assert_eq!(read.0, start.0 + all as u64);
    assert_eq!(server.backend.clock().await.expect("clock").lag, all as i64 - 2 * ROUNDS as i64);
}

/// The other server's cache reads the feed in pages, which are shorter than this unit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_server_sees_a_long_unit_whole() {
    const ROWS: usize = 2300;
    const ROUNDS: usize = 4;
    let database = Database::postgres().await;
    let (one, two) = (Server::start(&database).await, Server::start(&database).await);
    let mut changes = two.cache.watch(two.pods, two.cache.any().revision);
    let mut writer = tokio::spawn(async move {
        let mut first = None;
        for _ in 0..ROUNDS {
            first = Some(write_set(&one, "set", ROWS, first).await);
        }
        (first.expect("a write"), one)
    });
    let (mut seen, mut written) = (None, None);
    loop {
        let state = two.cache.any();
        let of = |name: &str| state.get(two.pods, "ns", name).map(|object| object.revision());
        seen = first_of("set", ROWS, of).or(seen);
        if let Some((last, _)) = &written
            && seen == Some(*last)
        {
            break;
        }
        tokio::select! {
            () = changes.changed() => drop(changes.next().await.expect("events")),
            ended = &mut writer, if written.is_none() => written = Some(ended.expect("the writer")),
        }
    }
}
