//! Row streams: the query runs in a task of its own, a few rows ahead of its reader.

use std::pin::Pin;

use futures_util::stream::{self, BoxStream};
use tokio::sync::mpsc;

use super::{Error, Row};

/// Rows read ahead of the consumer; bounds a scan's memory.
pub const ROWS_AHEAD: usize = 256;
/// A block is sent when it has as many rows, or bytes of values; to send each row by itself costs more than to read it.
const BLOCK_ROWS: usize = 256;
const BLOCK_BYTES: usize = 512 << 10;
/// Blocks read ahead of the consumer.
const BLOCKS_AHEAD: usize = 2;
/// Revisions whose rows are asked for in one statement.
pub const REVISIONS_AT_ONCE: usize = 2000;

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
