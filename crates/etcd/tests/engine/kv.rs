//! Range, Put and DeleteRange.

use futures_util::future::join_all;
use futures_util::{StreamExt as _, TryStreamExt as _};
use rowplane_etcd::engine::Error;
use rowplane_etcd::wire::messages::{DeleteRangeRequest, PutRequest, RangeRequest, SortOrder, SortTarget};

use crate::support::{Database, bytes, delete, modified_at, op_put, op_range, put, range, txn};

pub async fn a1_revisions_begin_with_one_and_versions_count_puts(database: &Database) {
    let server = database.server().await;
    assert_eq!(server.revision().await, 1);
    for (revision, created, version) in [(2, 2, 1), (3, 2, 2)] {
        assert_eq!(server.put("a", "same").await, revision);
        let kv = server.get("a").await.expect("the key");
        assert_eq!((kv.create_revision, kv.mod_revision, kv.version), (created, revision, version));
    }
    assert_eq!(server.delete("a").await, (4, 1));
    assert_eq!(server.get("a").await, None);
    assert_eq!(server.put("a", "").await, 5);
    let kv = server.get("a").await.expect("the key");
    assert_eq!((kv.create_revision, kv.mod_revision, kv.version), (5, 5, 1));
}

pub async fn a2_what_changes_nothing_takes_no_revision(database: &Database) {
    let server = database.server().await;
    server.put("a", "1").await;
    assert_eq!(server.delete("b").await, (2, 0));
    let refused = txn(vec![modified_at("a", 1)], vec![op_put("a", "2")], vec![op_range("a", "")]);
    let answer = server.etcd.txn(refused).await.expect("txn");
    assert!(!answer.succeeded);
    assert_eq!(answer.header.expect("a header").revision, 2);
    assert_eq!(server.revision().await, 2);
}

pub async fn a12_requests_without_sense_are_refused(database: &Database) {
    let server = database.server().await;
    let etcd = &server.etcd;
    assert_eq!(etcd.range(range("", "")).await.err(), Some(Error::EmptyKey));
    assert_eq!(etcd.put(put("", "1")).await.err(), Some(Error::EmptyKey));
    assert_eq!(etcd.delete_range(delete("", "")).await.err(), Some(Error::EmptyKey));
    assert_eq!(etcd.put(put(&"k".repeat(2049), "1")).await.err(), Some(Error::TooLarge));
    let ignoring =
        |value, lease, key| PutRequest { ignore_value: value, ignore_lease: lease, ..put(key, "") };
    let with_value = PutRequest { value: bytes("1"), ..ignoring(true, false, "a") };
    assert_eq!(etcd.put(with_value).await.err(), Some(Error::ValueProvided));
    let with_lease = PutRequest { lease: 1, ..ignoring(false, true, "a") };
    assert_eq!(etcd.put(with_lease).await.err(), Some(Error::LeaseProvided));
    for ignored in [ignoring(true, false, "a"), ignoring(false, true, "a")] {
        assert_eq!(etcd.put(ignored).await.err(), Some(Error::KeyNotFound));
    }
    assert_eq!(etcd.put(PutRequest { lease: 7, ..put("a", "1") }).await.err(), Some(Error::LeaseNotFound));
    let unknown = RangeRequest { sort_order: 9, ..range("a", "") };
    assert_eq!(etcd.range(unknown).await.err(), Some(Error::InvalidSort));
    server.put("a", "kept").await;
    etcd.put(ignoring(true, false, "a")).await.expect("put");
    assert_eq!(server.get("a").await.map(|kv| (kv.value, kv.version)), Some((bytes("kept"), 2)));
}

pub async fn a13_ranges_are_in_the_order_of_bytes(database: &Database) {
    let server = database.server().await;
    let mut keys: Vec<&[u8]> = vec![
        b"\0",
        b"\0\0",
        b"\x01",
        b"a",
        b"a\0",
        b"a\x01",
        b"a-b",
        b"a/b",
        b"ab",
        b"b",
        b"c",
        b"\xc3\x28",
        b"\xff",
    ];
    for key in keys.iter().rev() {
        let request = PutRequest { key: key.to_vec().into(), ..PutRequest::default() };
        server.etcd.put(request).await.expect("put");
    }
    keys.sort();
    let found = async |key: &[u8], end: &[u8]| {
        let (key, range_end) = (key.to_vec().into(), end.to_vec().into());
        let request = RangeRequest { key, range_end, ..RangeRequest::default() };
        let answer = server.etcd.range(request).await.expect("range");
        answer.kvs.into_iter().map(|kv| kv.key.to_vec()).collect::<Vec<_>>()
    };
    let between = |from: &[u8], to: &[u8]| {
        keys.iter().filter(|key| **key >= from && **key < to).map(|key| key.to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(found(b"\0", b"\0").await, keys);
    assert_eq!(found(b"a", b"c").await, between(b"a", b"c"));
    assert_eq!(found(b"a", b"b").await, between(b"a", b"b"));
    assert_eq!(found(b"b", b"\0").await, between(b"b", b"\xff\xff"));
    assert_eq!(found(b"c", b"a").await, between(b"c", b"a"));
    assert_eq!(found(b"\xff", b"").await, [b"\xff"]);
    // What another start reads from the store is the same.
    server.stop().await;
    let server = database.server().await;
    let kvs = server.etcd.range(range("\0", "\0")).await.expect("range").kvs;
    assert_eq!(kvs.into_iter().map(|kv| kv.key.to_vec()).collect::<Vec<_>>(), keys);
    let all = DeleteRangeRequest { prev_kv: true, ..delete("\0", "\0") };
    let deleted = server.etcd.delete_range(all).await.expect("delete");
    assert_eq!(deleted.deleted, keys.len() as i64);
    assert_eq!(deleted.prev_kvs.into_iter().map(|kv| kv.key.to_vec()).collect::<Vec<_>>(), keys);
}

pub async fn a14_limits_counts_and_keys_only(database: &Database) {
    let server = database.server().await;
    for key in ["k1", "k2", "k3", "k4", "k5"] {
        server.put(key, "value").await;
    }
    let answer = async |request: RangeRequest| {
        let answer = server.etcd.range(request).await.expect("range");
        (answer.kvs.len(), answer.more, answer.count)
    };
    let limited = |limit| RangeRequest { limit, ..range("k", "l") };
    assert_eq!(answer(limited(2)).await, (2, true, 5));
    assert_eq!(answer(limited(5)).await, (5, false, 5));
    assert_eq!(answer(limited(-1)).await, (5, false, 5));
    assert_eq!(answer(RangeRequest { count_only: true, ..range("k", "l") }).await, (0, false, 5));
    let keys_only = RangeRequest { keys_only: true, ..range("k", "l") };
    let kvs = server.etcd.range(keys_only).await.expect("range").kvs;
    assert!(kvs.iter().all(|kv| kv.value.is_empty() && kv.version == 1));
}

pub async fn a15_sorts_and_filters(database: &Database) {
    let server = database.server().await;
    // Created b, a, c; changed a, c, b; versions c 3, a 2, b 2; values as they say.
    for (key, value) in [("b", "x"), ("a", "x"), ("c", "x"), ("c", "x"), ("a", "2"), ("c", "1"), ("b", "3")] {
        server.put(key, value).await;
    }
    let sorted = async |target: SortTarget, order: SortOrder, limit| {
        let (sort_target, sort_order) = (target as i32, order as i32);
        let request = RangeRequest { sort_target, sort_order, limit, ..range("a", "d") };
        let answer = server.etcd.range(request).await.expect("range");
        assert_eq!((answer.count, answer.more), (3, limit == 2));
        answer.kvs.iter().map(|kv| String::from_utf8_lossy(&kv.key).into_owned()).collect::<String>()
    };
    let cases = [
        (SortTarget::Key, "abc", "cba"),
        (SortTarget::Version, "abc", "cab"),
        (SortTarget::Create, "bac", "cab"),
        (SortTarget::Mod, "acb", "bca"),
        (SortTarget::Value, "cab", "bac"),
    ];
    for (target, ascending, descending) in cases {
        assert_eq!(sorted(target, SortOrder::None, 0).await, ascending, "{target:?}");
        assert_eq!(sorted(target, SortOrder::Ascend, 2).await, ascending[..2], "{target:?}");
        assert_eq!(sorted(target, SortOrder::Descend, 0).await, descending, "{target:?}");
    }
    let filtered = [
        (RangeRequest { min_mod_revision: 7, ..range("a", "d") }, 2),
        (RangeRequest { max_mod_revision: 6, ..range("a", "d") }, 1),
        (RangeRequest { min_create_revision: 3, max_create_revision: 3, ..range("a", "d") }, 1),
    ];
    for (request, expected) in filtered {
        let answer = server.etcd.range(request).await.expect("range");
        assert_eq!((answer.kvs.len(), answer.count, answer.more), (expected, 3, false));
    }
}

pub async fn a16_every_revision_can_be_read(database: &Database) {
    let server = database.server().await;
    for number in 0..20 {
        server.put(&format!("k{}", number % 4), &number.to_string()).await;
    }
    server.delete("k1").await;
    let check = async |etcd: &rowplane_etcd::engine::Etcd| {
        for revision in 1..=22_i64 {
            let request = RangeRequest { revision, ..range("k", "l") };
            let answer = etcd.range(request).await.expect("range");
            assert_eq!(answer.header.expect("a header").revision, 22);
            let last = |key: i64| (2..=revision.min(21)).rfind(|at| (at - 2) % 4 == key);
            let expected: Vec<_> = (0..4)
                .filter(|key| *key != 1 || revision < 22)
                .filter_map(|key| Some((key, last(key)?)))
                .collect();
            let found: Vec<_> = answer
                .kvs
                .iter()
                .map(|kv| (i64::from(kv.key[1] - b'0'), kv.mod_revision))
                .inspect(|(_, at)| assert!((2..=revision).contains(at)))
                .collect();
            assert_eq!(found, expected, "at {revision}");
            assert_eq!(answer.count as usize, found.len());
            let one = RangeRequest { revision, ..range("k2", "") };
            let one = etcd.range(one).await.expect("range").kvs.pop();
            assert_eq!(one.map(|kv| kv.mod_revision), last(2), "k2 at {revision}");
        }
        let future = RangeRequest { revision: 23, ..range("k", "l") };
        assert_eq!(etcd.range(future).await.err(), Some(Error::Future));
    };
    check(&server.etcd).await;
    // Nothing of this is in the memory of a server that starts anew.
    server.stop().await;
    let server = database.server().await;
    check(&server.etcd).await;
}

pub async fn a18_a_stream_is_one_state(database: &Database) {
    let server = database.server().await;
    let value = "v".repeat(1000);
    for batch in 0..10 {
        let puts = (0..100).map(|number| op_put(&format!("k{:04}", batch * 100 + number), &value));
        server.etcd.txn(txn(vec![], puts.collect(), vec![])).await.expect("txn");
    }
    let stream = server.etcd.range_stream(range("k", "l")).await.expect("stream");
    let mut stream = std::pin::pin!(stream);
    let first = stream.next().await.expect("a chunk").expect("no error").range_response.expect("an answer");
    assert_eq!((first.header, first.count, first.more), (None, 0, false));
    server.delete("k0999").await;
    server.put("k0998", "changed").await;
    let rest: Vec<_> = stream.try_collect().await.expect("chunks");
    let (last, others) = rest.split_last().expect("chunks");
    let last = last.range_response.clone().expect("an answer");
    assert_eq!((last.header.expect("a header").revision, last.count, last.more), (11, 1000, false));
    let mut kvs = first.kvs;
    for chunk in others {
        let chunk = chunk.range_response.clone().expect("an answer");
        assert_eq!((chunk.header, chunk.count, chunk.more), (None, 0, false));
        kvs.extend(chunk.kvs);
    }
    kvs.extend(last.kvs);
    let at = RangeRequest { revision: 11, ..range("k", "l") };
    assert_eq!(kvs, server.etcd.range(at).await.expect("range").kvs);

    let limited = RangeRequest { limit: 700, ..range("k", "l") };
    let chunks: Vec<_> =
        server.etcd.range_stream(limited).await.expect("stream").try_collect().await.expect("chunks");
    let sizes = chunks.iter().map(|chunk| chunk.range_response.as_ref().map_or(0, |chunk| chunk.kvs.len()));
    assert_eq!(sizes.sum::<usize>(), 700);
    assert!(chunks.last().and_then(|last| last.range_response.as_ref()).is_some_and(|last| last.more));
    let sorted = RangeRequest { sort_order: SortOrder::Descend as i32, ..range("k", "l") };
    assert_eq!(server.etcd.range_stream(sorted).await.err(), Some(Error::StreamSorted));
    let filtered = RangeRequest { min_mod_revision: 2, ..range("k", "l") };
    assert_eq!(server.etcd.range_stream(filtered).await.err(), Some(Error::StreamFiltered));
}

pub async fn a20_compare_and_swap_loses_nothing(database: &Database) {
    let server = database.server().await;
    server.put("counter", "0").await;
    let count = async || {
        let mut won = Vec::new();
        while won.len() < 5 {
            let seen = server.get("counter").await.expect("the key");
            let next = String::from_utf8_lossy(&seen.value).parse::<u64>().expect("a number") + 1;
            let swap = txn(
                vec![modified_at("counter", seen.mod_revision)],
                vec![op_put("counter", &next.to_string())],
                vec![],
            );
            let answer = server.etcd.txn(swap).await.expect("txn");
            if answer.succeeded {
                won.push(answer.header.expect("a header").revision);
            }
        }
        won
    };
    let mut revisions: Vec<i64> = join_all((0..64).map(|_| count())).await.concat();
    revisions.sort_unstable();
    assert_eq!(revisions, (3..323).collect::<Vec<_>>());
    let kv = server.get("counter").await.expect("the key");
    assert_eq!((&kv.value[..], kv.version), (&b"320"[..], 321));
}
