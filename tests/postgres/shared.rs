//! Stores of one process in one database: each has its schema, and they share connections.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use rowplane::revision::Revision;
use rowplane::schema::names::GroupResource;
use rowplane::storage::postgres::{Database, Databases, Postgres, Sizes};
use rowplane::storage::{
    Backend, Clock, Error, HighWaterMark, Key, OpenError, Reads as _, ResourceId, Scan, Sighting, Upkeep as _,
};
use sqlx::AssertSqlSafe;

use crate::support::client::PATIENCE;
use crate::support::object::{create, feed, give_up, list, names, pass, resource, update};
use crate::support::postgres::{self, Schema};

/// The places of the pool in these tests, and the connection that listens.
const PLACES: Sizes = Sizes { calls: 6, scans: 2, repairs: 1 };
const CONNECTIONS: i64 = 6 + 2 + 1 + 1;
/// The most calls of one of two stores.
const SHARE: i64 = 3;

/// Two stores that share a database. Their schemas are made when they are opened.
struct Shared {
    schema: Schema,
    database: Database,
    one: Arc<dyn Backend>,
    two: Arc<dyn Backend>,
}

impl Shared {
    async fn open() -> Self {
        let schema = Schema::create().await;
        // PostgreSQL fails a GRANT that meets another test's on the same database ("tuple concurrently updated").
        let grant = format!(
            "DO $$ BEGIN FOR attempt IN 1..100 LOOP BEGIN GRANT CREATE ON DATABASE postgres TO {}; RETURN; \
             EXCEPTION WHEN internal_error THEN PERFORM pg_sleep(0.01); END; END LOOP; END $$",
            schema.name()
        );
        postgres::execute(&postgres::cluster(), &grant).await;
        let database = Database::with_places(schema.url(), PLACES).expect("an address");
        let names = ["one", "two"].map(|part| name(&schema, part));
        let [one, two] = [0, 1].map(|store| Postgres::open_in(&database, Some(&names[store])));
        let (one, two) = tokio::join!(one, two);
        let (one, two) = (Arc::new(one.expect("open")), Arc::new(two.expect("open")));
        Self { schema, database, one, two }
    }

    /// A number that a statement gives to the administrator.
    async fn number(&self, query: &str) -> i64 {
        let mut connection = postgres::connect(&postgres::cluster()).await;
        let query = query.replace("ROLE", self.schema.name());
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut connection).await.expect("query")
    }

    async fn until(&self, query: &str, number: i64) {
        let reached = async {
            while self.number(query).await != number {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("never {number}: {query}"));
    }
}

/// Names that have to be quoted.
fn name(schema: &Schema, part: &str) -> String {
    format!("{}-\"{part}", schema.name())
}

const ALL: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE usename = 'ROLE'";
const WAITING: &str =
    "SELECT COUNT(*) FROM pg_stat_activity WHERE usename = 'ROLE' AND wait_event_type = 'Lock'";
const LISTENING: &str =
    "SELECT COUNT(*) FROM pg_stat_activity WHERE usename = 'ROLE' AND query LIKE '%LISTEN %'";

async fn try_to_write(backend: &dyn Backend, resource: ResourceId, name: &str) -> Result<(), Error> {
    backend.commit(&[create(&Key::new(resource, "ns", name), 1)], Revision(0)).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_store_has_its_own_revisions_changes_and_compaction() {
    let shared = Shared::open().await;
    let (one, two) = (&*shared.one, &*shared.two);
    // The numbers are given in other orders.
    resource(two, "others").await;
    let (in_one, in_two) = (resource(one, "things").await, resource(two, "things").await);
    assert_ne!(in_one, in_two);
    let begun = (one.clock().await.expect("clock").revision, two.clock().await.expect("clock").revision);
    let mut last = begun.0;
    for round in 0..5 {
        let key = Key::new(in_one, "ns", "thing");
        last = match round {
            0 => pass(one, create(&key, 0)).await,
            _ => pass(one, update(&key, last, round)).await,
        };
    }
    let written = pass(two, create(&Key::new(in_two, "ns", "two's"), 1)).await;
    assert_eq!((last.0, written.0), (begun.0.0 + 5, begun.1.0 + 1), "two clocks");
    assert_eq!(names(one, &Scan::all(in_one), last).await, ["ns/thing"]);
    assert_eq!(names(two, &Scan::all(in_two), written).await, ["ns/two's"]);
    assert_eq!((feed(one, begun.0, None, 10).await.len(), feed(two, begun.1, None, 10).await.len()), (5, 1));

    let (before, untouched) = (Revision(last.0 - 1), two.clock().await.expect("clock"));
    assert_eq!(give_up(one, last).await, Clock { revision: last, compacted: last, lag: 0 });
    assert!(one.sweep(100).await.expect("sweep").changes > 0);
    let gone = list(one, &Scan::all(in_one), before).await.expect_err("compacted");
    assert!(matches!(gone, Error::Compacted { oldest } if oldest == last), "{gone}");
    assert_eq!(two.clock().await.expect("clock"), untouched);
    assert_eq!(feed(two, begun.1, None, 10).await.len(), 1, "the other one has its history");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_finds_the_same_store_and_its_writes_are_announced_there_alone() {
    let shared = Shared::open().await;
    shared.until(LISTENING, 1).await;
    let own = Database::new(shared.schema.url()).expect("an address");
    let again = Postgres::open_in(&own, Some(&name(&shared.schema, "two"))).await.expect("open");
    let things = resource(&*shared.two, "things").await;
    assert_eq!(resource(&again, "things").await, things);
    let version = pass(&again, create(&Key::new(things, "ns", "a"), 1)).await;
    while shared.two.clock().await.expect("clock").revision < version {
        shared.two.hint().await;
    }
    assert_eq!(names(&*shared.two, &Scan::all(things), version).await, ["ns/a"]);
    again.close().await;
    // Two processes have listened, each on one connection.
    shared.until(LISTENING, 1).await;
    let channels = "SELECT COUNT(*) FROM pg_namespace WHERE nspname LIKE 'ROLE-%'";
    assert_eq!(shared.number(channels).await, 2, "a schema for each");
}

/// The way in which a process opens its clusters: the schema is part of the URL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_whose_urls_differ_in_the_schema_alone_share_connections() {
    let shared = Shared::open().await;
    let Shared { schema, one, two, .. } = &shared;
    let url = |part: &str| format!("{}&schema={}", schema.url(), name(schema, part).replace('"', "%22"));
    let databases = Databases::default();
    let again = databases.open(url("one"), None).await.expect("open");
    let other = databases.open(schema.url(), Some(&name(schema, "other"))).await.expect("open");
    let elsewhere = databases.open(url("two") + "&connect_timeout=9", None).await.expect("open");
    let alone = Postgres::open(url("two")).await.expect("open");
    // That of the shared two, that of the first two here, and those of the last ones.
    shared.until(LISTENING, 4).await;
    let things = resource(&**one, "things").await;
    assert_eq!(resource(&other, "others").await, things, "a schema of its own, whose first resource it is");
    let version = pass(&again, create(&Key::new(things, "ns", "a"), 1)).await;
    assert_eq!(names(&**one, &Scan::all(things), version).await, ["ns/a"]);
    let in_two = resource(&**two, "things").await;
    assert_eq!(resource(&elsewhere, "things").await, in_two);
    assert_eq!(resource(&alone, "things").await, in_two);
    // What reads a store from outside finds the schema, too.
    let kept = GroupResource::new("example.com", "things");
    let found = Postgres::live_objects(&url("one").into(), &kept).await.expect("the objects");
    assert_eq!(found.iter().map(|object| object.revision).collect::<Vec<_>>(), [version]);
    let found = Postgres::live_objects(&url("other").into(), &kept).await.expect("the objects");
    assert!(found.is_empty());
    drop((again, other));
    shared.until(LISTENING, 3).await;
}

/// The calls of one store all wait for a lock. The other one goes on, also when it lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_floods_the_database_leaves_the_other_its_share() {
    let shared = Shared::open().await;
    let (in_one, in_two) = (resource(&*shared.one, "things").await, resource(&*shared.two, "things").await);
    let mut other = postgres::connect(&postgres::cluster()).await;
    let mut lock = sqlx::Connection::begin(&mut other).await.expect("begin");
    let clock = name(&shared.schema, "one").replace('"', "\"\"");
    let clock = format!("SELECT FROM \"{clock}\".clock FOR UPDATE");
    sqlx::query(AssertSqlSafe(clock)).execute(&mut *lock).await.expect("the lock");
    let flood = tokio::spawn({
        let one = shared.one.clone();
        async move { join_all((0..20).map(|_| one.advance_clock(Revision(1000)))).await }
    });
    shared.until(WAITING, SHARE).await;
    // A list of the first store whose reader does nothing.
    let stalled = shared.one.scan(Scan::all(in_one), Revision(1)).await.expect("a snapshot");
    for number in 0..20 {
        try_to_write(&*shared.two, in_two, &format!("{number}")).await.expect("its share is free");
    }
    let newest = shared.two.clock().await.expect("clock").revision;
    let all = Scan::all(in_two);
    let (first, second) = tokio::join!(names(&*shared.two, &all, newest), shared.two.count(&all, newest));
    assert_eq!((first.len(), second.expect("count")), (20, 20));
    assert_eq!(shared.number(WAITING).await, SHARE);
    assert!(shared.number(ALL).await <= CONNECTIONS);
    drop(stalled);
    lock.rollback().await.expect("rollback");
    for advanced in flood.await.expect("the flood") {
        let advanced = advanced.expect("all have their turn");
        assert!(advanced.revision >= Revision(1000));
    }
}

/// More stores than places: each write needs a session that another store has used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_stores_have_no_more_connections_than_places() {
    const STORES: usize = 12;
    let shared = Shared::open().await;
    let names: Vec<_> = (0..STORES).map(|store| name(&shared.schema, &store.to_string())).collect();
    let stores = join_all(names.iter().map(|name| Postgres::open_in(&shared.database, Some(name)))).await;
    let stores: Vec<_> = stores.into_iter().map(|store| store.expect("open")).collect();
    let resources = join_all(stores.iter().map(|store| resource(store, "things"))).await;
    for round in 0..5_u64 {
        let writes = stores.iter().zip(&resources).map(async |(store, resource)| {
            let written = pass(store, create(&Key::new(*resource, "ns", &round.to_string()), round)).await;
            assert_eq!(store.clock().await.expect("clock").revision, written);
            written
        });
        let written = join_all(writes).await;
        assert!(
            written.iter().all(|revision| *revision == written[0]),
            "no store has seen another one's write"
        );
        assert!(shared.number(ALL).await <= CONNECTIONS);
    }
    for (store, resource) in stores.iter().zip(&resources) {
        let newest = store.clock().await.expect("clock").revision;
        assert_eq!(store.count(&Scan::all(*resource), newest).await.expect("count"), 5);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_ends_leaves_the_others_and_the_last_one_leaves_nothing() {
    let shared = Shared::open().await;
    let in_two = resource(&*shared.two, "things").await;
    let Shared { schema, database, one, two } = shared;
    one.close().await;
    let error = one.clock().await.expect_err("closed");
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    try_to_write(&*two, in_two, "one").await.expect("it goes on");
    // One that is dropped without a word.
    drop(one);
    let again = Postgres::open_in(&database, Some(&name(&schema, "one"))).await.expect("open");
    drop(again);
    try_to_write(&*two, in_two, "two").await.expect("it goes on");
    two.close().await;
    let shared = Shared { schema, database, one: two.clone(), two };
    shared.until(ALL, 0).await;
    let reopened =
        Postgres::open_in(&shared.database, Some(&name(&shared.schema, "two"))).await.expect("open");
    try_to_write(&reopened, in_two, "three").await.expect("the database can be used again");
}

/// The mark of one store names another cluster. The sessions that it has used are not lost to the other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_whose_database_is_another_one_fails_alone() {
    let shared = Shared::open().await;
    let (in_one, in_two) = (resource(&*shared.one, "things").await, resource(&*shared.two, "things").await);
    let elsewhere =
        Sighting { revision: Revision(1), timeline: 1, flushed: 0, system: Some(1), identity: Some(1) };
    let mark = Arc::new(HighWaterMark::default());
    mark.sight(elsewhere);
    match shared.one.hold_to(&mark).await {
        Err(OpenError::Refused { reason, .. }) => assert!(reason.contains("--datastore-accept="), "{reason}"),
        other => panic!("{other:?}"),
    }
    shared.two.hold_to(&Arc::new(HighWaterMark::default())).await.expect("it knows nothing of that");
    for number in 0..3 {
        let error = try_to_write(&*shared.one, in_one, "lost").await.expect_err("another cluster");
        assert!(error.to_string().contains("--datastore-accept="), "{error}");
        try_to_write(&*shared.two, in_two, &format!("{number}")).await.expect("it goes on");
    }
    assert!(shared.number(ALL).await <= CONNECTIONS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_cannot_be_is_refused() {
    let schema = Schema::create().await;
    let database = Database::new(schema.url()).expect("an address");
    let refused = async |name: &str| match Postgres::open_in(&database, Some(name)).await.err() {
        Some(OpenError::Refused { reason, .. }) => reason,
        other => panic!("{name:?}: {other:?}"),
    };
    for name in ["", "pg_mine", "a\0b", &"long".repeat(16)] {
        assert!(refused(name).await.contains("cannot be the name of a schema"), "{name:?}");
    }
    // The role may not make schemas, and another role's are not open to it.
    let reason = refused("somebody").await;
    assert!(reason.contains("may not make the schema \"somebody\""), "{reason}");
    let foreign = Schema::create().await;
    let reason = refused(foreign.name()).await;
    assert!(reason.contains("may not use the schema"), "{reason}");
    Postgres::open_in(&database, Some(schema.name())).await.expect("its own").close().await;
}
