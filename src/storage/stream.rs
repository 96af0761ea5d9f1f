//! Row streams: the query runs in a task of its own, a few rows ahead of its reader.

use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::{SendTimeoutError, TrySendError};

use super::{Error, Row};

/// Rows read ahead of the consumer; bounds a scan's memory.
pub const ROWS_AHEAD: usize = 256;
/// A block is sent when it has as many rows, or bytes of values; to send each row by itself costs more than to read it.
const BLOCK_ROWS: usize = 256;
const BLOCK_BYTES: usize = 512 << 10;
/// Blocks read ahead of the consumer.
const BLOCKS_AHEAD: usize = 2;

/// Gathers rows into blocks and sends these.
pub struct Blocks {
    rows: Vec<Row>,
    bytes: usize,
    sender: mpsc::Sender<Result<Vec<Row>, Error>>,
}

impl Blocks {
    pub fn new() -> (Self, mpsc::Receiver<Result<Vec<Row>, Error>>) {
        let (sender, receiver) = mpsc::channel(BLOCKS_AHEAD);
        (Self { rows: Vec::new(), bytes: 0, sender }, receiver)
    }

    /// Fails once nobody listens any more.
    pub async fn push(&mut self, row: Row) -> Result<(), Error> {
        self.bytes += row.value.len();
        self.rows.push(row);
        if self.rows.len() < BLOCK_ROWS && self.bytes < BLOCK_BYTES {
            return Ok(());
        }
        self.send().await
    }

    /// Sends what is left, or why there is no more.
    pub async fn end(mut self, read: Result<(), Error>) {
        // Nobody may be listening any more.
        let _ = match read {
            Ok(()) => self.send().await,
            Err(error) => self.sender.send(Err(error)).await.map_err(|_| Error::Closed),
        };
    }

    async fn send(&mut self) -> Result<(), Error> {
        self.bytes = 0;
        let rows = std::mem::take(&mut self.rows);
        self.sender.send(Ok(rows)).await.map_err(|_| Error::Closed)
    }
}

/// How long a query waits, with its snapshot open, for a reader that takes no rows. What it holds up meanwhile is the
/// reuse of the log in SQLite, and of dead rows in PostgreSQL.
const PATIENCE: Duration = Duration::from_secs(60);

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    Taken,
    /// Nobody reads any more.
    Gone,
    /// The reader takes nothing. The query has to let go of its snapshot, and then call [`give_up`].
    Stalled,
}

/// Hands a row to the reader.
pub async fn offer<T, E>(sender: &mpsc::Sender<Result<T, E>>, row: Result<T, E>) -> Offered {
    offer_for(PATIENCE, sender, row).await
}

async fn offer_for<T, E>(
    patience: Duration,
    sender: &mpsc::Sender<Result<T, E>>,
    row: Result<T, E>,
) -> Offered {
    let row = match sender.try_send(row) {
        Ok(()) => return Offered::Taken,
        Err(TrySendError::Closed(_)) => return Offered::Gone,
        Err(TrySendError::Full(row)) => row,
    };
    match sender.send_timeout(row, patience).await {
        Ok(()) => Offered::Taken,
        Err(SendTimeoutError::Closed(_)) => Offered::Gone,
        Err(SendTimeoutError::Timeout(_)) => Offered::Stalled,
    }
}

/// Ends the rows with an error, should their reader come back.
pub async fn give_up<T, E: From<Error>>(sender: &mpsc::Sender<Result<T, E>>) {
    let text = format!("the reader of a scan took no rows for {} s", PATIENCE.as_secs());
    let _ = sender.send(Err(Error::Unavailable(text.into()).into())).await;
}

/// Spawns `query`, which sends rows until it ends or its receiver is gone. Ends with an error if the task dies.
pub fn stream<T, E>(
    receiver: mpsc::Receiver<Result<T, E>>,
    query: impl Future<Output = ()> + Send + 'static,
) -> BoxStream<'static, Result<T, E>>
where
    T: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let task = AbortOnDrop(tokio::spawn(query));
    Box::pin(stream::unfold((receiver, Some(task)), async |(mut receiver, task)| {
        let mut task = task?;
        if let Some(row) = receiver.recv().await {
            return Some((row, (receiver, Some(task))));
        }
        match Pin::new(&mut task.0).await {
            Ok(()) => None,
            Err(died) => Some((Err(Error::Unavailable(died.to_string().into()).into()), (receiver, None))),
        }
    }))
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn a_reader_that_stalls_finds_an_error_and_no_short_list() {
        let (sender, receiver) = mpsc::channel(2);
        let (released, release) = tokio::sync::oneshot::channel();
        let mut rows = stream::<u32, Error>(receiver, async move {
            let mut row = 0;
            while offer_for(Duration::from_millis(1), &sender, Ok(row)).await == Offered::Taken {
                row += 1;
            }
            let _ = released.send(row);
            give_up(&sender).await;
        });
        assert_eq!(release.await, Ok(2));
        assert!(matches!(rows.next().await, Some(Ok(0))));
        assert!(matches!(rows.next().await, Some(Ok(1))));
        assert!(matches!(rows.next().await, Some(Err(Error::Unavailable(_)))));
        assert!(rows.next().await.is_none());
    }

    #[tokio::test]
    async fn a_reader_that_goes_ends_the_query() {
        let (sender, receiver) = mpsc::channel::<Result<u32, Error>>(1);
        drop(receiver);
        assert_eq!(offer(&sender, Ok(1)).await, Offered::Gone);
    }
}
