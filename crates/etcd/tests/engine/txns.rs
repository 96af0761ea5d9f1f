//! Txn.

use rowplane_etcd::engine::Error;
use rowplane_etcd::wire::messages::{
    Compare, CompareResult, PutRequest, RangeRequest, RequestOpKind, ResponseOpKind, TargetUnion, TxnRequest,
    TxnResponse,
};

use crate::support::{
    Database, Server, bytes, compare, modified_at, op, op_delete, op_put, op_range, op_txn, put, range, txn,
    watched,
};

const ALL: [CompareResult; 4] =
    [CompareResult::Equal, CompareResult::Greater, CompareResult::Less, CompareResult::NotEqual];

async fn run(server: &Server, request: TxnRequest) -> TxnResponse {
    server.etcd.txn(request).await.expect("txn")
}

async fn refused(server: &Server, request: TxnRequest) -> Option<Error> {
    server.etcd.txn(request).await.err()
}

fn revision(answer: &TxnResponse) -> i64 {
    answer.header.as_ref().expect("a header").revision
}

pub async fn a3_a_transaction_has_one_revision(database: &Database) {
    let server = database.server().await;
    server.put("gone", "1").await;
    let mut watch = server.watch();
    watch.create(watched("\0", "\0", 0)).await;
    let operations = vec![op_put("a", "1"), op_put("b", "2"), op_delete("gone", ""), op_put("c", "3")];
    assert_eq!(revision(&run(&server, txn(vec![], operations, vec![])).await), 3);
    let kvs = server.etcd.range(range("a", "d")).await.expect("range").kvs;
    assert!(kvs.iter().all(|kv| (kv.create_revision, kv.mod_revision, kv.version) == (3, 3, 1)), "{kvs:?}");
    let answer = watch.next().await;
    let keys: Vec<_> = answer.events.iter().filter_map(|event| event.kv.clone()).collect();
    assert_eq!(keys.iter().map(|kv| &kv.key[..]).collect::<Vec<_>>(), [&b"a"[..], b"b", b"gone", b"c"]);
    assert!(keys.iter().all(|kv| kv.mod_revision == 3));
    assert_eq!(server.put("d", "4").await, 4);
    assert_eq!(revision(&run(&server, txn(vec![], vec![op_delete("\0", "\0")], vec![])).await), 5);
    assert_eq!(server.put("d", "4").await, 6);
    // The numbers are those of the rows, too.
    let before =
        server.etcd.range(RangeRequest { revision: 4, ..range("\0", "\0") }).await.expect("range").kvs;
    server.stop().await;
    let server = database.server().await;
    let after =
        server.etcd.range(RangeRequest { revision: 4, ..range("\0", "\0") }).await.expect("range").kvs;
    assert_eq!((after.len(), &after), (4, &before));
    assert_eq!(server.put("e", "5").await, 7);
}

pub async fn a4_operations_are_limited(database: &Database) {
    let server = database.server().await;
    let puts = |count: usize| (0..count).map(|number| op_put(&number.to_string(), "")).collect::<Vec<_>>();
    let reads = |count: usize| (0..count).map(|_| op_range("a", "")).collect::<Vec<_>>();
    assert_eq!(revision(&run(&server, txn(vec![], puts(128), vec![])).await), 2);
    assert_eq!(refused(&server, txn(vec![], puts(129), vec![])).await, Some(Error::TooManyOperations));
    let compares = (0..129).map(|_| modified_at("a", 0)).collect();
    assert_eq!(refused(&server, txn(compares, vec![], vec![])).await, Some(Error::TooManyOperations));
    let nested = |outer: usize, inner| {
        let mut operations = reads(outer - 1);
        operations.push(op_txn(txn(vec![], vec![], reads(inner))));
        txn(vec![], operations, vec![])
    };
    run(&server, nested(100, 28)).await;
    assert_eq!(refused(&server, nested(100, 29)).await, Some(Error::TooManyOperations));
}

pub async fn a5_no_key_is_written_twice(database: &Database) {
    let server = database.server().await;
    let nested = |then: Vec<_>, otherwise: Vec<_>| op_txn(txn(vec![], then, otherwise));
    let twice = [
        vec![op_put("a", "1"), op_put("a", "2")],
        vec![op_put("b", "1"), op_delete("a", "c")],
        vec![op_delete("a", "c"), op_put("b", "1")],
        vec![op_put("a", "1"), nested(vec![], vec![op_put("a", "2")])],
        vec![nested(vec![op_delete("a", "\0")], vec![]), op_put("a", "2")],
        vec![nested(vec![op_put("a", "1")], vec![]), nested(vec![op_put("a", "1")], vec![])],
        vec![nested(vec![op_put("a", "1")], vec![]), nested(vec![op_delete("a", "")], vec![])],
    ];
    for operations in twice {
        let request = txn(vec![], vec![], operations);
        assert_eq!(refused(&server, request.clone()).await, Some(Error::DuplicateKey), "{request:?}");
    }
    let once = [
        vec![nested(vec![op_put("a", "1")], vec![op_put("a", "2")])],
        vec![op_delete("a", "c"), op_delete("b", "d"), op_delete("b", "")],
        vec![op_put("a", "1"), op_range("a", ""), op_delete("a\0", "c")],
    ];
    for operations in once {
        run(&server, txn(vec![], operations, vec![])).await;
    }
}

pub async fn a6_compares_hold_as_in_etcd(database: &Database) {
    let server = database.server().await;
    let lease = server.etcd.lease_grant(Default::default()).await.expect("grant").id;
    server.put("other", "").await;
    server.put("key", "m").await;
    server.etcd.put(PutRequest { lease, ..put("key", "m") }).await.expect("put");
    let targets: [(&dyn Fn(i64) -> TargetUnion, i64); 4] = [
        (&TargetUnion::Version, 2),
        (&TargetUnion::CreateRevision, 3),
        (&TargetUnion::ModRevision, 4),
        (&TargetUnion::Lease, lease),
    ];
    let expected = |result, ordering: std::cmp::Ordering| match result {
        CompareResult::Equal => ordering.is_eq(),
        CompareResult::NotEqual => ordering.is_ne(),
        CompareResult::Greater => ordering.is_gt(),
        CompareResult::Less => ordering.is_lt(),
    };
    for result in ALL {
        for (target, has) in targets {
            for (key, has) in [("key", has), ("missing", 0)] {
                for wanted in [has - 1, has, has + 1] {
                    let request = txn(vec![compare(key, target(wanted), result)], vec![], vec![]);
                    let holds = run(&server, request).await.succeeded;
                    assert_eq!(holds, expected(result, has.cmp(&wanted)), "{key} {result:?} {wanted}");
                }
            }
        }
        for wanted in ["a", "m", "z"] {
            let of = |key| txn(vec![compare(key, TargetUnion::Value(bytes(wanted)), result)], vec![], vec![]);
            assert_eq!(run(&server, of("key")).await.succeeded, expected(result, "m".cmp(wanted)));
            assert!(!run(&server, of("missing")).await.succeeded, "{result:?}");
        }
    }
}

pub async fn a7_a_range_is_compared_as_a_whole(database: &Database) {
    let server = database.server().await;
    server.put("a", "1").await;
    server.put("b", "1").await;
    server.put("b", "1").await;
    let of_range = |target, result| Compare { range_end: bytes("c"), ..compare("a", target, result) };
    let holds = async |compare| run(&server, txn(vec![compare], vec![], vec![])).await.succeeded;
    assert!(!holds(of_range(TargetUnion::Version(1), CompareResult::Equal)).await);
    assert!(holds(of_range(TargetUnion::Version(0), CompareResult::Greater)).await);
    let empty = Compare {
        range_end: bytes("z"),
        ..compare("x", TargetUnion::CreateRevision(0), CompareResult::Equal)
    };
    assert!(holds(empty.clone()).await);
    let answer = run(&server, txn(vec![empty.clone()], vec![op_put("y", "1")], vec![])).await;
    assert!(answer.succeeded);
    assert!(!holds(empty).await);
}

pub async fn a8_reads_see_the_writes_before_them(database: &Database) {
    let server = database.server().await;
    server.put("a", "old").await;
    let operations = vec![op_range("a", ""), op_put("a", "new"), op_range("a", ""), op_range("a", "b")];
    let answer = run(&server, txn(vec![], operations, vec![])).await;
    assert_eq!(revision(&answer), 3);
    let read = |place: usize| match &answer.responses[place].response {
        Some(ResponseOpKind::Range(range)) => {
            let kv = range.kvs.first().expect("the key");
            (range.header.as_ref().expect("a header").revision, kv.value.clone(), kv.mod_revision)
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(read(0), (2, bytes("old"), 2));
    assert_eq!(read(2), (3, bytes("new"), 3));
    assert_eq!(read(3), read(2));
}

pub async fn a9_nested_compares_see_the_state_before(database: &Database) {
    let server = database.server().await;
    server.put("a", "old").await;
    let is_old = compare("a", TargetUnion::Value(bytes("old")), CompareResult::Equal);
    let nested = txn(vec![is_old], vec![op_put("was", "old")], vec![op_put("was", "new")]);
    run(&server, txn(vec![], vec![op_put("a", "new"), op_txn(nested)], vec![])).await;
    assert_eq!(server.get("was").await.map(|kv| kv.value), Some(bytes("old")));
}

pub async fn a10_a_path_is_checked_before_it_is_taken(database: &Database) {
    let server = database.server().await;
    server.put("a", "1").await;
    let future = op(RequestOpKind::Range(RangeRequest { revision: 7, ..range("a", "") }));
    let taken = txn(vec![], vec![op_put("b", "1"), future.clone()], vec![]);
    assert_eq!(refused(&server, taken).await, Some(Error::Future));
    let unleased = op(RequestOpKind::Put(PutRequest { lease: 9, ..put("c", "1") }));
    let taken = txn(vec![], vec![op_put("b", "1"), op_txn(txn(vec![], vec![unleased], vec![]))], vec![]);
    assert_eq!(refused(&server, taken).await, Some(Error::LeaseNotFound));
    assert_eq!((server.get("b").await, server.revision().await), (None, 2));
    run(&server, txn(vec![], vec![op_put("b", "1")], vec![future])).await;
    assert!(server.get("b").await.is_some());
    // What is read at an older revision is read there.
    let past = op(RequestOpKind::Range(RangeRequest { revision: 2, ..range("a", "z") }));
    let answer = run(&server, txn(vec![], vec![op_put("d", "1"), past], vec![])).await;
    match &answer.responses[1].response {
        Some(ResponseOpKind::Range(range)) => assert_eq!(range.count, 1),
        other => panic!("{other:?}"),
    }
}

pub async fn a11_inner_headers_have_the_revision_only(database: &Database) {
    let server = database.server().await;
    let nested = txn(vec![], vec![op_put("b", "1")], vec![]);
    let answer = run(&server, txn(vec![], vec![op_put("a", "1"), op_txn(nested)], vec![])).await;
    let header = answer.header.expect("a header");
    assert!(header.cluster_id != 0 && header.member_id != 0 && header.raft_term >= 2, "{header:?}");
    for response in &answer.responses {
        let inner = match &response.response {
            Some(ResponseOpKind::Put(put)) => put.header.as_ref(),
            Some(ResponseOpKind::Txn(txn)) => txn.header.as_ref(),
            other => panic!("{other:?}"),
        };
        let inner = inner.expect("a header");
        assert_eq!((inner.cluster_id, inner.member_id, inner.revision, inner.raft_term), (0, 0, 2, 0));
    }
    server.stop().await;
    let again = database.server().await.etcd.newest_header();
    assert_eq!((again.cluster_id, again.revision), (header.cluster_id, 2));
}
