//! The settings of sessions, and what remains after work is given up.

use std::time::Duration;

use rowplane::revision::Revision;
use rowplane::storage::postgres::Postgres;
use rowplane::storage::{Backend, Error, Key, ResourceId, Upkeep as _};
use sqlx::{AssertSqlSafe, Connection as _};

use crate::support::client::PATIENCE;
use crate::support::cluster::Cluster;
use crate::support::database::Database;
use crate::support::object::{create, pass, resource};
use crate::support::postgres::{self, Schema};
use crate::support::process::Installation;
use crate::support::proxy::Proxy;

/// Whatever the role's defaults are, sessions have these values.
const SETTINGS: [(&str, &str, &str); 12] = [
    ("synchronous_commit", "local", "on"),
    ("statement_timeout", "'1h'", "0"),
    ("idle_session_timeout", "'1h'", "0"),
    ("idle_in_transaction_session_timeout", "'1h'", "5s"),
    ("lock_timeout", "'1h'", "8s"),
    ("default_transaction_isolation", "serializable", "read committed"),
    ("default_transaction_read_only", "on", "off"),
    ("default_transaction_deferrable", "on", "off"),
    ("client_connection_check_interval", "0", "2s"),
    ("enable_indexscan", "off", "on"),
    ("standard_conforming_strings", "off", "on"),
    ("transaction_isolation", "", "read committed"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_do_not_depend_on_the_defaults_of_their_role() {
    let database = Database::postgres().await;
    let Database::Postgres(schema) = &database else { unreachable!("made above") };
    // All values that are weaker than `on`, and one that is stronger.
    for durability in ["off", "local", "remote_write", "remote_apply"] {
        for (name, theirs, _) in SETTINGS.iter().filter(|(_, theirs, _)| !theirs.is_empty()) {
            let theirs = if *name == "synchronous_commit" { durability } else { theirs };
            postgres::execute(
                &postgres::cluster(),
                &format!("ALTER ROLE {} SET {name} = {theirs}", schema.name()),
            )
            .await;
        }
        let backend = database.open().await;
        let resource = resource(&*backend, "things").await;
        // Read in the database during a batch.
        let names: Vec<_> = SETTINGS.iter().map(|(name, ..)| format!("'{name}'")).collect();
        postgres::execute(
            &postgres::cluster(),
            &format!(
                "SET search_path = {schema}; DROP TABLE IF EXISTS seen; CREATE TABLE seen (name text, setting text); \
                 GRANT ALL ON seen TO {schema}; \
                 CREATE OR REPLACE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                   INSERT INTO {schema}.seen SELECT n, current_setting(n) FROM unnest(ARRAY[{}]) AS n; RETURN NULL; END $$; \
                 CREATE OR REPLACE TRIGGER see AFTER INSERT ON objects EXECUTE FUNCTION see()",
                names.join(", "),
                schema = schema.name(),
            ),
        )
        .await;
        pass(&*backend, create(&Key::new(resource, "ns", durability), 1)).await;
        for (name, _, ours) in SETTINGS {
            let stronger = (name, durability) == ("synchronous_commit", "remote_apply");
            let ours = if stronger { "remote_apply" } else { ours };
            let seen = format!(
                "SELECT COUNT(*) FROM {}.seen WHERE name = '{name}' AND setting = '{ours}'",
                schema.name()
            );
            assert_eq!(number(&seen).await, 1, "{name} after {durability}");
        }
        backend.close().await;
    }
}

/// On a Unix socket these settings have no effect, and read as 0.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backends_of_clients_that_vanish_end_on_tcp() {
    let cluster = Cluster::listening(&[]).await;
    let store = Postgres::open(&Cluster::url_through(cluster.port())).await.expect("open");
    let things = resource(&store, "things").await;
    let see = "CREATE TABLE seen (name text, setting text); \
         CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen SELECT name, current_setting(name) \
           FROM unnest(ARRAY['tcp_keepalives_idle', 'tcp_user_timeout']) AS name; RETURN NULL; END $$; \
         CREATE TRIGGER see AFTER INSERT ON objects EXECUTE FUNCTION see()";
    postgres::execute(&cluster.url(), see).await;
    pass(&store, create(&Key::new(things, "ns", "a"), 1)).await;
    let mut connection = postgres::connect(&cluster.url()).await;
    let seen = sqlx::query_as("SELECT name, setting FROM seen ORDER BY name").fetch_all(&mut connection);
    let seen: Vec<(String, String)> = seen.await.expect("query");
    let wanted = [("tcp_keepalives_idle", "10"), ("tcp_user_timeout", "30000")];
    assert_eq!(seen, wanted.map(|(name, value)| (name.to_owned(), value.to_owned())));
    store.close().await;
}

/// Queried by the administrator, to whom the role's defaults do not apply.
async fn number(query: &str) -> i64 {
    let mut connection = postgres::connect(&postgres::cluster()).await;
    sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut connection).await.expect("query")
}

async fn try_to_write(backend: &dyn Backend, resource: ResourceId, name: &str) -> Result<(), Error> {
    backend.commit(&[create(&Key::new(resource, "ns", name), 1)], Revision(0)).await.map(drop)
}

/// Waits until backends have ended whose work was given up.
async fn none_left(database: &Database, count: &str) {
    let ended = async {
        while database.number(count).await > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("backends that nobody waits for are ended");
}

/// Another role's session holds the clock's row for longer than any server waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_that_is_held_leaves_no_backends_behind() {
    const WAITING: &str = "SELECT COUNT(*) FROM pg_stat_activity \
         WHERE usename = current_user AND wait_event_type = 'Lock'";
    const ALL: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE usename = current_user";
    let database = Database::postgres().await;
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let Database::Postgres(schema) = &database else { unreachable!("made above") };
    let mut other = postgres::connect(&postgres::cluster()).await;
    let mut transaction = other.begin().await.expect("begin");
    let lock = format!("SELECT FROM {}.clock FOR UPDATE", schema.name());
    sqlx::query(AssertSqlSafe(lock)).execute(&mut *transaction).await.expect("the lock");
    for _ in 0..2 {
        let (one, two, three) = tokio::join!(
            try_to_write(&*backend, resource, "one"),
            try_to_write(&*backend, resource, "two"),
            backend.advance_clock(Revision(1000)),
        );
        for error in [one.err(), two.err(), three.err()] {
            assert!(matches!(error, Some(Error::Unavailable(_))), "{error:?}");
        }
        // Waiting for the row may be two waits, for the queue and for the lock: then the server gives up first.
        none_left(&database, WAITING).await;
        // Fourteen places, the connection that listens, the one that asks, and one that ends another.
        assert!(database.number(ALL).await <= 17);
    }
    transaction.rollback().await.expect("rollback");
    try_to_write(&*backend, resource, "one").await.expect("all is well");
}

/// A session of the servers' role has locked the clock in a transaction, and its client is gone without a word: as a
/// server of an early release may leave one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_holds_the_clock_and_says_nothing_is_ended() {
    let database = Database::postgres().await;
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let Database::Postgres(schema) = &database else { unreachable!("made above") };
    let mut silent = postgres::connect(&schema.url()).await;
    let mut transaction = silent.begin().await.expect("begin");
    sqlx::query("SELECT FROM clock FOR UPDATE").execute(&mut *transaction).await.expect("the lock");
    // Whoever holds nobody up is left alone, however long its transaction lasts.
    let mut reading = postgres::connect(&schema.url()).await;
    let mut read = reading.begin().await.expect("begin");
    sqlx::query("SELECT FROM clock").execute(&mut *read).await.expect("a read");
    // The first of those who wait for a row holds up the others.
    let (one, two) =
        tokio::join!(try_to_write(&*backend, resource, "one"), backend.advance_clock(Revision(1)),);
    one.expect("the clock is free again");
    two.expect("the clock is free again");
    transaction.rollback().await.expect_err("the session has been ended");
    read.rollback().await.expect("the session goes on");
}

/// It would also keep a server of a new release from starting, which changes the tables.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_holds_the_clock_and_says_nothing_delays_no_migration() {
    let database = Database::postgres().await;
    database.open().await.close().await;
    database
        .execute(
            "ALTER TABLE clock DROP COLUMN identity, DROP COLUMN made, DROP COLUMN committed_ms, DROP COLUMN lag; \
             ALTER TABLE changes DROP COLUMN committed_ms, DROP COLUMN writer, DROP COLUMN uncounted; \
             DROP PROCEDURE commit_batch_2; DROP PROCEDURE commit_batch_3; \
             DROP TABLE marks, writers, floors, turns, audit_other_events; \
             ALTER TABLE audit_events DROP COLUMN size; CREATE INDEX audit_events_by_time ON audit_events (at); \
             DELETE FROM _sqlx_migrations WHERE version >= 8",
        )
        .await;
    let Database::Postgres(schema) = &database else { unreachable!("made above") };
    let mut silent = postgres::connect(&schema.url()).await;
    let mut transaction = silent.begin().await.expect("begin");
    sqlx::query("SELECT FROM clock FOR UPDATE").execute(&mut *transaction).await.expect("the lock");
    let backend = database.open().await;
    transaction.rollback().await.expect_err("the session has been ended");
    let resource = resource(&*backend, "things").await;
    try_to_write(&*backend, resource, "one").await.expect("all is well");
}

/// The database is busy when the link is lost, so nothing tells it that the result is not needed any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_is_given_up_is_ended_in_the_database() {
    const AT_WORK: &str = "SELECT COUNT(*) FROM pg_stat_activity \
         WHERE usename = current_user AND wait_event = 'PgSleep'";
    let database = Database::postgres().await;
    let Database::Postgres(schema) = &database else { unreachable!("made above") };
    let proxy = Proxy::start(schema.target()).await;
    let url = schema.url_through(proxy.address().port());
    let backend = std::sync::Arc::new(Postgres::open(&url).await.expect("open"));
    let resource = resource(&*backend, "things").await;
    database
        .execute(
            "CREATE FUNCTION sleep() RETURNS trigger LANGUAGE plpgsql AS \
               $$ BEGIN PERFORM pg_sleep(36000); RETURN NULL; END $$; \
             CREATE TRIGGER sleep AFTER INSERT ON objects EXECUTE FUNCTION sleep()",
        )
        .await;
    let write = tokio::spawn({
        let backend = backend.clone();
        async move { try_to_write(&*backend, resource, "stuck").await }
    });
    while database.number(AT_WORK).await == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    proxy.lose();
    let error = write.await.expect("the writer").expect_err("no answer");
    assert!(error.to_string().contains("no answer within"), "{error}");
    none_left(&database, AT_WORK).await;
    database.execute("DROP TRIGGER sleep ON objects").await;
    try_to_write(&*backend, resource, "stuck").await.expect("all is well");
}

/// `./test` runs PostgreSQL without fsync.
#[tokio::test]
async fn settings_that_endanger_data_are_named_at_the_start() {
    let schema = Schema::create().await;
    let log = Installation::postgres(&schema).start().await.log();
    for setting in ["fsync", "full_page_writes", "data_checksums"] {
        let is_off =
            number(&format!("SELECT COUNT(*) WHERE current_setting('{setting}') = 'off'")).await == 1;
        assert_eq!(log.contains(&format!("{setting} is off")), is_off, "{log}");
    }
}
