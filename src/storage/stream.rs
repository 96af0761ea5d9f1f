//! Row streams: the query runs in a task of its own, a few rows ahead of its reader.

use std::pin::Pin;

use futures_util::stream::{self, BoxStream};
use tokio::sync::mpsc;

use super::Error;

/// Rows read ahead of the consumer; bounds a scan's memory.
pub const ROWS_AHEAD: usize = 256;

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
