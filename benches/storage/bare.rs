//! The reference for a single writer: a sqlx transaction of the same two rows, without clock, preconditions or batches.

use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::postgres::PgPool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection};

use super::load::{Measured, value};

/// Far above the revisions of the store that shares the tables.
const FIRST_VERSION: i64 = 1 << 40;
const RESOURCE: i32 = 1 << 20;

/// On a file that the store has created.
pub async fn sqlite(path: &Path, duration: Duration) -> Measured {
    let options = SqliteConnectOptions::new().filename(path).synchronous(SqliteSynchronous::Full);
    let mut connection = options.connect().await.expect("connect");
    let (start, mut latencies) = (Instant::now(), Vec::new());
    for version in FIRST_VERSION.. {
        let (name, value) = (format!("{version}"), value());
        let started = Instant::now();
        if started > start + duration {
            break;
        }
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.expect("begin");
        sqlx::query("INSERT INTO objects VALUES (?, ?, 'ns', ?, 0, 'uid', 'v1', ?)")
            .bind(version)
            .bind(RESOURCE)
            .bind(&name)
            .bind(&value[..])
            .execute(&mut *transaction)
            .await
            .expect("insert");
        sqlx::query("INSERT INTO changes VALUES (?, ?, 'ns', ?, 0, NULL)")
            .bind(version)
            .bind(RESOURCE)
            .bind(&name)
            .execute(&mut *transaction)
            .await
            .expect("insert");
        transaction.commit().await.expect("commit");
        latencies.push(started.elapsed());
    }
    Measured::new(1, latencies, start.elapsed())
}

/// In a schema that the store has created.
pub async fn postgres(url: &str, duration: Duration) -> Measured {
    let pool = PgPool::connect(url).await.expect("connect");
    let (start, mut latencies) = (Instant::now(), Vec::new());
    for version in FIRST_VERSION.. {
        let (name, value) = (format!("{version}"), value());
        let started = Instant::now();
        if started > start + duration {
            break;
        }
        let mut transaction = pool.begin().await.expect("begin");
        sqlx::query("INSERT INTO objects VALUES ($1, $2, 'ns', $3, false, 'uid', 'v1', $4)")
            .bind(version)
            .bind(RESOURCE)
            .bind(&name)
            .bind(&value[..])
            .execute(&mut *transaction)
            .await
            .expect("insert");
        sqlx::query("INSERT INTO changes VALUES ($1, $2, 'ns', $3, 0, NULL)")
            .bind(version)
            .bind(RESOURCE)
            .bind(&name)
            .execute(&mut *transaction)
            .await
            .expect("insert");
        transaction.commit().await.expect("commit");
        latencies.push(started.elapsed());
    }
    let measured = Measured::new(1, latencies, start.elapsed());
    sqlx::raw_sql(
        "DELETE FROM objects WHERE resource = 1 << 20; DELETE FROM changes WHERE resource = 1 << 20",
    )
    .execute(&pool)
    .await
    .expect("clean up");
    pool.close().await;
    measured
}
