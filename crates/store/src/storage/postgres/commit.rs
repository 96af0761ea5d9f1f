//! Committing a batch: sending it, and finding out what became of it where the answer is lost.

use std::sync::atomic::Ordering;
use std::time::Duration;

use sqlx::postgres::PgConnection;
use tokio::time::{Instant, timeout};

use super::Postgres;
use super::batch::{self, Answer, Call, Failure, Recorded, Reply, joins};
use super::charged::is_charged;
use super::fate;
use super::holder::{self, Through};
use super::lent::Lent;
use super::needs::Ranges;
use super::pool::{SHORT, short, unanswered};
use super::rows::Rows;
use super::ticket::Ticket;
use crate::codec::at_rest::ValueFormat;
use crate::storage::commit::required_keys;
use crate::storage::{Batch, Commit, Error, Terms};

/// How long the database is asked for the outcome of a batch before the caller gets [`Error::Unknown`]: longer than a database
/// takes to restart or to be replaced by its standby.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(20);
const SETTLE_PAUSE: Duration = Duration::from_millis(100);

impl Postgres {
    pub(super) async fn commit_batch(
        &self,
        batch: &mut dyn Batch,
        terms: Terms<'_>,
    ) -> Result<Commit, Error> {
        let mut flight = self.flights.begin().await;
        self.flights.gather(batch).await;
        let mut connection = self.pool.acquire().await?;
        let units = batch.close();
        if is_charged(units) {
            self.pool.keep(connection);
            return self.commit_charged(units, terms, &mut flight).await;
        }
        let own = units.iter().map(|mutation| &mutation.key);
        let rows = Rows::new(own, required_keys(units).into_iter());
        let mut format = self.format(terms);
        loop {
            let joins = joins(units, 0..units.len());
            let mutations = units.iter().collect();
            let told = self.authors.tell(units.iter().map(|mutation| mutation.author.as_ref()));
            let ranges = Ranges::of(units);
            let call = Call { mutations, joins, rows: &rows, ranges, terms, format, assumed: None, told };
            match self.send(connection, &call, || flight.lose()).await? {
                Answer::Done(recorded) => return recorded.commit(units),
                Answer::Format(needed) => format = self.note_format(needed),
                Answer::Stale(_) => return Err(Error::Corrupt("nothing was assumed of the rows".into())),
            }
            connection = self.pool.acquire().await?;
        }
    }

    /// Sends a batch. If there is no answer, finds out what became of it, which may take long: calls `lost` before.
    pub(super) async fn send(
        &self,
        mut connection: Lent,
        call: &Call<'_>,
        lost: impl FnOnce(),
    ) -> Result<Answer, Error> {
        let ticket = self.tickets.draw();
        let reason = match self.call(&mut connection, &ticket, call).await {
            Ok(reply) if connection.is_current() => {
                self.flights.note(call.mutations.len(), &reply);
                connection.observe(reply.base, reply.flushed);
                self.pool.keep(connection);
                ticket.settled();
                if let Ok(Answer::Done(_)) = &reply.answer {
                    self.authors.note(&call.told);
                }
                return reply.answer;
            }
            // Another server has been promoted meanwhile, and it may not have this commit.
            Ok(_) => promoted(),
            Err(Failure::Refused(error)) => {
                connection.discard();
                ticket.settled();
                return Err(error);
            }
            Err(Failure::Open(error)) => {
                connection.doubt();
                error
            }
        };
        lost();
        self.authors.forget();
        self.settle(connection, ticket, reason).await.map(Answer::Done)
    }

    /// Calls the procedure. If that takes long, somebody may hold the clock's lock who is not there any more.
    async fn call(
        &self,
        connection: &mut PgConnection,
        ticket: &Ticket<'_>,
        call: &Call<'_>,
    ) -> Result<Reply, Failure> {
        let answer = timeout(SHORT, batch::commit(connection, ticket, &self.channel, call));
        let answered = holder::outlast(Through::Pool(&self.repairs), answer).await;
        answered.unwrap_or_else(|_| Err(Failure::Open(unanswered(SHORT))))
    }

    /// Asks the database what became of a batch, until it answers. The connection keeps its place meanwhile: its backend
    /// may be at work, and must not be ended while it may be committing.
    async fn settle(&self, connection: Lent, ticket: Ticket<'_>, lost: Error) -> Result<Recorded, Error> {
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        loop {
            match self.fate(&ticket).await {
                Ok(recorded) => {
                    connection.discard();
                    ticket.settled();
                    return recorded.ok_or(lost);
                }
                Err(_) if Instant::now() < deadline => tokio::time::sleep(SETTLE_PAUSE).await,
                Err(_) => {
                    connection.leave();
                    return Err(Error::Unknown(lost.to_string().into()));
                }
            }
        }
    }

    async fn fate(&self, ticket: &Ticket<'_>) -> Result<Option<Recorded>, Error> {
        let mut connection = self.repairs.acquire().await?;
        let fate = short(fate::of(&mut connection, ticket)).await;
        match connection.is_current() {
            true => super::checked(connection, fate),
            // Another server has been promoted meanwhile, and has to be asked.
            false => Err(promoted()),
        }
    }

    /// The format in which values are probably to be written.
    pub(super) fn format(&self, terms: Terms<'_>) -> ValueFormat {
        match terms.fence {
            Some(_) => ValueFormat::up_to(self.format.load(Ordering::Relaxed)),
            // Servers that are not known may read.
            None => ValueFormat::Plain,
        }
    }

    pub(super) fn note_format(&self, needed: ValueFormat) -> ValueFormat {
        self.format.store(needed.number(), Ordering::Relaxed);
        needed
    }
}

fn promoted() -> Error {
    Error::Unavailable("the database has been promoted".into())
}
