//! Streams of rows: a task runs the query, a few rows ahead of its reader.

use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::{SendTimeoutError, TrySendError};

use super::{Error, Row};

/// Rows read ahead of the reader. This bounds the memory of a scan.
pub const ROWS_AHEAD: usize = 256;
/// A block is sent when it has this many rows, or this many bytes of values. Sending each row by itself costs more than
/// reading it.
const BLOCK_ROWS: usize = 256;
const BLOCK_BYTES: usize = 512 << 10;
/// Blocks read ahead of the reader.
const BLOCKS_AHEAD: usize = 2;

/// Gathers rows into blocks and sends the blocks.
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

    /// Adds a row. Fails once the receiver is gone.
    pub async fn push(&mut self, row: Row) -> Result<(), Error> {
        self.bytes += row.value.len();
        self.rows.push(row);
        if self.rows.len() < BLOCK_ROWS && self.bytes < BLOCK_BYTES {
            return Ok(());
        }
        self.send().await
    }

    /// Sends the last block, or the error that ended the read.
    pub async fn end(mut self, read: Result<(), Error>) {
        // The receiver may be gone, which is no error.
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

/// How long a query keeps its snapshot open for a reader that takes no rows. An open snapshot prevents SQLite from
/// reusing its log, and PostgreSQL from removing dead rows.
const PATIENCE: Duration = Duration::from_secs(60);

/// The fate of a row that was offered to the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    Taken,
    /// The reader is gone.
    Gone,
    /// The reader takes no rows. The query must close its snapshot, and then call [`give_up`].
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

/// Ends the rows with an error, which the reader gets if it continues.
pub async fn give_up<T, E: From<Error>>(sender: &mpsc::Sender<Result<T, E>>) {
    let text = format!("the reader of a scan took no rows for {} s", PATIENCE.as_secs());
    let _ = sender.send(Err(Error::Unavailable(text.into()).into())).await;
}

/// Spawns `query`, which sends rows until it is done or its receiver is gone. The stream ends with an error if the task
/// dies.
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
