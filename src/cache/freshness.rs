//! How far is the store? One question at a time; all who ask while one is under way share the next.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use crate::storage::{Backend, Clock, Error};

/// An answer may only be used by those who asked before its question was put: an older one could miss a write that
/// was answered in between.
#[derive(Default)]
pub struct Freshness {
    started: AtomicU64,
    answered: Mutex<Option<(u64, Result<Clock, Error>)>>,
}

impl Freshness {
    pub async fn ask(&self, backend: &dyn Backend) -> Result<Clock, Error> {
        let mine = self.started.load(Ordering::SeqCst) + 1;
        let mut answered = self.answered.lock().await;
        if let Some((question, answer)) = &*answered
            && *question >= mine
        {
            return answer.clone();
        }
        let question = self.started.fetch_add(1, Ordering::SeqCst) + 1;
        let answer = backend.clock().await;
        *answered = Some((question, answer.clone()));
        answer
    }
}
