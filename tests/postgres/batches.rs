//! A batch is one call: what it leaves behind when its network goes, and what becomes of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use rowplane::codec::object::Draft;
use rowplane::revision::Revision;
use rowplane::runtime::Runtime;
use rowplane::schema::names::GroupResource;
use rowplane::storage::counting::{Account, Charge, Ledger};
use rowplane::storage::postgres::Postgres;
use rowplane::storage::{
    Backend, Change, Commit, Error, Expect, HighWaterMark, Key, Mutation, OpenError, Outcome, ResourceId,
    Store, Terms, Units, Upkeep as _, Written,
};
use sqlx::{AssertSqlSafe, Connection as _};

use crate::support::client::PATIENCE;
use crate::support::database::Database;
use crate::support::object::{committed, create, feed, give_up, pass, resource, update};
use crate::support::postgres::{self, Schema};
use crate::support::proxy::{Direction, Flow, Proxy};

/// Batches that wait for a lock.
const WAITING: &str = "SELECT COUNT(*) FROM pg_stat_activity \
     WHERE usename = current_user AND wait_event_type = 'Lock' AND query LIKE '%CALL commit_batch%'";

/// A store behind a proxy, and a second one with its own way.
struct Pair {
    schema: Schema,
    proxy: Proxy,
    distant: Arc<dyn Backend>,
    near: Arc<dyn Backend>,
    resource: ResourceId,
}

impl Pair {
    async fn start() -> Self {
        let schema = Schema::create().await;
        let proxy = Proxy::start(schema.target()).await;
        let through = schema.url_through(proxy.address().port());
        let distant: Arc<dyn Backend> = Arc::new(Postgres::open(&through).await.expect("open"));
        let near: Arc<dyn Backend> = Arc::new(Postgres::open(&schema.url()).await.expect("open"));
        let resource = resource(&*distant, "things").await;
        let pair = Self { schema, proxy, distant, near, resource };
        // The statements are prepared from now on.
        pass(&*pair.distant, create(&pair.key("first"), 1)).await;
        pass(&*pair.near, create(&pair.key("second"), 1)).await;
        pair
    }

    fn key(&self, name: &str) -> Key {
        Key::new(self.resource, "ns", name)
    }

    /// Writes on the distant store.
    fn send(&self, batch: Vec<Mutation>) -> tokio::task::JoinHandle<Result<Commit, Error>> {
        let backend = self.distant.clone();
        tokio::spawn(async move { backend.commit(&batch, Revision(0)).await })
    }

    /// Writes on the distant store, whose network is lost in the middle of the call. Returns the revision before the commit.
    ///
    /// A write whose connection rested for too long is not sent, since its connection is probed first: then it is tried
    /// again.
    async fn send_into_silence(&self) -> (Revision, tokio::task::JoinHandle<Result<Commit, Error>>) {
        for number in 0.. {
            pass(&*self.distant, create(&self.key(&format!("sent-{number}")), 1)).await;
            let before = self.near.clock().await.expect("clock").revision;
            self.proxy.lose_in_calls();
            let write = self.send(vec![create(&self.key(&format!("silent-{number}")), 1)]);
            while !write.is_finished() {
                if self.near.clock().await.expect("clock").revision > before {
                    return (before, write);
                }
            }
            assert!(write.await.expect("the writer").is_err());
            self.proxy.lose();
            self.proxy.cut();
        }
        unreachable!("numbers do not end")
    }

    async fn number(&self, query: &str) -> i64 {
        let mut connection = postgres::connect(&self.schema.url()).await;
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut connection).await.expect("query")
    }

    /// Waits until a batch of the distant store waits for a lock.
    async fn until_it_waits(&self) {
        while self.number(WAITING).await == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The call has arrived, all but its last message: it is committed, and the lock is free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_in_a_call_does_not_hold_the_lock() {
    let pair = Pair::start().await;
    let (before, write) = pair.send_into_silence().await;
    // The first one's answer is missing all the time.
    let next = pass(&*pair.near, create(&pair.key("other"), 1)).await;
    assert!(!write.is_finished());
    assert_eq!(next.0, before.0 + 2);
    pair.proxy.lose();
    let commit = write.await.expect("the writer").expect("it was committed, and is found so");
    assert_eq!(commit.outcomes, [Outcome::Committed(Revision(before.0 + 1))]);
}

/// Whoever else locks the clock does it in one message, which arrives whole or not at all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_in_upkeep_does_not_hold_the_lock() {
    let pair = Pair::start().await;
    let before = pair.near.clock().await.expect("clock").revision;
    pair.proxy.lose_in_calls();
    let upkeep = tokio::spawn({
        let backend = pair.distant.clone();
        async move { (backend.compact(before).await, backend.advance_clock(Revision(before.0 + 9)).await) }
    });
    // Each asks for the clock afterwards, in calls that are lost.
    while pair.near.clock().await.expect("clock").compacted < before {
        assert!(!upkeep.is_finished());
    }
    // If the lock were held, this would fail before the upkeep is given up.
    pass(&*pair.near, create(&pair.key("other"), 1)).await;
    pair.proxy.lose();
    pair.proxy.cut();
    let (_, advanced) = upkeep.await.expect("no panic");
    // A connection that was used a moment ago is trusted, so the cut may be noticed in the middle.
    if let Err(error) = advanced {
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
        pair.distant.advance_clock(Revision(before.0 + 9)).await.expect("the network is back");
    }
    assert!(pair.near.clock().await.expect("clock").revision.0 >= before.0 + 9);
}

/// What a server tells of the resources that it serves, all others wait for, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_as_it_names_resources_holds_nobody_up() {
    const SILENT: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE usename = current_user AND state = 'active' \
        AND wait_event = 'ClientRead' AND query LIKE '%resources%'";
    let pair = Pair::start().await;
    pair.proxy.lose_in_calls();
    let names = [GroupResource::new("ex.io", "things")];
    let silent = tokio::spawn({
        let (backend, names) = (pair.distant.clone(), names.clone());
        async move { backend.resource_ids(&names).await }
    });
    while pair.number(SILENT).await == 0 {
        assert!(!silent.is_finished());
    }
    pair.near.resource_ids(&names).await.expect("nobody is waited for");
    pair.proxy.lose();
    pair.proxy.cut();
    let _ = silent.await.expect("no panic");
}

/// The network goes while a server starts: it ends, and its supervisor starts it again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_whose_network_falls_silent_has_an_end() {
    let schema = Schema::create().await;
    Postgres::open(&schema.url()).await.expect("open").close().await;
    let proxy = Proxy::start(schema.target()).await;
    proxy.lose_in_calls();
    let opened = Postgres::open(&schema.url_through(proxy.address().port())).await;
    assert!(matches!(opened, Err(OpenError::Unreachable { .. })));
}

/// The answer is lost, and others have committed since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_lost_is_asked_for() {
    let pair = Pair::start().await;
    let base = pair.near.clock().await.expect("clock").revision;
    let first = pair.key("first");
    let batch = vec![
        create(&pair.key("a"), 1),
        create(&first, 1),
        create(&pair.key("b"), 1)
            .requiring([rowplane::storage::Requirement { key: pair.key("second"), expect: Expect::Absent }]),
        update(&pair.key("a"), Revision(base.0 + 1), 2),
    ];
    pair.proxy.set_flow(Direction::Down, Flow::Held);
    let write = pair.send(batch);
    while pair.near.clock().await.expect("clock").revision == base {
        assert!(!write.is_finished());
    }
    pass(&*pair.near, create(&pair.key("c"), 1)).await;
    give_up(&*pair.near, Revision(u64::MAX >> 1)).await;
    pair.near.sweep(1000).await.expect("sweep");
    pair.proxy.cut();
    pair.proxy.set_flow(Direction::Down, Flow::Open);
    let commit = write.await.expect("the writer").expect("it was committed");
    assert_eq!(commit.base, base);
    let (first, second) = (Some(Revision(base.0 - 1)), Some(base));
    let expected = [
        Outcome::Committed(Revision(base.0 + 1)),
        Outcome::Conflict { found: first },
        Outcome::Unmet { requirement: 0, found: second },
        Outcome::Committed(Revision(base.0 + 2)),
    ];
    assert_eq!(commit.outcomes, expected);
}

/// The call waits in the database, its server has given it up, and then its turn comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_was_given_up_is_not_committed_later() {
    let pair = Pair::start().await;
    let before = pair.near.clock().await.expect("clock").revision;
    let mut other = postgres::connect(&pair.schema.url()).await;
    let mut transaction = other.begin().await.expect("begin");
    sqlx::query("SELECT FROM clock FOR UPDATE").execute(&mut *transaction).await.expect("the lock");
    let write = pair.send(vec![create(&pair.key("late"), 1)]);
    pair.until_it_waits().await;
    pair.proxy.cut();
    let error = write.await.expect("the writer").expect_err("it was not committed");
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    transaction.rollback().await.expect("rollback");
    let next = pass(&*pair.near, create(&pair.key("late"), 1)).await;
    assert_eq!(next.0, before.0 + 1, "only this one");
    assert_eq!(pair.number("SELECT COUNT(*) FROM batches WHERE base IS NULL").await, 1);
    pass(&*pair.distant, create(&pair.key("again"), 1)).await;
}

/// Somebody cancels the call while it waits for its turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_is_cancelled_is_not_committed() {
    let pair = Pair::start().await;
    let before = pair.near.clock().await.expect("clock").revision;
    let mut other = postgres::connect(&pair.schema.url()).await;
    let mut transaction = other.begin().await.expect("begin");
    sqlx::query("SELECT FROM clock FOR UPDATE").execute(&mut *transaction).await.expect("the lock");
    let write = pair.send(vec![create(&pair.key("cancelled"), 1)]);
    pair.until_it_waits().await;
    let cancel = WAITING.replace("COUNT(*)", "COUNT(pg_cancel_backend(pid))");
    assert_eq!(pair.number(&cancel).await, 1);
    let error = write.await.expect("the writer").expect_err("it was not committed");
    assert!(matches!(error, Error::Unavailable(_)), "{error}");
    transaction.rollback().await.expect("rollback");
    let next = pass(&*pair.distant, create(&pair.key("cancelled"), 1)).await;
    assert_eq!(next.0, before.0 + 1);
}

/// Writes one after the other until told to stop. Returns how long the slowest took, and how many there were.
fn longest_pause(
    backend: Arc<dyn Backend>,
    resource: ResourceId,
    stop: Arc<AtomicBool>,
) -> impl Future<Output = (Duration, u64)> {
    let writing = tokio::spawn(async move {
        let (mut longest, mut written) = (Duration::ZERO, 0);
        while !stop.load(Ordering::Relaxed) {
            let at = Instant::now();
            pass(&*backend, create(&Key::new(resource, "ns", &format!("near-{written}")), 1)).await;
            longest = longest.max(at.elapsed());
            written += 1;
        }
        (longest, written)
    });
    async move { writing.await.expect("a writer") }
}

/// The network goes at random moments, for longer than anybody waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_silence_of_one_server_is_not_noticed_on_another() {
    const ROUNDS: usize = 12;
    let pair = Arc::new(Pair::start().await);
    let control = Database::postgres().await;
    let things = resource(&*control.open().await, "things").await;
    let stop = Arc::new(AtomicBool::new(false));
    let near = longest_pause(pair.near.clone(), pair.resource, stop.clone());
    // The machine stalls at times: writes of another store show how long.
    let control = longest_pause(control.open().await, things, stop.clone());
    let mut acknowledged = Vec::new();
    for round in 0..ROUNDS {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let pair = pair.clone();
                tokio::spawn(async move {
                    let mut done = Vec::new();
                    for n in 0..200 {
                        let name = format!("distant-{round}-{writer}-{n}");
                        let commit = pair.distant.commit(&[create(&pair.key(&name), 1)], Revision(0)).await;
                        match commit {
                            Ok(commit) => done.push((name, committed(commit.outcomes[0]))),
                            Err(_) => break,
                        }
                    }
                    done
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(rand::random_range(5..120))).await;
        match round % 3 {
            0 => pair.proxy.lose(),
            1 => {
                pair.proxy.lose_in_calls();
                tokio::time::sleep(Duration::from_millis(100)).await;
                pair.proxy.lose();
            }
            _ => pair.proxy.cut(),
        }
        if round % 3 == 2 {
            for writer in writers {
                acknowledged.extend(writer.await.expect("a writer"));
            }
        }
        tokio::time::sleep(Duration::from_millis(900)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let ((longest, written), (stalled, _)) = tokio::join!(near, control);
    println!(
        "{written} writes, the longest took {longest:?} (elsewhere {stalled:?}); {} on the distant one",
        acknowledged.len()
    );
    assert!(longest < Duration::from_secs(1) + stalled, "{longest:?}");
    let rows = feed(&*pair.near, Revision(1), Some(pair.resource), 1000).await;
    for (name, revision) in acknowledged {
        assert!(rows.iter().any(|row| row.revision == revision && *row.key.name == *name), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_procedure_that_is_gone_or_changed_is_noticed_at_the_start() {
    let database = Database::postgres().await;
    database.open().await.close().await;
    let told = async || match database.try_open().await {
        Err(OpenError::ForeignSchema(reason)) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("opened"),
    };
    let Database::Postgres(schema) = &database else { unreachable!("made above") };
    const NAME: &str = "commit_batch_3";
    let source = "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'commit_batch_3' \
                  AND pronamespace = current_schema()::regnamespace";
    let mut connection = postgres::connect(&schema.url()).await;
    let definition: String =
        sqlx::query_scalar(source).fetch_one(&mut connection).await.expect("the procedure");
    for (change, reason) in [
        (format!("ALTER PROCEDURE {NAME} SECURITY DEFINER"), "has been changed"),
        (definition.replace("pg_notify", "PG_NOTIFY"), "has been changed"),
        (format!("REVOKE EXECUTE ON PROCEDURE {NAME} FROM PUBLIC, CURRENT_USER"), "grant EXECUTE on it"),
        (format!("DROP PROCEDURE {NAME}"), "is missing"),
    ] {
        database.execute(&definition).await;
        database.open().await.close().await;
        database.execute(&change).await;
        let found = told().await;
        assert!(found.contains(reason) && found.contains(NAME), "{found}");
        if reason.contains("grant") {
            database.execute(&format!("GRANT EXECUTE ON PROCEDURE {NAME} TO CURRENT_USER")).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_user_lacks_is_named() {
    let schema = Schema::create().await;
    let (admin, name) = (postgres::cluster(), schema.name());
    postgres::execute(&admin, &format!("ALTER SCHEMA {name} OWNER TO CURRENT_USER")).await;
    postgres::execute(&admin, &format!("GRANT USAGE ON SCHEMA {name} TO {name}")).await;
    let error = match Postgres::open(&schema.url()).await {
        Err(error) => error.to_string(),
        Ok(_) => panic!("opened"),
    };
    assert!(error.contains("GRANT USAGE, CREATE ON SCHEMA") && !error.contains('\n'), "{error}");
    postgres::execute(&admin, &format!("GRANT CREATE ON SCHEMA {name} TO {name}")).await;
    Postgres::open(&schema.url()).await.expect("what was named is enough").close().await;
    postgres::execute(&admin, &format!("ALTER SCHEMA {name} OWNER TO {name}")).await;
}

/// A server of the release before, which commits by statements, beside one of this release.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_commit_by_statements_and_by_the_procedure_share_a_clock() {
    const WRITES: usize = 150;
    let database = Database::postgres().await;
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let start = backend.clock().await.expect("clock").revision;
    let Database::Postgres(schema) = &database else { unreachable!("made above") };
    let url = schema.url();
    let old = tokio::spawn(async move {
        let mut connection = postgres::connect(&url).await;
        for n in 0..WRITES {
            let mut transaction = connection.begin().await.expect("begin");
            let base: i64 = sqlx::query_scalar("SELECT revision FROM clock FOR UPDATE")
                .fetch_one(&mut *transaction)
                .await
                .expect("the lock");
            tokio::task::yield_now().await;
            let write = format!(
                "WITH batch AS (SELECT {v}::bigint AS v), inserted AS (
                    INSERT INTO objects (resource_version, resource, namespace, name, deleted, uid, stored_version, value)
                    SELECT v, {r}, 'ns', 'old-{n}', false, 'u', 'v1', '{{}}' FROM batch
                 ), fed AS (
                    INSERT INTO changes (resource_version, resource, namespace, name, event, previous_version)
                    SELECT v, {r}, 'ns', 'old-{n}', 0, NULL FROM batch
                 ), ticked AS (UPDATE clock SET revision = {v})
                 SELECT 1",
                v = base + 1,
                r = resource.0,
            );
            sqlx::query(AssertSqlSafe(write)).execute(&mut *transaction).await.expect("write");
            transaction.commit().await.expect("commit");
        }
    });
    let mut revisions = Vec::new();
    for n in 0..WRITES {
        revisions.push(pass(&*backend, create(&Key::new(resource, "ns", &format!("new-{n}")), 1)).await);
    }
    old.await.expect("the other server");
    let rows = feed(&*backend, start, Some(resource), 100).await;
    let told: Vec<u64> = rows.iter().map(|row| row.revision.0).collect();
    let all: Vec<u64> = (1..=2 * WRITES as u64).map(|n| start.0 + n).collect();
    assert_eq!(told, all, "without a gap");
    for (n, revision) in revisions.iter().enumerate() {
        let row = &rows[(revision.0 - start.0 - 1) as usize];
        assert_eq!(*row.key.name, *format!("new-{n}"));
    }
}

/// Values of almost 3 MiB, as large as objects may be, in as many writes at once as wait for one batch: more than a message to
/// PostgreSQL may hold in one field, by far more than it should.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_of_the_largest_values_at_once_pass() {
    const WRITES: usize = 128;
    let database = Database::postgres().await;
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let start = backend.clock().await.expect("clock").revision;
    let directory = tempfile::tempdir().expect("a directory");
    let mark = Arc::new(HighWaterMark::load(directory.path().join("mark")));
    let store = Store::start(backend.clone(), None, mark, &Runtime::default());
    let text = "x".repeat((3 << 20) - 64);
    let writes = (0..WRITES).map(|n| {
        let key = Key::new(resource, "ns", &n.to_string());
        let draft = Draft::of_json("ns", &key.name, format!("{{\"a\":\"{n}{text}\"}}").into());
        let change = Change::Put { uid: "u".into(), stored_version: "v1".into(), value: draft.into() };
        store.write(Mutation::new(key, Expect::Absent, change))
    });
    for written in join_all(writes).await {
        assert!(matches!(written, Ok(Written::Committed { .. })), "{written:?}");
    }
    assert_eq!(backend.clock().await.expect("clock").revision.0, start.0 + WRITES as u64);
}

/// A counter is `<used>/<limit>`.
#[derive(Debug)]
struct Numbers;

struct Number(Key, i64, i64);

impl Ledger for Numbers {
    fn open(&self, key: &Key, value: bytes::Bytes) -> Option<Box<dyn Account>> {
        let text = String::from_utf8(value.to_vec()).ok()?;
        let (used, limit) = text.trim().split_once('/')?;
        Some(Box::new(Number(key.clone(), used.parse().ok()?, limit.parse().ok()?)))
    }
}

impl Account for Number {
    fn add(&mut self, charge: &Charge) -> bool {
        let amount: i64 = charge.amounts[0].1.parse().expect("a number");
        let fits = self.1 + amount <= self.2;
        self.1 += if fits { amount } else { 0 };
        fits
    }

    fn duplicate(&self) -> Box<dyn Account> {
        Box::new(Number(self.0.clone(), self.1, self.2))
    }

    fn change(&self) -> Change {
        let Number(key, used, limit) = self;
        let draft = Draft::of_json("ns", &key.name, format!("{used}/{limit}").into());
        Change::Put { uid: "u".into(), stored_version: "v1".into(), value: draft.into() }
    }
}

/// Several servers charge one row at once: nothing is lost, and nothing is given out twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_charge_one_row_at_once_count_right() {
    const SERVERS: usize = 3;
    const WRITES: i64 = 60;
    const LIMIT: i64 = 150;
    let database = Database::postgres().await;
    let mut servers = Vec::new();
    for _ in 0..SERVERS {
        servers.push(database.open().await);
    }
    let resource = resource(&*servers[0], "things").await;
    let counter = Key::new(resource, "ns", "counter");
    let first = Number(counter.clone(), 0, LIMIT).change();
    pass(&*servers[0], Mutation::new(counter.clone(), Expect::Absent, first)).await;
    let writers: Vec<_> = servers
        .iter()
        .cloned()
        .enumerate()
        .map(|(server, backend)| {
            let counter = counter.clone();
            tokio::spawn(async move {
                let (mut passed, mut slowest) = (0, Duration::ZERO);
                for n in 0..WRITES {
                    let key = Key::new(resource, "ns", &format!("{server}-{n}"));
                    let amounts = [("used".into(), "1".into())].into();
                    let charge = Charge { key: counter.clone(), ledger: &Numbers, amounts, limited: true };
                    let mut batch = Units::from(vec![create(&key, 1).charging(vec![charge])]);
                    batch.count();
                    let at = Instant::now();
                    let commit = backend.commit_under(&mut batch, Terms::default()).await.expect("commit");
                    slowest = slowest.max(at.elapsed());
                    match commit.outcomes[0] {
                        Outcome::Committed(_) => passed += 1,
                        Outcome::Unfit { charge: 0 } => {}
                        other => panic!("{other:?}"),
                    }
                }
                (passed, slowest)
            })
        })
        .collect();
    let mut passed = 0;
    for writer in writers {
        let (some, slowest) = tokio::time::timeout(PATIENCE, writer).await.expect("soon").expect("a writer");
        println!("{some} passed, the slowest took {slowest:?}");
        passed += some;
    }
    assert_eq!(passed, LIMIT);
    let at = servers[0].clock().await.expect("clock").revision;
    let rows = crate::support::object::list(&*servers[0], &rowplane::storage::Scan::all(resource), at).await;
    let rows = rows.expect("list");
    let (_, _, _, value) = rows.iter().find(|(_, name, ..)| name == "counter").expect("the counter");
    assert_eq!(std::str::from_utf8(value).expect("text").trim(), format!("{LIMIT}/{LIMIT}"));
    assert_eq!(rows.len() as i64, LIMIT + 1);
}
