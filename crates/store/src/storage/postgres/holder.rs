//! Ends who holds the clock's lock and says no more.
//!
//! A server's batch begins and ends in one call, so its session never waits for a message with the clock locked. Others
//! may: a server of an early release, which commits in several messages, and somebody at a console in the middle of a
//! transaction. If such a client vanishes without a word, PostgreSQL keeps the lock until the connection's keepalive gives
//! up (two hours by default), and nobody's write is answered.

use std::pin::pin;
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use tokio::time::timeout;

use super::error::unavailable;
use super::lineage;
use super::pool::{Pool, short};
use super::session::{Connector, Purpose};
use crate::storage::Error;

/// The name of a session while it restores: it holds the clock's lock while its client reads a file, which may take long.
pub const RESTORES: &str = "rowplane-restore";
/// How long work waits until sessions that may hold it up are looked for.
const PATIENCE: Duration = Duration::from_secs(5);

/// The connection through which sessions that hold up work are looked for.
pub enum Through<'a> {
    Pool(&'a Pool),
    /// A connection of its own.
    Connector(&'a Connector),
}

/// Waits for work of the database. While that takes long, ends sessions that hold it up.
pub async fn outlast<T>(through: Through<'_>, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    loop {
        if let Ok(done) = timeout(PATIENCE, &mut work).await {
            return done;
        }
        tokio::select! {
            biased;
            done = &mut work => return done,
            ended = through.end() => match ended {
                Ok(ended) => ended.into_iter().for_each(|process| {
                    tracing::warn!(process, "ended a session that kept all servers from writing, and waited for its client");
                }),
                Err(error) => tracing::warn!(%error, "cannot see which session keeps this server from writing"),
            },
        }
    }
}

impl Through<'_> {
    async fn end(&self) -> Result<Vec<i32>, Error> {
        match self {
            Self::Pool(pool) => {
                let mut connection = pool.acquire().await?;
                let ended = short(end(&mut connection)).await?;
                pool.keep(connection);
                Ok(ended)
            }
            Self::Connector(connector) => {
                let connected = connector.connect(Purpose::Whole).await;
                let unavailable = |error: lineage::Error| Error::Unavailable(error.to_string().into());
                let (mut connection, _host) = connected.map_err(unavailable)?;
                let ended = short(end(&mut connection)).await;
                let _ = connection.close().await;
                ended
            }
        }
    }
}

/// Ends sessions of this role in whose transaction the clock was locked, which hold up others, and which have waited for
/// their client's next message for longer than [`PATIENCE`]. Nothing is lost: such a transaction has not been committed. One
/// that waits for a disk or a standby waits for no client, and a restore is left alone. Returns their backends' process ids.
async fn end(connection: &mut PgConnection) -> Result<Vec<i32>, Error> {
    sqlx::query_scalar(include_str!("../sql/postgres/end_holders.sql"))
        .bind(PATIENCE.as_secs_f64())
        .bind(RESTORES)
        .fetch_all(connection)
        .await
        .map_err(unavailable)
}
