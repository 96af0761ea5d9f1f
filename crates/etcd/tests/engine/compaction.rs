//! Compact, and what is told of the whole history.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use rowplane_etcd::engine::{AutoCompaction, Config, Error};
use rowplane_etcd::wire::messages::{CompactionRequest, HashKvRequest, RangeRequest};
use rowplane_objects::revision::Revision;

use crate::support::{Database, Server, op_delete, op_put, range, txn, watched};

async fn compact(server: &Server, revision: i64) -> Result<i64, Error> {
    let answer = server.etcd.compact(CompactionRequest { revision, physical: true }).await?;
    Ok(answer.header.expect("a header").revision)
}

pub async fn a24_what_is_compacted_is_gone(database: &Database) {
    let server = database.server().await;
    for number in 0..10 {
        server.put("k", &number.to_string()).await;
    }
    assert_eq!(compact(&server, 6).await, Ok(11));
    assert_eq!(compact(&server, 6).await, Err(Error::Compacted));
    assert_eq!(compact(&server, 12).await, Err(Error::Future));
    let check = async |server: &Server| {
        let at = async |revision| {
            let answer = server.etcd.range(RangeRequest { revision, ..range("k", "") }).await?;
            Ok(answer.kvs.first().map(|kv| kv.mod_revision))
        };
        assert_eq!(at(5).await, Err(Error::Compacted));
        for revision in 6..=11 {
            assert_eq!(at(revision).await, Ok(Some(revision)));
        }
        assert_eq!(compact(server, 5).await, Err(Error::Compacted));
    };
    check(&server).await;
    server.stop().await;
    check(&database.server().await).await;
}

pub async fn a26_readers_are_not_disturbed(database: &Database) {
    let server = database.server().await;
    let value = "v".repeat(10_000);
    for number in 0..50 {
        server.put(&format!("k{number:02}"), &value).await;
    }
    let mut watch = server.watch();
    watch.create(watched("k", "l", 2)).await;
    let stream = server.etcd.range_stream(range("k", "l")).await.expect("stream");
    let mut stream = std::pin::pin!(stream);
    let first = stream.next().await.expect("a chunk").expect("no error").range_response.expect("an answer");
    server.etcd.delete_range(crate::support::delete("k", "l")).await.expect("delete");
    compact(&server, 52).await.expect("compact");
    let rest: Vec<_> = stream.try_collect().await.expect("chunks");
    let rest = rest.iter().filter_map(|chunk| chunk.range_response.as_ref()).map(|chunk| chunk.kvs.len());
    assert_eq!(first.kvs.len() + rest.sum::<usize>(), 50);
    assert_eq!(watch.events(100).await.len(), 100);
}

pub async fn old_rows_are_swept(database: &Database) {
    let server = database.server().await;
    for number in 0..100 {
        let puts = (0..3).map(|key| op_put(&format!("k{key}"), &number.to_string())).collect();
        server.etcd.txn(txn(vec![], puts, vec![])).await.expect("txn");
    }
    compact(&server, 100).await.expect("compact");
    let oldest = server.backend.oldest_change().await.expect("a change").expect("a change");
    let first = server.backend.sequence_of(99).await.expect("a place");
    assert_eq!(oldest, Revision(first.0 + 1), "the changes of revision 100 are the first");
    let at = server.etcd.range(RangeRequest { revision: 100, ..range("k", "l") }).await.expect("range");
    assert!(at.kvs.iter().all(|kv| kv.mod_revision == 100 && kv.version == 99));
}

pub async fn the_oldest_go_by_themselves(database: &Database) {
    let auto_compaction = AutoCompaction::Periodic(Duration::from_millis(200));
    let server = database.server_with(Config { auto_compaction, ..Config::default() }).await;
    for number in 0..10 {
        server.put("k", &number.to_string()).await;
    }
    loop {
        let request = RangeRequest { revision: 10, ..range("k", "") };
        match server.etcd.range(request).await {
            Err(Error::Compacted) => break,
            answer => assert_eq!(answer.expect("range").kvs.len(), 1),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(server.get("k").await.map(|kv| kv.version), Some(10));
}

pub async fn hashes_agree(database: &Database) {
    let server = database.server().await;
    server.put("a", "1").await;
    server.etcd.txn(txn(vec![], vec![op_put("b", "1"), op_put("c", "2")], vec![])).await.expect("txn");
    server.etcd.txn(txn(vec![], vec![op_delete("a", "c"), op_put("d", "2")], vec![])).await.expect("txn");
    server.put("a", "2").await;
    let hashes = async |server: &Server, from: i64| {
        let mut hashes = Vec::new();
        for revision in from..=5 {
            let answer = server.etcd.hash_kv(HashKvRequest { revision }).await.expect("hash");
            assert_eq!(answer.hash_revision, revision);
            hashes.push(answer.hash);
        }
        hashes
    };
    let before = hashes(&server, 1).await;
    compact(&server, 3).await.expect("compact");
    let compacted = hashes(&server, 4).await;
    server.stop().await;
    let server = database.server().await;
    assert_eq!(hashes(&server, 4).await, compacted);
    // Those of an etcd 3.7.3 to which the same was done.
    assert_eq!(before, ETCD, "{before:?}");
    assert_eq!(compacted, ETCD_COMPACTED, "{compacted:?}");
}

/// The hashes of etcd at the revisions from 1 to 5, and at 4 and 5 after compaction to 3.
const ETCD: [u32; 5] = [1_084_519_789, 2_587_454_935, 683_323_668, 2_302_355_863, 2_219_761_410];
const ETCD_COMPACTED: [u32; 2] = [3_969_795_617, 1_789_661_899];

pub async fn a_snapshot_has_all_rows(database: &Database) {
    let server = database.server().await;
    server.put("a", "1").await;
    server.etcd.txn(txn(vec![], vec![op_put("c", "1"), op_put("b", "2")], vec![])).await.expect("txn");
    server.delete("a").await;
    let snapshot = server.etcd.snapshot().await.expect("snapshot");
    let rows: Vec<_> = snapshot.rows().collect();
    assert_eq!((snapshot.revision, rows.len()), (4, 3));
    let key = |revision: u64, place: u64| [&revision.to_be_bytes()[..], b"_", &place.to_be_bytes()].concat();
    assert_eq!(rows[0].0, key(3, 0));
    assert_eq!(rows[1].0, key(3, 1));
    assert_eq!(rows[2].0, [&key(4, 0)[..], b"t"].concat());
    assert!(rows[0].1.starts_with(&[10, 1, b'c']));
}
