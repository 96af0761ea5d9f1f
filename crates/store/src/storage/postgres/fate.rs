//! Finds out whether a batch was committed whose answer was lost.

use sqlx::Row as _;
use sqlx::postgres::PgConnection;

use super::batch::Recorded;
use super::error::{corrupt, unavailable};
use super::ticket::Ticket;
use super::whole;
use crate::revision::Revision;
use crate::storage::Error;

/// The record of a batch in the database; `None` if it has not been committed. It never will be then, even if its call
/// is still on its way. A batch that was committed is where `synchronous_standby_names` wants it once this returns:
/// visible rows alone do not prove that, since those of a backend that is ended while it waits for a standby become
/// visible at once.
pub async fn of(connection: &mut PgConnection, ticket: &Ticket<'_>) -> Result<Option<Recorded>, Error> {
    let statement = format!(
        include_str!("../sql/postgres/fate.sql"),
        writer = ticket.writer(),
        place = ticket.place,
        number = ticket.number,
    );
    let row = whole::run(connection, statement)
        .await
        .map_err(unavailable)?
        .pop()
        .ok_or_else(|| Error::Corrupt("a batch was not recorded".into()))?;
    let base: Option<i64> = row.try_get(0).map_err(corrupt)?;
    let Some(base) = base else { return Ok(None) };
    Ok(Some(Recorded {
        base: Revision(base as u64),
        outcomes: row.try_get(1).map_err(corrupt)?,
        standing: row.try_get(2).map_err(corrupt)?,
    }))
}
