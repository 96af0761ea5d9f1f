//! A batch that accepts more units while it waits for its turn.

use std::task::{Context, Poll, ready};

use tokio::sync::{mpsc, oneshot};

use super::{Pending, Reply};
use crate::storage::commit::LARGEST_BATCH;
use crate::storage::{Batch, Change, Key, Mutation, Units};

/// A batch is sealed when its values have this many bytes, so that large objects do not delay all small ones.
const BYTES: usize = 4 << 20;

/// Holds the writer's queue until the batch is sealed or dropped.
pub struct Gathering {
    units: Units,
    /// One reply channel per operation; `None` for all but the last of a unit.
    replies: Vec<Option<Reply>>,
    /// While the batch is open: the queue, and the channel by which it returns to the writer.
    open: Option<(mpsc::Receiver<Pending>, oneshot::Sender<mpsc::Receiver<Pending>>)>,
    /// The size of all values.
    bytes: usize,
    /// How many rows the operations charge.
    charged: usize,
}

impl Gathering {
    /// Starts a batch. Also returns the receiver on which the queue comes back.
    pub fn new(
        first: Pending,
        queue: mpsc::Receiver<Pending>,
    ) -> (Self, oneshot::Receiver<mpsc::Receiver<Pending>>) {
        let (back, returned) = oneshot::channel();
        let open = Some((queue, back));
        let mut batch = Self { units: Units::default(), replies: Vec::new(), open, bytes: 0, charged: 0 };
        batch.push(first);
        (batch, returned)
    }

    /// The mutations, and the reply channels of their callers. If the batch failed before it was sealed, it includes
    /// everything that waits in the queue: those callers need not find out one after the other that the store is down.
    pub fn into_parts(mut self) -> (Vec<Mutation>, Vec<Option<Reply>>) {
        self.close();
        (std::mem::take(&mut self.units).into_operations(), std::mem::take(&mut self.replies))
    }

    fn is_full(&self) -> bool {
        self.units.len() + self.charged >= LARGEST_BATCH || self.bytes >= BYTES
    }

    fn gather(&mut self) {
        while !self.is_full() {
            let Some(Ok(pending)) = self.open.as_mut().map(|(queue, _)| queue.try_recv()) else { return };
            self.push(pending);
        }
    }

    fn push(&mut self, Pending { unit, reply }: Pending) {
        for mutation in unit.operations() {
            self.bytes += size(mutation);
            // Each row that is charged takes a place, too. One that a unit charges twice takes two.
            self.charged += mutation.charges.iter().filter(|charge| !self.charges(&charge.key)).count();
        }
        self.units.push(unit);
        self.replies.resize_with(self.units.len() - 1, || None);
        self.replies.push(Some(reply));
    }

    /// Whether an operation of the batch charges the row.
    fn charges(&self, key: &Key) -> bool {
        let mut charges = self.units.iter().rev().flat_map(|mutation| &mutation.charges);
        charges.any(|charge| charge.key == *key)
    }

    fn give_back(&mut self) {
        if let Some((queue, back)) = self.open.take() {
            // The writer may have ended with its runtime.
            let _ = back.send(queue);
        }
    }
}

impl Batch for Gathering {
    fn poll_gather(&mut self, context: &mut Context<'_>, wanted: usize) -> Poll<()> {
        while self.units.len() < wanted && !self.is_full() {
            let Some((queue, _)) = &mut self.open else { break };
            let Some(pending) = ready!(queue.poll_recv(context)) else { break };
            self.push(pending);
        }
        Poll::Ready(())
    }

    fn close(&mut self) -> &Units {
        if self.open.is_some() {
            self.gather();
            self.give_back();
            self.units.count();
            self.replies.resize_with(self.units.len(), || None);
        }
        &self.units
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn size(mutation: &Mutation) -> usize {
    match &mutation.change {
        Change::Put { value, .. } => value.bytes().len(),
        Change::Delete | Change::Count(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::storage::{Error, Expect, Key, ResourceId};

    fn pending(bytes: usize) -> (Pending, oneshot::Receiver<Result<super::super::Written, Error>>) {
        let value = Bytes::from("x".repeat(bytes)).into();
        let change = Change::Put { uid: "u".into(), stored_version: "v1".into(), value };
        let mutation = Mutation::new(Key::new(ResourceId(1), "", "a"), Expect::Absent, change);
        let (reply, answer) = oneshot::channel();
        (Pending { unit: mutation.into(), reply }, answer)
    }

    #[tokio::test]
    async fn it_grows_until_it_is_closed() {
        let (sender, queue) = mpsc::channel(9);
        let (mut batch, back) = Gathering::new(pending(1).0, queue);
        for _ in 0..3 {
            sender.send(pending(1).0).await.expect("open");
        }
        assert_eq!(batch.close().len(), 4);
        sender.send(pending(1).0).await.expect("open");
        assert_eq!(batch.close().len(), 4);
        assert_eq!(batch.into_parts().1.len(), 4);
        assert!(back.await.expect("given back").try_recv().is_ok());
    }

    #[tokio::test]
    async fn large_objects_close_it() {
        let (sender, queue) = mpsc::channel(9);
        let (mut batch, _back) = Gathering::new(pending(BYTES / 2).0, queue);
        for _ in 0..3 {
            sender.send(pending(BYTES / 2).0).await.expect("open");
        }
        assert_eq!(batch.close().len(), 2);
    }

    /// Callers do not wait for an outage one after the other, and the queue survives a batch that fails.
    #[tokio::test]
    async fn what_fails_before_its_turn_fails_with_all_who_wait() {
        let (sender, queue) = mpsc::channel(9);
        let (batch, back) = Gathering::new(pending(1).0, queue);
        sender.send(pending(1).0).await.expect("open");
        assert_eq!(batch.into_parts().1.len(), 2);
        let (batch, again) = Gathering::new(pending(1).0, back.await.expect("given back"));
        drop(batch);
        assert!(again.await.is_ok());
    }
}
