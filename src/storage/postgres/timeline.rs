//! Notices a promoted standby. What it had not received of the old primary's commits is lost, acknowledged or not, and
//! its clock would give their revisions out again; so the clock jumps before anything else is done.
//!
//! A server's own high-water mark finds out only if that very server had seen the newest commit. A promotion ends all
//! connections, so looking at each new one is in time, and costs nothing later.

use sqlx::postgres::PgConnection;

use crate::storage::SAFETY_GAP;

/// To be called on every new connection before it is used. Fails on a standby.
pub async fn follow(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let moved: Option<(Option<i64>, i64, i64)> =
        sqlx::query_as(include_str!("../sql/postgres/follow_timeline.sql"))
            .bind(SAFETY_GAP as i64)
            .fetch_optional(connection)
            .await?;
    if let Some((Some(before), now, revision)) = moved {
        tracing::error!(
            before,
            now,
            revision,
            "the database has been promoted or restored and may have lost acknowledged commits; its clock is moved \
             ahead and older history is given up"
        );
    }
    Ok(())
}
