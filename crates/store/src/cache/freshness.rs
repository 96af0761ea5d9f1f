//! The store's current clock. Callers share queries: one that is started after a caller has come is good for it. Where the
//! database is far away several are under way at once, so that nobody waits for one that was asked before he came, and
//! then for his own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::Counter;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::storage::{Clock, Error};

/// The most queries under way. The store has connections for so many.
const MOST: u32 = 6;
/// A query that takes less is worth waiting for.
const NEAR: Duration = Duration::from_micros(500);

/// An answer may only be given to callers that arrived before its query started: for others it could miss a write that
/// was answered in between.
pub struct Freshness {
    questions: Counter,
    /// The number of the newest query. It grows before the query is sent, under the lock.
    started: AtomicU64,
    state: Mutex<State>,
    landed: Notify,
}

#[derive(Default)]
struct State {
    under_way: Vec<u64>,
    /// When the last query was started.
    last: Option<Instant>,
    /// How long queries take.
    takes: Duration,
    /// The newest answer, with the number of its query.
    answered: Option<(u64, Result<Clock, Error>)>,
}

enum Turn {
    Answered(Result<Clock, Error>),
    Ask(u64),
    /// Wait until a query has landed, or this time has come.
    Wait(Option<Instant>),
}

/// A query under way. Its caller may go away.
struct Question<'a> {
    of: &'a Freshness,
    number: u64,
}

impl Freshness {
    pub fn new(questions: Counter) -> Self {
        Self { questions, started: AtomicU64::new(0), state: Mutex::default(), landed: Notify::new() }
    }

    /// The number of the first query that is good for whoever comes now.
    pub fn next(&self) -> u64 {
        self.started.load(Ordering::Acquire) + 1
    }

    /// The answer of query `mine` or of a later one.
    pub async fn ask(
        &self,
        mine: u64,
        question: impl AsyncFnOnce() -> Result<Clock, Error>,
    ) -> Result<Clock, Error> {
        loop {
            let mut landed = std::pin::pin!(self.landed.notified());
            landed.as_mut().enable();
            let turn = self.state().turn(mine, &self.started, Instant::now());
            match turn {
                Turn::Answered(answer) => return answer,
                Turn::Ask(number) => {
                    self.questions.increment(1);
                    let begun = Instant::now();
                    let asked = Question { of: self, number };
                    let answer = question().await;
                    self.state().note(number, begun.elapsed(), &answer);
                    drop(asked);
                    return answer;
                }
                Turn::Wait(None) => landed.await,
                Turn::Wait(Some(due)) => tokio::select! {
                    () = landed => {}
                    () = sleep_until(due) => {}
                },
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The next step of a caller for whom queries from number `mine` on are good.
    fn turn(&mut self, mine: u64, started: &AtomicU64, now: Instant) -> Turn {
        if let Some((number, answer)) = &self.answered
            && *number >= mine
        {
            return Turn::Answered(answer.clone());
        }
        if self.under_way.iter().any(|number| *number >= mine) {
            return Turn::Wait(None);
        }
        // Queries are spread over the time that one takes, so that the next one to land is never far.
        let most = self.most();
        let due = self.last.map(|last| last + self.takes / most);
        if self.under_way.len() >= most as usize {
            return Turn::Wait(None);
        }
        if let Some(due) = due
            && !self.under_way.is_empty()
            && now < due
        {
            return Turn::Wait(Some(due));
        }
        let number = started.fetch_add(1, Ordering::AcqRel) + 1;
        self.under_way.push(number);
        self.last = Some(now);
        Turn::Ask(number)
    }

    fn most(&self) -> u32 {
        if self.takes < NEAR { 1 } else { MOST }
    }

    fn note(&mut self, number: u64, took: Duration, answer: &Result<Clock, Error>) {
        // The shortest of late: where processors are busy a query takes long, and more of them make them busier.
        self.takes = match self.takes {
            Duration::ZERO => took,
            takes if took < takes => took,
            takes => takes + (took - takes) / 64,
        };
        if self.answered.as_ref().is_none_or(|(newest, _)| *newest < number) {
            self.answered = Some((number, answer.clone()));
        }
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.of.state().under_way.retain(|number| *number != self.number);
        self.of.landed.notify_waiters();
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
    async fn who_came_before_a_question_takes_its_answer() {
        let (freshness, asked) = (Freshness::new(Counter::noop()), AtomicUsize::new(0));
        let question = async || {
            let number = asked.fetch_add(1, Ordering::SeqCst) as u64 + 1;
            Ok(Clock { revision: Revision(number), compacted: Revision(0), lag: 0 })
        };
        let revision = |answer: Result<Clock, Error>| answer.map(|clock| clock.revision.0).ok();
        assert_eq!(revision(freshness.ask(freshness.next(), question).await), Some(1));
        let came = freshness.next();
        assert_eq!(revision(freshness.ask(came, question).await), Some(2), "1 was asked before");
        assert_eq!(revision(freshness.ask(came, question).await), Some(2));
        assert_eq!(revision(freshness.ask(freshness.next(), question).await), Some(3));
        assert_eq!(revision(freshness.ask(came, question).await), Some(3));
    }

    #[tokio::test]
    async fn all_who_ask_during_a_question_share_the_next_one() {
        let (freshness, asked, answers) =
            (Freshness::new(Counter::noop()), AtomicUsize::new(0), Semaphore::new(0));
        let ask = || {
            freshness.ask(freshness.next(), async || {
                let number = asked.fetch_add(1, Ordering::SeqCst) as u64 + 1;
                answers.acquire().await.expect("never closed").forget();
                Ok(Clock { revision: Revision(number), compacted: Revision(0), lag: 0 })
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

    /// How long callers wait who come one after the other, at these moments, while a query takes so long.
    fn waits(takes: Duration, came: impl Iterator<Item = Duration>) -> Vec<Duration> {
        let start = Instant::now();
        let answer = Ok(Clock { revision: Revision(1), compacted: Revision(0), lag: 0 });
        let (mut state, started) = (State { takes, ..State::default() }, AtomicU64::new(0));
        let mut callers: Vec<(Instant, Option<u64>)> = came.map(|came| (start + came, None)).collect();
        let (mut queries, mut waits, mut now) = (Vec::new(), Vec::new(), start);
        while !callers.is_empty() {
            queries.retain(|(number, begun)| {
                let under_way = *begun + takes > now;
                if !under_way {
                    state.note(*number, takes, &answer);
                    state.under_way.retain(|other| other != number);
                }
                under_way
            });
            callers.retain_mut(|(came, mine)| {
                if *came > now {
                    return true;
                }
                let mine = *mine.get_or_insert(started.load(Ordering::Acquire) + 1);
                match state.turn(mine, &started, now) {
                    Turn::Ask(number) => {
                        queries.push((number, now));
                        waits.push(now + takes - *came);
                        false
                    }
                    Turn::Answered(_) => {
                        waits.push(now - *came);
                        false
                    }
                    Turn::Wait(_) => true,
                }
            });
            now += Duration::from_micros(100);
        }
        waits
    }

    /// A query far away does not hold up a caller that comes while it is under way.
    #[test]
    fn a_question_far_away_is_waited_for_once() {
        let away = Duration::from_millis(12);
        let waits = waits(away, (0..400).map(|n| Duration::from_micros(n * 500)));
        assert_eq!(waits.len(), 400);
        let longest = waits.iter().max().copied().unwrap_or_default();
        // With one query at a time, some would wait for almost two.
        assert!(longest <= away + away / 2, "{longest:?}");
    }

    /// A caller that goes away takes its query along; those who wait for it ask again.
    #[tokio::test]
    async fn a_question_that_is_given_up_is_asked_again() {
        let freshness = Freshness::new(Counter::noop());
        let mut gone = Box::pin(freshness.ask(freshness.next(), async || std::future::pending().await));
        assert!(gone.as_mut().now_or_never().is_none());
        let mut waiting = Box::pin(freshness.ask(freshness.next(), async || {
            Ok(Clock { revision: Revision(7), compacted: Revision(0), lag: 0 })
        }));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(gone);
        assert_eq!(waiting.await.expect("an answer").revision, Revision(7));
    }
}
