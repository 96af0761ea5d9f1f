//! Several servers on one PostgreSQL, and a PostgreSQL that is restarted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use rowplane::revision::Revision;
use rowplane::storage::{Backend, Key, OpenError, ResourceId, Scan, Store, Written};
use sqlx::Connection;
use tokio::sync::mpsc;

use crate::store;
use crate::support::database::Database;
use crate::support::object::{create, feed, names, pass, resource};
use crate::support::postgres;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_share_one_clock() {
    let database = Database::postgres().await;
    let (one, two) = (database.open().await, database.open().await);
    let resource = resource(&*one, "things").await;
    let start = one.clock().await.expect("clock").revision;
    let load = |backend: &Arc<dyn Backend>, tag: &'static str| {
        let store = store::start(backend);
        (0..40)
            .map(|writer| tokio::spawn(create_many(store.clone(), resource, format!("{tag}-{writer}"))))
            .collect::<Vec<_>>()
    };
    let mut tasks = load(&one, "one");
    tasks.extend(load(&two, "two"));
    let mut revisions = Vec::new();
    for task in tasks {
        revisions.extend(task.await.expect("a writer"));
    }
    revisions.sort_unstable();
    let expected: Vec<_> = (1..=800).map(|n| Revision(start.0 + n)).collect();
    assert_eq!(revisions, expected);
    for backend in [&one, &two] {
        let rows = feed(&**backend, start, Some(resource), 100).await;
        let told: Vec<_> = rows.iter().map(|row| row.revision).collect();
        assert_eq!(told, expected, "each sees all of the other");
        assert_eq!(backend.clock().await.expect("clock").revision, *expected.last().expect("some"));
    }
}

async fn create_many(store: Store, resource: ResourceId, name: String) -> Vec<Revision> {
    let mut revisions = Vec::new();
    for n in 0..10 {
        let written = store.write(create(&Key::new(resource, "ns", &format!("{name}-{n}")), n)).await;
        match written.expect("write") {
            Written::Committed { revision, .. } => revisions.push(revision),
            conflict => panic!("a key of its own: {conflict:?}"),
        }
    }
    revisions
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_start_at_once_agree_on_the_schema() {
    let database = Arc::new(Database::postgres().await);
    let opens: Vec<_> = (0..6)
        .map(|_| {
            let database = database.clone();
            tokio::spawn(async move { database.try_open().await })
        })
        .collect();
    for open in opens {
        let opened: Result<_, OpenError> = open.await.expect("a task");
        opened.expect("opens").close().await;
    }
    let migrations = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/postgres");
    let migrations = std::fs::read_dir(migrations).expect("the migrations").count();
    assert_eq!(database.number("SELECT COUNT(*) FROM _sqlx_migrations").await as usize, migrations);
}

/// Writes that arrive while a batch is in the database, where it waits for another server's transaction, share the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_gathers_until_it_is_its_turn() {
    const WRITES: u64 = 50;
    let database = Database::postgres().await;
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let (sink, mut commits) = mpsc::channel(1);
    let store = store::start_with(&backend, sink);
    let Database::Postgres(schema) = &database else { unreachable!("made above") };
    let mut other = postgres::connect(&schema.url()).await;
    let mut transaction = other.begin().await.expect("begin");
    sqlx::query("SELECT FROM clock FOR UPDATE").execute(&mut *transaction).await.expect("the lock");
    let write = |n: u64| {
        let (store, key) = (store.clone(), Key::new(resource, "ns", &format!("{n}")));
        async move { store.write(create(&key, n)).await }
    };
    let first = tokio::spawn(write(0));
    const WAITING: &str =
        "SELECT COUNT(*) FROM pg_stat_activity WHERE usename = current_user AND wait_event_type = 'Lock'";
    while database.number(WAITING).await == 0 {}
    let mut others: Vec<_> = (1..WRITES).map(|n| Box::pin(write(n))).collect();
    for write in &mut others {
        assert!(futures_util::poll!(write).is_pending());
    }
    transaction.rollback().await.expect("rollback");
    for writes in [1, WRITES as usize - 1] {
        let commit = commits.recv().await.expect("a batch");
        assert_eq!(commit.writes.len(), writes);
        commit.published.send(()).expect("somebody waits");
    }
    for written in std::iter::once(first.await.expect("a writer")).chain(join_all(others).await) {
        assert!(matches!(written, Ok(Written::Committed { .. })), "{written:?}");
    }
}

/// A hint may come without a commit, so this waits until the clock shows the write; only hints end the wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_wakes_the_other_server() {
    let database = Database::postgres().await;
    let (one, two) = (database.open().await, database.open().await);
    let resource = resource(&*one, "things").await;
    let waiter = tokio::spawn(async move {
        let start = two.clock().await.expect("clock").revision;
        while two.clock().await.expect("clock").revision == start {
            two.hint().await;
        }
        two.clock().await.expect("clock").revision
    });
    let mut n = 0;
    while !waiter.is_finished() {
        pass(&*one, create(&Key::new(resource, "ns", &format!("{n}")), n)).await;
        n += 1;
    }
    assert!(waiter.await.expect("the waiter").0 > 1);
}

/// Whoever gives up a read, at whatever moment, leaves nothing behind: later reads are of their own time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_that_is_given_up_leaves_no_snapshot() {
    let database = Database::postgres().await;
    let (one, two) = (database.open().await, database.open().await);
    let resource = resource(&*one, "things").await;
    let all = Scan::all(resource);
    for n in 0..200 {
        let at = one.clock().await.expect("clock").revision;
        let mut counting = Box::pin(one.count(&all, at));
        for _ in 0..n % 20 {
            if futures_util::poll!(&mut counting).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        drop(counting);
        pass(&*two, create(&Key::new(resource, "ns", &format!("{n}")), n)).await;
        assert_eq!(one.clock().await.expect("clock").revision, Revision(at.0 + 1));
    }
}

/// A sweep that fails leaves no transaction behind either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_that_fails_leaves_no_transaction() {
    let database = Database::postgres().await;
    let backend = database.open().await;
    let Database::Postgres(schema) = &database else { unreachable!("made above") };
    let mut other = postgres::connect(&schema.url()).await;
    let mut rename = async |from: &str, to: &str| {
        let rename = format!("ALTER TABLE {from} RENAME TO {to}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(rename)).execute(&mut other).await.expect("renamed");
    };
    let resource = resource(&*backend, "things").await;
    for n in 0..5 {
        rename("turns", "elsewhere").await;
        backend.sweep(10).await.expect_err("there is no such table");
        rename("elsewhere", "turns").await;
        pass(&*backend, create(&Key::new(resource, "ns", &format!("{n}")), n)).await;
    }
}

/// Connections are killed repeatedly under load. Answered writes exist, refused ones do not, and writing continues.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_connections_lose_nothing_and_invent_nothing() {
    const WRITERS: u64 = 20;
    let database = Arc::new(Database::postgres().await);
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let store = store::start(&backend);
    let stop = Arc::new(AtomicBool::new(false));
    let tasks: Vec<_> = (0..WRITERS)
        .map(|writer| tokio::spawn(write_until(store.clone(), resource, writer, stop.clone())))
        .collect();
    let Database::Postgres(schema) = &*database else { unreachable!("made above") };
    let mut killed = 0;
    for round in 0..30 {
        // The load advances between two kills, so that there are connections to kill.
        let before = database.number("SELECT revision FROM clock").await;
        killed += schema.kill_connections().await;
        while database.number("SELECT revision FROM clock").await <= before + round {}
    }
    stop.store(true, Ordering::Relaxed);
    let mut answered = Vec::new();
    let mut refused = 0;
    for task in tasks {
        let (own, failures) = task.await.expect("a writer");
        answered.extend(own);
        refused += failures;
    }
    assert!(killed >= 30, "connections were killed: {killed}");
    let end = pass_again(&*backend, resource).await;
    answered.push(("ns/end".into(), end));
    // Idle connections of the first server may still be dead and unnoticed; none of a new server's connections is.
    let reader = database.open().await;
    let mut present: Vec<_> = feed(&*reader, Revision(1), None, 500)
        .await
        .into_iter()
        .map(|row| (format!("{}/{}", row.key.namespace, row.key.name), row.revision))
        .collect();
    answered.sort_unstable();
    present.sort_unstable();
    assert_eq!(present, answered, "{refused} writes were refused");
    assert_eq!(present.len() as u64, end.0 - 1, "no revision was skipped");
    assert_eq!(names(&*reader, &Scan::all(resource), end).await.len(), present.len());
}

/// Creates objects under new names until it is told to stop. Returns the acknowledged ones, and the number of refused
/// ones.
async fn write_until(
    store: Store,
    resource: ResourceId,
    writer: u64,
    stop: Arc<AtomicBool>,
) -> (Vec<(String, Revision)>, u64) {
    let mut answered = Vec::new();
    let mut refused = 0;
    for n in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let name = format!("{writer}-{n}");
        match store.write(create(&Key::new(resource, "ns", &name), n)).await {
            Ok(Written::Committed { revision, .. }) => answered.push((format!("ns/{name}"), revision)),
            Ok(conflict) => panic!("a new name: {conflict:?}"),
            Err(rowplane::storage::Error::Unavailable(_)) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    (answered, refused)
}

/// The store recovers: idle connections that died are noticed one by one, and then a write passes.
async fn pass_again(backend: &dyn Backend, resource: ResourceId) -> Revision {
    let write = [create(&Key::new(resource, "ns", "end"), 0)];
    loop {
        if let Ok(commit) = backend.commit(&write, Revision(0)).await {
            return crate::support::object::committed(commit.outcomes[0]);
        }
    }
}
