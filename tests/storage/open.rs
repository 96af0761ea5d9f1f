//! Opening: what is found again, and what is refused with a clear error.

use rowplane::storage::postgres::Postgres;
use rowplane::storage::sqlite::Sqlite;
use rowplane::storage::{Key, OpenError, Scan};

use crate::support::database::Database;
use crate::support::object::{create, delete, feed, list, pass, resource, update};

pub async fn reopening_finds_everything(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let start = backend.clock().await.expect("clock").revision;
    let (a, b) = (Key::new(resource, "ns", "a"), Key::new(resource, "", "b"));
    let first = pass(&*backend, create(&a, 1)).await;
    let second = pass(&*backend, update(&a, first, 2)).await;
    let third = pass(&*backend, create(&b, 1)).await;
    pass(&*backend, delete(&b, third)).await;
    let clock = backend.clock().await.expect("clock");
    let mut lists = Vec::new();
    for at in [first, second, third, clock.revision] {
        lists.push((at, list(&*backend, &Scan::all(resource), at).await.expect("list")));
    }
    backend.close().await;
    drop(backend);

    let backend = database.open().await;
    assert_eq!(backend.clock().await.expect("clock"), clock);
    for (at, expected) in lists {
        assert_eq!(list(&*backend, &Scan::all(resource), at).await.expect("list"), expected);
    }
    assert_eq!(feed(&*backend, start, None, 100).await.len(), 4);
    assert_eq!(pass(&*backend, update(&a, second, 3)).await.0, clock.revision.0 + 1);
}

pub async fn a_newer_schema_is_refused(database: &Database) {
    database.open().await.close().await;
    let copy = "INSERT INTO _sqlx_migrations \
                SELECT 9999, description, installed_on, success, checksum, execution_time \
                FROM _sqlx_migrations WHERE version = 1";
    database.execute(copy).await;
    match database.try_open().await.err() {
        Some(OpenError::NewerSchema(9999)) => {}
        other => panic!("{other:?}"),
    }
}

pub async fn a_foreign_migration_is_refused(database: &Database) {
    database.open().await.close().await;
    let checksum = match database {
        Database::Sqlite(_) => "x'00'",
        Database::Postgres(_) => "'\\x00'",
    };
    database.execute(&format!("UPDATE _sqlx_migrations SET checksum = {checksum}")).await;
    match database.try_open().await.err() {
        Some(OpenError::ForeignSchema(_)) => {}
        other => panic!("{other:?}"),
    }
}

/// A database of another program that happens to use one of our names.
pub async fn foreign_tables_are_refused(database: &Database) {
    database.execute("CREATE TABLE objects (id integer)").await;
    match database.try_open().await.err() {
        Some(OpenError::ForeignSchema(reason)) => assert!(reason.contains("objects"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(database.number("SELECT COUNT(*) FROM objects").await, 0, "it was left as it was");
}

#[tokio::test]
async fn a_file_in_use_is_refused() {
    let database = Database::sqlite();
    let first = database.open().await;
    match database.try_open().await.err() {
        Some(OpenError::Locked(url)) => assert!(url.contains("rowplane.db"), "{url}"),
        other => panic!("{other:?}"),
    }
    first.close().await;
    drop(first);
    database.open().await;
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let database = Database::sqlite();
    std::fs::write(database.file(), "Dear diary, ".repeat(1000)).expect("write");
    match Sqlite::open(&database.file()).await.err() {
        Some(error @ OpenError::Unreachable { .. }) => {
            assert!(error.to_string().contains("not a database"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_directory_that_is_missing_is_named() {
    let database = Database::sqlite();
    let path = database.file().join("deeper/rowplane.db");
    match Sqlite::open(&path).await.err() {
        Some(error @ OpenError::Unreachable { .. }) => {
            assert!(error.to_string().contains("deeper"), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_bad_url_is_shown_without_its_password() {
    for url in ["postgres://me:secret@host:port/db", "postgres://me:secret@127.0.0.1:1/db?connect_timeout=1"]
    {
        let error = Postgres::open(url).await.err().expect("refused");
        let text = error.to_string();
        assert!(text.contains("postgres://me@") && !text.contains("secret"), "{text}");
        match (url.contains("port"), error) {
            (true, OpenError::Url { .. }) | (false, OpenError::Unreachable { .. }) => {}
            (_, other) => panic!("{url}: {other:?}"),
        }
    }
}
