//! Turns of connections: the order in which they are polled when one user keeps the processors busy.
//!
//! tokio polls tasks in the order in which they were woken, and asks the system for new bytes only now and then. Beside a
//! user with many busy connections, the request of another user would wait until it is noticed, and then behind all of them.
//! So time is counted per user, and tasks of a *heavy* user, one who takes a large part of the processors, work in slices:
//! when they have had one on a thread, the others of them stand back until this thread has asked the system and has run what
//! was woken by that. And they give up the processor to a store's threads, for which others may wait. While nobody else asks
//! anything, nobody stands back.

use std::cell::Cell;
use std::hash::BuildHasher as _;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use crate::scheduling::{self, Scheduling};

/// Users by the hash of their names. Two that meet here count as one.
const USERS: usize = 1024;
/// The user of connections that have not shown one yet.
pub const UNKNOWN: u16 = 0;
/// How long time is counted before it is judged.
const WINDOW: Duration = Duration::from_millis(50);
/// The part of all processors' time that makes a user heavy.
const HEAVY_PART: u32 = 8;
/// How long heavy users stand back after somebody else has asked something.
const CONSIDERATE: Duration = Duration::from_secs(1);
/// How long tasks of heavy users may work on a thread until others are looked for.
const SLICE: Duration = Duration::from_micros(100);
/// A task that has stood back so often is polled, whatever else there is.
const PATIENCE: u32 = 64;
/// The number of polls of which one is timed, and counts for all, unless somebody else is heavy.
const SAMPLED: u32 = 16;

/// The time that users have taken, shared by all connections of a process: a user of one cluster is not one of another.
#[derive(Debug)]
pub struct Turns {
    keys: RandomState,
    start: Instant,
    processors: u32,
    /// When the window began, in nanoseconds since the start, as all times here.
    window: AtomicU64,
    considerate_until: AtomicU64,
    users: Box<[Usage]>,
    scheduling: Scheduling,
}

#[derive(Debug, Default)]
struct Usage {
    /// The nanoseconds that the user has taken in this window.
    spent: AtomicU64,
    is_seen: AtomicBool,
    /// Whether the user is heavy, judged by the window before.
    is_heavy: AtomicBool,
}

impl Usage {
    /// Whether there is nothing to judge.
    fn is_idle(&self) -> bool {
        let Self { spent, is_seen, is_heavy } = self;
        let is_used = is_seen.load(Ordering::Relaxed) || is_heavy.load(Ordering::Relaxed);
        spent.load(Ordering::Relaxed) == 0 && !is_used
    }
}

/// The work of heavy tasks on a thread since it last asked the system for new bytes.
#[derive(Clone, Copy)]
struct Round {
    number: u64,
    spent: Duration,
}

thread_local! {
    static ROUND: Cell<Round> = const { Cell::new(Round { number: 0, spent: Duration::ZERO }) };
    static DRAWN: Cell<u32> = const { Cell::new(0) };
}

/// Draws whether the next poll is timed. Polls of busy connections come in patterns, such as a request and then nothing, so a
/// count of them could pick nothing but the short ones for ever.
fn is_sampled() -> bool {
    // The linear congruential generator of Numerical Recipes, whose upper bits are random enough.
    let drawn = DRAWN.get().wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    DRAWN.set(drawn);
    drawn < u32::MAX / SAMPLED
}

/// The place of a task among those that stand back.
#[derive(Debug, Default)]
pub struct Turn {
    /// The round of the thread in which it stood back.
    stood_back: Option<u64>,
    times: u32,
}

impl Turn {
    /// Polls a task of this user, or stands back.
    pub fn poll<T>(
        &mut self,
        turns: &Turns,
        user: u16,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        if turns.stands_back(user) {
            self.poll_slice(turns, user, context, poll)
        } else {
            turns.poll(user, context, poll)
        }
    }

    fn poll_slice<T>(
        &mut self,
        turns: &Turns,
        user: u16,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let mut round = ROUND.get();
        if self.stood_back.take() == Some(round.number) {
            // The thread has asked the system since then.
            round = Round { number: round.number + 1, spent: Duration::ZERO };
            ROUND.set(round);
        }
        if round.spent >= SLICE && self.times < PATIENCE {
            self.times += 1;
            self.stood_back = Some(round.number);
            // Wakes the task when the thread has run what was ready and has asked the system.
            let _ = pin!(tokio::task::yield_now()).poll(context);
            return Poll::Pending;
        }
        self.times = 0;
        if turns.scheduling.has_store_work() {
            std::thread::yield_now();
        }
        let began = Instant::now();
        let polled = poll(context);
        let spent = began.elapsed();
        ROUND.set(Round { spent: round.spent + spent, ..round });
        turns.add(user, spent, began);
        polled
    }
}

impl Turns {
    pub fn new(scheduling: Scheduling) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
        Self {
            keys: RandomState::default(),
            start: Instant::now(),
            processors,
            window: AtomicU64::new(0),
            considerate_until: AtomicU64::new(0),
            users: (0..USERS).map(|_| Usage::default()).collect(),
            scheduling,
        }
    }

    /// The number under which a user's time is counted. Among several clusters each has users of its own.
    pub fn user(&self, cluster: Option<&str>, name: &str) -> u16 {
        (self.keys.hash_one((cluster, name)) % (USERS as u64 - 1)) as u16 + 1
    }

    /// Whether somebody keeps the processors busy, and it is not this user.
    pub fn is_beside_heavy(&self, user: u16) -> bool {
        self.considerate_until.load(Ordering::Relaxed) != 0
            && !self.usage(user).is_heavy.load(Ordering::Relaxed)
    }

    /// Whether this user keeps the processors busy, and somebody else asks something.
    pub fn stands_back(&self, user: u16) -> bool {
        self.considerate_until.load(Ordering::Relaxed) != 0
            && self.usage(user).is_heavy.load(Ordering::Relaxed)
    }

    fn poll<T>(
        &self,
        user: u16,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let usage = self.usage(user);
        if !usage.is_seen.load(Ordering::Relaxed) {
            usage.is_seen.store(true, Ordering::Relaxed);
        }
        // Beside a heavy user, all polls of others are timed: they are few, and one that counts for many could make its user
        // heavy.
        let counts_for = if self.is_beside_heavy(user) { 1 } else { SAMPLED };
        if counts_for > 1 && !is_sampled() {
            return poll(context);
        }
        // One poll in which the thread has lost the processor for a while must not make a user heavy.
        let before = scheduling::processor_time();
        let polled = poll(context);
        let spent = scheduling::processor_time().saturating_sub(before);
        self.add(user, spent * counts_for, Instant::now());
        polled
    }

    fn add(&self, user: u16, spent: Duration, now: Instant) {
        self.usage(user).spent.fetch_add(nanos(spent), Ordering::Relaxed);
        let now = nanos(now.saturating_duration_since(self.start));
        let window = self.window.load(Ordering::Relaxed);
        let passed = now.saturating_sub(window);
        let is_over = passed >= nanos(WINDOW);
        if is_over && self.window.compare_exchange(window, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.judge(passed, now);
        }
    }

    /// Says who is heavy after a window of this length.
    fn judge(&self, passed: u64, now: u64) {
        let most = passed * u64::from(self.processors) / u64::from(HEAVY_PART);
        let (mut any_heavy, mut any_other) = (false, false);
        for (user, usage) in self.users.iter().enumerate() {
            if usage.is_idle() {
                continue;
            }
            let is_heavy = usage.spent.swap(0, Ordering::Relaxed) >= most;
            let is_seen = usage.is_seen.swap(false, Ordering::Relaxed);
            any_heavy |= is_heavy;
            // A connection without a request may be anybody's, also one more of the heavy user's.
            any_other |= is_seen && !is_heavy && user != usize::from(UNKNOWN);
            if usage.is_heavy.load(Ordering::Relaxed) != is_heavy {
                usage.is_heavy.store(is_heavy, Ordering::Relaxed);
            }
        }
        let until = match self.considerate_until.load(Ordering::Relaxed) {
            _ if any_heavy && any_other => now + nanos(CONSIDERATE),
            until if any_heavy && until > now => until,
            _ => 0,
        };
        self.considerate_until.store(until, Ordering::Relaxed);
    }

    fn usage(&self, user: u16) -> &Usage {
        &self.users[usize::from(user) % USERS]
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::{Arc, Mutex};

    use super::*;

    const WINDOW_NANOS: u64 = WINDOW.as_nanos() as u64;

    /// A heavy user and another one, who has asked something.
    fn busy() -> (Arc<Turns>, u16, u16) {
        let turns = Turns::new(Scheduling::default());
        let heavy = turns.user(None, "heavy");
        let light =
            (0..).map(|i| turns.user(None, &format!("light-{i}"))).find(|user| *user != heavy).expect("one");
        turns.usage(heavy).spent.store(WINDOW_NANOS, Ordering::Relaxed);
        for user in [heavy, light] {
            turns.usage(user).is_seen.store(true, Ordering::Relaxed);
        }
        // So that one thread's time is all that there was.
        turns.judge(WINDOW_NANOS / u64::from(turns.processors), nanos(turns.start.elapsed()));
        (Arc::new(turns), heavy, light)
    }

    #[test]
    fn who_takes_much_is_heavy_while_others_ask() {
        let (turns, heavy, light) = busy();
        assert!(turns.stands_back(heavy) && turns.is_beside_heavy(light));
        assert!(!turns.stands_back(light) && !turns.is_beside_heavy(heavy));
        let now = nanos(turns.start.elapsed());
        let spend = || turns.usage(heavy).spent.store(u64::MAX / 2, Ordering::Relaxed);
        spend();
        turns.judge(WINDOW_NANOS, now + nanos(CONSIDERATE) / 2);
        assert!(turns.stands_back(heavy), "the other user may ask again");
        spend();
        turns.judge(WINDOW_NANOS, now + 2 * nanos(CONSIDERATE));
        assert!(!turns.stands_back(heavy), "nobody else has asked for long");
        turns.judge(WINDOW_NANOS, now + 3 * nanos(CONSIDERATE));
        assert!(!turns.is_beside_heavy(light), "nobody takes much any more");
    }

    #[test]
    fn a_flood_in_one_cluster_is_no_heavy_user_of_another() {
        let turns = Turns::new(Scheduling::default());
        // The hash has a key, by which two of them may have the same number.
        let numbers = (0..64).map(|cluster| turns.user(Some(&format!("c-{cluster}")), "alice"));
        let numbers: std::collections::BTreeSet<u16> = numbers.collect();
        let [a, b] = [numbers.first(), numbers.last()].map(|number| *number.expect("one"));
        assert_ne!(a, b);
        turns.usage(a).spent.store(WINDOW_NANOS, Ordering::Relaxed);
        for user in [a, b] {
            turns.usage(user).is_seen.store(true, Ordering::Relaxed);
        }
        turns.judge(WINDOW_NANOS / u64::from(turns.processors), 0);
        assert!(turns.stands_back(a) && !turns.stands_back(b) && turns.is_beside_heavy(b));
    }

    /// It may be one more of the heavy user's, who would then stand back for nobody.
    #[test]
    fn a_connection_without_a_request_is_nobody_else() {
        let turns = Turns::new(Scheduling::default());
        let heavy = turns.user(None, "heavy");
        turns.usage(heavy).spent.store(WINDOW_NANOS, Ordering::Relaxed);
        for user in [heavy, UNKNOWN] {
            turns.usage(user).is_seen.store(true, Ordering::Relaxed);
        }
        turns.judge(WINDOW_NANOS / u64::from(turns.processors), 0);
        assert!(!turns.stands_back(heavy));
    }

    #[test]
    fn of_polls_in_a_pattern_all_are_timed_now_and_then() {
        for period in [2, 3, 4, 8, 16] {
            let mut timed = vec![0; period];
            (0..period * 1600).filter(|_| is_sampled()).for_each(|poll| timed[poll % period] += 1);
            assert!(timed.iter().all(|times| (50..200).contains(times)), "{timed:?}");
        }
    }

    /// It would be taken for heavy otherwise, and wait behind the heavy one.
    #[test]
    fn of_a_user_beside_a_heavy_one_all_computing_counts_and_no_waiting() {
        const POLLS: u32 = 16;
        const COMPUTED: Duration = Duration::from_micros(200);
        let (turns, _, light) = busy();
        // No window ends meanwhile.
        turns.window.store(u64::MAX, Ordering::Relaxed);
        let context = &mut Context::from_waker(std::task::Waker::noop());
        let mut waited = Duration::ZERO;
        for _ in 0..POLLS {
            let _ = turns.poll(light, context, |_| {
                let (began, before) = (Instant::now(), scheduling::processor_time());
                std::thread::sleep(5 * COMPUTED);
                while scheduling::processor_time() - before < COMPUTED {
                    std::hint::spin_loop();
                }
                waited += began.elapsed() - COMPUTED;
                Poll::Ready(())
            });
        }
        let spent = Duration::from_nanos(turns.usage(light).spent.load(Ordering::Relaxed));
        assert!(spent >= POLLS * COMPUTED, "{spent:?}");
        assert!(spent < POLLS * COMPUTED + waited / 2, "{spent:?} and {waited:?}");
    }

    #[tokio::test]
    async fn what_is_woken_meanwhile_does_not_wait_for_all_tasks_of_a_heavy_user() {
        let (turns, heavy, light) = busy();
        let order = Arc::new(Mutex::new(Vec::new()));
        let task = |user: u16, first: Option<u16>| {
            let (turns, order) = (turns.clone(), order.clone());
            let mut turn = Turn::default();
            poll_fn(move |context| {
                turn.poll(&turns, user, context, |_| {
                    let began = Instant::now();
                    while began.elapsed() < SLICE {
                        std::hint::spin_loop();
                    }
                    order.lock().expect("a lock").push(user);
                    if let Some(light) = first {
                        let (turns, order) = (turns.clone(), order.clone());
                        let mut turn = Turn::default();
                        tokio::spawn(poll_fn(move |context| {
                            turn.poll(&turns, light, context, |_| {
                                order.lock().expect("a lock").push(light);
                                Poll::Ready(())
                            })
                        }));
                    }
                    Poll::Ready(())
                })
            })
        };
        let tasks: Vec<_> = (0..10).map(|i| tokio::spawn(task(heavy, (i == 0).then_some(light)))).collect();
        for task in tasks {
            task.await.expect("it ends");
        }
        let order = order.lock().expect("a lock").clone();
        assert_eq!(order.iter().filter(|user| **user == heavy).count(), 10);
        assert!(order.iter().position(|user| *user == light).expect("it ran") <= 2, "{order:?}");
    }
}
