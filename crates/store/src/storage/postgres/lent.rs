//! A connection that is lent by the pool, and its return.

use std::ops::{Deref, DerefMut};

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Connection as _, Postgres, Transaction};
use tokio::time::timeout;

use super::places::Place;
use super::pool::{Pool, SHORT, close};
use super::session::{Connector, Session};
use super::whole;

const LENT: &str = "lent until it is dropped";

/// A connection that is lent. When it is dropped it returns to the pool, provided that it still answers.
pub struct Lent {
    pool: Pool,
    /// `None` once it has been taken back or given up.
    session: Option<Session>,
    place: Option<Place>,
    /// Whether the session may be in a transaction of which sqlx does not know. It is ended then: whatever the next borrower
    /// reads would come from that transaction's snapshot.
    is_unsettled: bool,
}

impl Lent {
    pub fn new(pool: Pool, session: Session, place: Place) -> Self {
        Self { pool, session: Some(session), place: Some(place), is_unsettled: false }
    }

    /// Takes the session out, and frees its place.
    pub fn into_session(mut self) -> Option<Session> {
        self.session.take()
    }

    fn connector(&self) -> &Connector {
        self.pool.connector()
    }

    /// Begins a transaction. sqlx ends it when it is dropped, but not if the caller goes away before it has begun.
    pub async fn begin(&mut self, statement: &'static str) -> Result<Transaction<'_, Postgres>, sqlx::Error> {
        let Self { session, is_unsettled, .. } = self;
        *is_unsettled = true;
        let transaction = session.as_mut().expect(LENT).connection.begin_with(statement).await?;
        *is_unsettled = false;
        Ok(transaction)
    }

    /// Runs statements of which the first is BEGIN and the last COMMIT, and which the database gets as one message. If one
    /// of them fails, the database does not end the transaction.
    pub async fn run_transaction(&mut self, statements: String) -> Result<Vec<PgRow>, sqlx::Error> {
        self.is_unsettled = true;
        let rows = whole::run(self, statements).await?;
        self.is_unsettled = false;
        Ok(rows)
    }

    /// Something has failed on the connection, which may be broken.
    pub fn doubt(&self) {
        self.pool.doubt();
    }

    /// Ends the connection, whatever state it is in. Must not be called while its backend may be committing a batch.
    pub fn discard(mut self) {
        let (Some(session), place) = (self.session.take(), self.place.take()) else { return };
        let connector = self.connector().clone();
        tokio::spawn(async move {
            connector.end(session).await;
            drop(place);
        });
    }

    /// Abandons a connection without ending its backend, which may be committing a batch. It ends by itself when it notices
    /// that its client is gone, and waits for the clock's lock no longer than for any lock.
    pub fn leave(mut self) {
        drop(self.session.take());
    }

    /// Notes where the session's cluster stood; see [`Lineage::observe`](super::lineage::Lineage::observe).
    pub fn observe(&self, revision: crate::revision::Revision, flushed: u64) {
        if let Some(session) = &self.session {
            self.connector().lineage().observe(session.timeline, revision, flushed);
        }
    }

    /// PostgreSQL's timeline when the session began.
    pub fn timeline(&self) -> u32 {
        self.session.as_ref().map_or(0, |session| session.timeline)
    }

    /// Whether this connection's timeline is still the newest that was seen.
    pub fn is_current(&self) -> bool {
        let lineage = self.connector().lineage();
        self.session.as_ref().is_some_and(|session| lineage.is_current(session.timeline))
    }
}

impl Deref for Lent {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.session.as_ref().expect(LENT).connection
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.session.as_mut().expect(LENT).connection
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let (Some(mut session), place) = (self.session.take(), self.place.take()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let pool = self.pool.clone();
        let is_unsettled = self.is_unsettled;
        runtime.spawn(async move {
            // The session may be in a transaction that ends with this answer, or in the middle of a list that has lost
            // its reader.
            match timeout(SHORT, session.connection.ping()).await {
                Ok(Ok(())) if is_unsettled => close(session).await,
                Ok(Ok(())) => pool.rest(session),
                Ok(Err(_)) => {}
                Err(_) => pool.connector().end(session).await,
            }
            drop(place);
        });
    }
}
