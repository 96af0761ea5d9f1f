//! Opening a database, and refusing it with a clear error.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rowplane::revision::Revision;
use rowplane::storage::postgres::Postgres;
use rowplane::storage::sqlite::Sqlite;
use rowplane::storage::{Backend, Error, Key, OpenError, ResourceId, Upkeep as _};

use crate::support::database::Database;
use crate::support::object::{create, pass, resource};

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
        Database::Memory(_) => unreachable!("it has no schema"),
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

/// SQLite names a log after the file to which a symbolic link leads, and so do we.
#[tokio::test]
async fn a_database_behind_a_symbolic_link_is_the_one_it_stands_for() {
    let (database, links) = (Database::sqlite(), tempfile::tempdir().expect("a directory"));
    let link = links.path().join("link.db");
    std::os::unix::fs::symlink(database.file(), &link).expect("a link");
    // Such a file may remain from a database of that name.
    let stray = links.path().join("link.db-wal");
    std::fs::write(&stray, "not this one").expect("write");
    let backend: Arc<dyn Backend> = Arc::new(Sqlite::open(&link).await.expect("open"));
    let resource = resource(&*backend, "things").await;
    let revision = pass(&*backend, create(&Key::new(resource, "ns", "a"), 1)).await;
    assert!(database.file().with_extension("db-wal").metadata().expect("a log").len() > 0);
    assert_eq!(std::fs::read_to_string(&stray).expect("read"), "not this one");
    assert!(!links.path().join("link.db.lock").exists());
    for name in [&link, &database.file()] {
        match Sqlite::open(name).await.err() {
            Some(OpenError::Locked(_)) => {}
            other => panic!("{}: {other:?}", name.display()),
        }
    }
    backend.close().await;
    drop(backend);
    assert_eq!(database.open().await.clock().await.expect("clock").revision, revision);
}

/// A symbolic link to a file that does not exist yet.
#[tokio::test]
async fn a_database_is_made_where_a_link_points() {
    let (database, links) = (Database::sqlite(), tempfile::tempdir().expect("a directory"));
    let link = links.path().join("link.db");
    std::os::unix::fs::symlink(database.file(), &link).expect("a link");
    Sqlite::open(&link).await.expect("open").close().await;
    assert!(database.file().is_file() && link.is_symlink());
}

#[tokio::test]
async fn a_database_with_two_names_is_refused() {
    let database = Database::sqlite();
    database.open().await.close().await;
    let other = database.file().with_extension("other");
    std::fs::hard_link(database.file(), &other).expect("a link");
    for name in [&database.file(), &other] {
        match Sqlite::open(name).await.err() {
            Some(error @ OpenError::Linked { names: 2, .. }) => {
                assert!(error.to_string().contains("hard links"), "{error}");
            }
            other => panic!("{}: {other:?}", name.display()),
        }
        assert!(Sqlite::export(name).await.is_err());
    }
    std::fs::remove_file(&other).expect("remove");
    database.open().await;
}

/// Whoever created the directory, and whatever modes an earlier release used.
#[tokio::test]
async fn nobody_else_may_read_the_files() {
    let database = Database::sqlite();
    let directory = database.file().parent().expect("a directory").to_owned();
    let set =
        |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("chmod");
    set(&directory, 0o755);
    for earlier in [false, true] {
        if earlier {
            // SQLite gives the other files the mode of the database.
            for file in std::fs::read_dir(&directory).expect("a directory") {
                set(&file.expect("a file").path(), 0o644);
            }
        }
        let backend = database.open().await;
        let resource = resource(&*backend, "things").await;
        pass(&*backend, create(&Key::new(resource, "ns", &earlier.to_string()), 1)).await;
        let mut names = Vec::new();
        for file in std::fs::read_dir(&directory).expect("a directory").map(|file| file.expect("a file")) {
            let mode = file.metadata().expect("metadata").permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{:?}, earlier: {earlier}", file.file_name());
            names.push(file.file_name().into_string().expect("text"));
        }
        names.sort();
        assert_eq!(names, ["rowplane.db", "rowplane.db-shm", "rowplane.db-wal", "rowplane.db.lock"]);
        backend.close().await;
    }
}

/// The file of another program keeps its mode.
#[tokio::test]
async fn what_is_not_ours_is_left_as_it_is() {
    let database = Database::sqlite();
    database.execute("CREATE TABLE objects (id integer)").await;
    std::fs::set_permissions(database.file(), Permissions::from_mode(0o644)).expect("chmod");
    assert!(database.try_open().await.is_err());
    assert_eq!(database.file().metadata().expect("metadata").permissions().mode() & 0o777, 0o644);
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

/// Writes into a file that nobody can open any more would be lost: the store notices and takes no more.
#[tokio::test]
async fn a_file_that_is_replaced_or_removed_under_its_server_is_not_used() {
    for is_replaced in [true, false] {
        let database = Database::sqlite();
        let backend = database.open().await;
        let key = |name| Key::new(ResourceId(1), "ns", name);
        pass(&*backend, create(&key("a"), 0)).await;
        let (file, copy) = (database.file(), database.file().with_extension("copy"));
        std::fs::copy(&file, &copy).expect("copied");
        match is_replaced {
            true => std::fs::rename(&copy, &file).expect("replaced"),
            false => std::fs::remove_file(&file).expect("removed"),
        }
        let reason = backend.broken().await;
        let (why, path) = (if is_replaced { "replaced" } else { "removed" }, file.display().to_string());
        assert!(reason.contains(why) && reason.contains(&path), "{reason}");
        let refused = backend.commit(&[create(&key("b"), 1)], Revision(0)).await;
        assert!(matches!(refused, Err(Error::Broken(_))), "{refused:?}");
        backend.close().await;
    }
}
