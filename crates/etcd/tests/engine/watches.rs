//! Watch.

use std::time::Duration;

use rowplane_etcd::engine::{AutoCompaction, Config};
use rowplane_etcd::wire::messages::{
    CompactionRequest, DeleteRangeRequest, Event, EventType, FilterType, PutRequest, WatchCancelRequest,
    WatchCreateRequest, WatchProgressRequest, WatchRequestKind,
};

use crate::support::{Database, bytes, delete, op_put, put, txn, watched};

fn revisions(events: &[Event]) -> Vec<i64> {
    events.iter().filter_map(|event| Some(event.kv.as_ref()?.mod_revision)).collect()
}

/// A server on which the idle hear of progress often.
fn quick() -> Config {
    Config {
        progress_interval: Duration::from_millis(100),
        auto_compaction: AutoCompaction::Off,
        ..Config::default()
    }
}

pub async fn a25_a_watch_may_start_where_history_begins(database: &Database) {
    let server = database.server().await;
    server.put("a", "1").await;
    server.put("b", "1").await;
    server.delete("a").await;
    server.put("a", "2").await;
    server.etcd.compact(CompactionRequest { revision: 4, physical: true }).await.expect("compact");
    let check = async |server: &crate::support::Server| {
        let mut watch = server.watch();
        watch.create(WatchCreateRequest { prev_kv: true, ..watched("a", "", 4) }).await;
        let events = watch.events(2).await;
        assert_eq!(revisions(&events), [4, 5]);
        assert_eq!(events[0].kind, EventType::Delete as i32);
        assert_eq!(events[0].prev_kv.as_ref().map(|kv| kv.mod_revision), Some(2));
        watch.create(WatchCreateRequest { watch_id: 9, ..watched("a", "", 3) }).await;
        let answer = watch.next().await;
        assert_eq!((answer.watch_id, answer.canceled, answer.compact_revision), (9, true, 4));
        assert_eq!(answer.cancel_reason, "");
    };
    check(&server).await;
    server.stop().await;
    check(&database.server().await).await;
}

pub async fn a27_where_a_watch_starts(database: &Database) {
    let server = database.server().await;
    for number in 0..10 {
        server.put("k", &number.to_string()).await;
    }
    let check = async |server: &crate::support::Server, newest: i64| {
        let mut watch = server.watch();
        let created = watch.create(watched("k", "", 0)).await;
        assert_eq!(created.header.expect("a header").revision, newest);
        let mut first = server.watch();
        first.create(watched("k", "", 1)).await;
        assert_eq!(revisions(&first.events(newest as usize - 1).await), (2..=newest).collect::<Vec<_>>());
        let mut later = server.watch();
        later.create(watched("k", "", newest + 3)).await;
        later.send(WatchRequestKind::Progress(WatchProgressRequest {}));
        for number in 0..4 {
            server.put("k", &number.to_string()).await;
        }
        assert_eq!(revisions(&watch.events(4).await), (newest + 1..=newest + 4).collect::<Vec<_>>());
        let answer = later.next().await;
        assert!(revisions(&answer.events).first().is_none_or(|first| *first == newest + 3), "{answer:?}");
        assert!(answer.header.expect("a header").revision >= newest + 3);
    };
    check(&server, 11).await;
    server.stop().await;
    check(&database.server().await, 15).await;
}

pub async fn a28_ids_and_refusals(database: &Database) {
    let server = database.server().await;
    let mut watch = server.watch();
    assert_eq!(watch.create(watched("a", "", 0)).await.watch_id, 0);
    assert_eq!(watch.create(WatchCreateRequest { watch_id: 1, ..watched("a", "", 0) }).await.watch_id, 1);
    assert_eq!(watch.create(watched("a", "", 0)).await.watch_id, 2);
    let refusals = [
        (
            WatchCreateRequest { watch_id: 1, ..watched("a", "", 0) },
            "mvcc: duplicate watch ID provided on the WatchStream",
        ),
        (watched("b", "a", 0), "mvcc: watcher range is empty"),
        (watched("a", "", -1), "etcdserver: mvcc: required revision has been compacted"),
    ];
    for (request, reason) in refusals {
        let answer = watch.create(request).await;
        assert_eq!((answer.watch_id, answer.canceled, &*answer.cancel_reason), (-1, true, reason));
    }
    watch.send(WatchRequestKind::Cancel(WatchCancelRequest { watch_id: 77 }));
    watch.send(WatchRequestKind::Cancel(WatchCancelRequest { watch_id: 1 }));
    let answer = watch.next().await;
    assert_eq!((answer.watch_id, answer.canceled, answer.created), (1, true, false));
    server.put("a", "1").await;
    let told = [watch.next().await, watch.next().await];
    assert_eq!(told.map(|answer| (answer.watch_id, answer.events.len())), [(0, 1), (2, 1)]);
}

pub async fn a29_filters(database: &Database) {
    let server = database.server_with(quick()).await;
    let filtered = |filters: &[FilterType]| WatchCreateRequest {
        filters: filters.iter().map(|filter| *filter as i32).collect(),
        progress_notify: true,
        ..watched("a", "", 2)
    };
    server.put("a", "1").await;
    server.delete("a").await;
    server.put("a", "2").await;
    for (filters, expected) in [
        (&[FilterType::NoPut][..], &[3][..]),
        (&[FilterType::NoDelete], &[2, 4]),
        (&[FilterType::NoPut, FilterType::NoDelete], &[]),
    ] {
        let mut watch = server.watch();
        watch.create(filtered(filters)).await;
        let mut found = Vec::new();
        let told = loop {
            let answer = watch.next().await;
            if answer.events.is_empty() {
                break answer.header.expect("a header").revision;
            }
            found.extend(revisions(&answer.events));
        };
        assert_eq!((&found[..], told), (expected, 4));
    }
}

pub async fn a30_previous_versions(database: &Database) {
    let server = database.server().await;
    server.put("a", "1").await;
    server.put("a", "2").await;
    server.delete("a").await;
    server.put("a", "3").await;
    let check = async |server: &crate::support::Server| {
        let mut watch = server.watch();
        watch.create(WatchCreateRequest { prev_kv: true, ..watched("a", "", 1) }).await;
        let events = watch.events(4).await;
        let prev: Vec<_> =
            events.iter().map(|event| event.prev_kv.as_ref().map(|kv| &kv.value[..])).collect();
        assert_eq!(prev, [None, Some(&b"1"[..]), Some(b"2"), None]);
        let gone = events[2].kv.clone().expect("the key");
        assert_eq!((gone.mod_revision, gone.create_revision, gone.version), (4, 0, 0));
        let created =
            |event: &Event| event.kv.as_ref().is_some_and(|kv| kv.create_revision == kv.mod_revision);
        assert_eq!(events.iter().map(created).collect::<Vec<_>>(), [true, false, false, true]);
        watch.create(watched("a", "", 1)).await;
        assert!(watch.events(4).await.iter().all(|event| event.prev_kv.is_none()));
    };
    check(&server).await;
    server.stop().await;
    check(&database.server().await).await;
}

pub async fn a31_progress_of_the_idle(database: &Database) {
    let server = database.server_with(quick()).await;
    let mut watch = server.watch();
    watch.create(WatchCreateRequest { progress_notify: true, ..watched("a", "", 0) }).await;
    let mut told = 1;
    for _ in 0..5 {
        server.put("other", "1").await;
        loop {
            let answer = watch.next().await;
            assert!(answer.events.is_empty() && answer.watch_id == 0);
            let revision = answer.header.expect("a header").revision;
            assert!(revision >= told);
            if revision > told {
                told = revision;
                break;
            }
        }
    }
    let put = server.put("a", "1").await;
    loop {
        let answer = watch.next().await;
        if let [event] = &answer.events[..] {
            assert_eq!(event.kv.as_ref().map(|kv| kv.mod_revision), Some(put));
            break;
        }
        assert!(
            answer.header.expect("a header").revision < put,
            "progress before the event that it speaks for"
        );
    }
}

pub async fn a32_progress_that_was_asked_for(database: &Database) {
    let server = database.server().await;
    for number in 0..3000 {
        server.put("a", &number.to_string()).await;
    }
    let mut watch = server.watch();
    watch.create(watched("b", "", 0)).await;
    watch.send(WatchRequestKind::Progress(WatchProgressRequest {}));
    let answer = watch.next().await;
    assert_eq!((answer.watch_id, answer.header.expect("a header").revision), (-1, 3001));
    // One that has to catch up comes first.
    watch.create(watched("a", "", 1)).await;
    watch.send(WatchRequestKind::Progress(WatchProgressRequest {}));
    let mut events = 0;
    loop {
        let answer = watch.next().await;
        if answer.watch_id == -1 {
            break;
        }
        events += answer.events.len();
    }
    assert_eq!(events, 3000);
}

pub async fn a33_fragments(database: &Database) {
    let server = database.server().await;
    let large = "v".repeat(1 << 20);
    for number in 0..10 {
        server.put(&format!("k{number}"), &large).await;
    }
    let start = server.revision().await + 1;
    let mut watch = server.watch();
    let all = WatchCreateRequest { prev_kv: true, ..watched("k", "l", start) };
    watch.create(WatchCreateRequest { fragment: true, ..all.clone() }).await;
    watch.create(all).await;
    let range = DeleteRangeRequest { prev_kv: false, ..delete("k", "l") };
    assert_eq!(server.etcd.delete_range(range).await.expect("delete").deleted, 10);
    let (mut pieces, mut whole) = (Vec::new(), 0);
    while whole == 0 || pieces.last().is_none_or(|(_, fragment)| *fragment) {
        let answer = watch.next().await;
        match answer.watch_id {
            0 => pieces.push((answer.events.len(), answer.fragment)),
            _ => whole = answer.events.len(),
        }
    }
    assert_eq!(whole, 10);
    assert!(pieces.len() >= 5 && pieces.iter().all(|(events, _)| (1..=2).contains(events)), "{pieces:?}");
    assert_eq!(pieces.iter().map(|(events, _)| events).sum::<usize>(), 10);
    assert!(pieces.iter().rev().skip(1).all(|(_, fragment)| *fragment));
}

/// More events than memory has for them, while the client reads nothing.
pub async fn a34_a_watch_that_reads_nothing(database: &Database) {
    let server = database.server().await;
    let mut watch = server.watch();
    watch.create(watched("a", "b", 0)).await;
    let value = "v".repeat(200_000);
    let operations = |number: usize| (0..10).map(move |of| format!("a{}", (number + of) % 50));
    for number in 0..80 {
        let puts = operations(number).map(|key| op_put(&key, &value)).collect();
        server.etcd.txn(txn(vec![], puts, vec![])).await.expect("txn");
    }
    // The others have not waited for it.
    server.etcd.put(PutRequest { value: bytes("end"), ..put("a", "") }).await.expect("put");
    let events = watch.events(801).await;
    let expected: Vec<i64> = (0..80).flat_map(|number| [number + 2; 10]).chain([82]).collect();
    assert_eq!(revisions(&events), expected);
}
