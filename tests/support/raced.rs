//! A store in which something happens between a caller's decision to write and the commit, as another server might
//! cause it.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use rowplane::revision::Revision;
use rowplane::storage::{Backend, Batch, BlockStream, Commit, Error, Layer, Mutation, Terms};
use tokio::sync::{Notify, Semaphore};

/// Called before each commit, with the wrapped store and the mutations that are about to be judged.
pub type Race = dyn Fn(Arc<dyn Backend>, Vec<Mutation>) -> BoxFuture<'static, ()> + Send + Sync;

pub struct Raced {
    pub inner: Arc<dyn Backend>,
    pub race: Box<Race>,
    /// If set, blocks of rows need permits.
    pub blocks: Option<Arc<Blocks>>,
}

impl Raced {
    /// A store on which `race` is called before each commit.
    pub fn new<F: Future<Output = ()> + Send + 'static>(
        inner: Arc<dyn Backend>,
        race: impl Fn(Arc<dyn Backend>, Vec<Mutation>) -> F + Send + Sync + 'static,
    ) -> Arc<Self> {
        let race: Box<Race> = Box::new(move |backend, batch| Box::pin(race(backend, batch)));
        Arc::new(Self { inner, race, blocks: None })
    }
}

/// Lets blocks of rows pass, one per permit.
pub struct Blocks {
    pub permits: Semaphore,
    /// Notified when a block waits for a permit.
    pub stalled: Notify,
}

impl Blocks {
    pub fn new(permits: usize) -> Self {
        Self { permits: Semaphore::new(permits), stalled: Notify::new() }
    }

    async fn pass(&self) {
        if self.permits.available_permits() == 0 {
            self.stalled.notify_one();
        }
        self.permits.acquire().await.expect("never closed").forget();
    }
}

#[async_trait]
impl Layer for Raced {
    fn inner(&self) -> &dyn Backend {
        &*self.inner
    }

    async fn commit_under(&self, batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error> {
        (self.race)(self.inner.clone(), batch.close().to_vec()).await;
        self.inner.commit_under(batch, terms).await
    }

    async fn rows_of(&self, revisions: Vec<Revision>) -> Result<BlockStream, Error> {
        let blocks = self.inner.rows_of(revisions).await?;
        let Some(gate) = self.blocks.clone() else { return Ok(blocks) };
        Ok(Box::pin(blocks.then(move |block| {
            let gate = gate.clone();
            async move {
                gate.pass().await;
                block
            }
        })))
    }

    fn shared(&self) -> bool {
        // The test writes like another server.
        true
    }
}
