//! The store's current clock. Only one query runs at a time; all callers that arrive while it runs share the next one.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::Counter;
use tokio::sync::Mutex;

use crate::storage::{Clock, Error};

/// An answer may only be given to callers that arrived before its query started: for others it could miss a write that
/// was answered in between.
pub struct Freshness {
    questions: Counter,
    started: AtomicU64,
    answered: Mutex<Option<(u64, Result<Clock, Error>)>>,
}

impl Freshness {
    pub fn new(questions: Counter) -> Self {
        Self { questions, started: AtomicU64::new(0), answered: Mutex::default() }
    }

    pub async fn ask(&self, question: impl AsyncFnOnce() -> Result<Clock, Error>) -> Result<Clock, Error> {
        let mine = self.started.load(Ordering::SeqCst) + 1;
        let mut answered = self.answered.lock().await;
        if let Some((number, answer)) = &*answered
            && *number >= mine
        {
            return answer.clone();
        }
        let number = self.started.fetch_add(1, Ordering::SeqCst) + 1;
        self.questions.increment(1);
        let answer = question().await;
        *answered = Some((number, answer.clone()));
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use futures_util::FutureExt as _;
    use futures_util::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::revision::Revision;

    #[tokio::test]
    async fn all_who_ask_during_a_question_share_the_next_one() {
        let (freshness, asked, answers) =
            (Freshness::new(Counter::noop()), AtomicUsize::new(0), Semaphore::new(0));
        let ask = || {
            freshness.ask(async || {
                let number = asked.fetch_add(1, Ordering::SeqCst) as u64 + 1;
                answers.acquire().await.expect("never closed").forget();
                Ok(Clock { revision: Revision(number), compacted: Revision(0) })
            })
        };
        let mut first = Box::pin(ask());
        assert!(first.as_mut().now_or_never().is_none());
        // These callers arrive while the first query runs; its answer may be too old for them.
        let mut others = Box::pin(join_all((0..100).map(|_| ask())));
        assert!(others.as_mut().now_or_never().is_none());
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        answers.add_permits(2);
        assert_eq!(first.await.expect("an answer").revision, Revision(1));
        for answer in others.await {
            assert_eq!(answer.expect("an answer").revision, Revision(2));
        }
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }
}
