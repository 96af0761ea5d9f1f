//! How many bytes of request bodies are held at the same time, by all users together and by one of them.
//!
//! Bytes count as they come, so who announces a long body and does not send it takes no room. Who finds none waits in the line
//! of his user. The first body that finds none is completed all the same, one in each share and one in all: otherwise bodies
//! that have come in part could wait for one another.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::Counter;
use tokio::sync::oneshot;

use crate::api::error::Error;
use crate::tree::Text;

/// The part of its time for which a request waits for room for its body, as upstream's requests wait in a queue.
const WAIT: u32 = 4;
/// The part of all room that the bodies of one user may take.
const SHARE: usize = 8;

/// The room for request bodies.
#[derive(Debug)]
pub struct BodyBudget {
    ledger: Mutex<Ledger>,
    wait: Duration,
    /// Counts bodies that waited in vain.
    refused: Counter,
}

/// The room that the body of one request takes, until this value is dropped.
#[derive(Debug)]
pub struct Room<'a> {
    budget: &'a BodyBudget,
    user: Text,
    id: u64,
    bytes: usize,
}

/// All sizes are in bytes.
#[derive(Debug)]
struct Ledger {
    all: usize,
    of_user: usize,
    used: usize,
    /// Users whose bodies take room or wait for it.
    users: BTreeMap<Text, Share>,
    /// The body that may exceed `all`.
    foremost: Option<u64>,
    /// Whether a body may wait because `all` is taken.
    is_full: bool,
    /// The number of the newest body.
    newest: u64,
}

/// The memory that the bodies of one user take.
#[derive(Debug, Default)]
struct Share {
    used: usize,
    /// The body that may exceed the user's share.
    foremost: Option<u64>,
    /// The memory that each body takes.
    bodies: BTreeMap<u64, usize>,
    /// Bodies that wait for more room, the oldest first.
    line: BTreeMap<u64, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    bytes: usize,
    granted: oneshot::Sender<()>,
}

impl BodyBudget {
    /// `all` is in bytes, `request_time` the longest duration of a request.
    pub fn new(all: usize, request_time: Duration, refused: Counter) -> Self {
        let ledger = Ledger {
            all,
            of_user: all / SHARE,
            used: 0,
            users: BTreeMap::new(),
            foremost: None,
            is_full: false,
            newest: 0,
        };
        Self { ledger: Mutex::new(ledger), wait: request_time / WAIT, refused }
    }

    /// The room of a body of this user, which takes none yet.
    pub fn room(&self, user: &str) -> Room<'_> {
        let mut ledger = self.ledger();
        ledger.newest += 1;
        Room { budget: self, user: user.into(), id: ledger.newest, bytes: 0 }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Room<'_> {
    /// Takes room for so many bytes of the body in all, and waits if there is none.
    pub async fn extend_to(&mut self, bytes: usize) -> Result<(), Error> {
        let more = bytes.saturating_sub(self.bytes);
        if more == 0 {
            return Ok(());
        }
        let waiting = self.budget.ledger().take_or_wait(&self.user, self.id, more);
        self.bytes += more;
        let Some(granted) = waiting else { return Ok(()) };
        match tokio::time::timeout(self.budget.wait, granted).await {
            Ok(Ok(())) => Ok(()),
            _ => {
                self.budget.refused.increment(1);
                Err(Error::too_many("bytes of request bodies"))
            }
        }
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.budget.ledger().give_back(&self.user, self.id);
        }
    }
}

impl Ledger {
    /// Takes room for more bytes of a body. If there is none, the body waits until it is granted.
    fn take_or_wait(&mut self, user: &Text, id: u64, bytes: usize) -> Option<oneshot::Receiver<()>> {
        let mut share = self.users.remove(user).unwrap_or_default();
        let is_next = share.line.is_empty() || share.foremost == Some(id);
        let waiting = if is_next && self.takes(&mut share, id, bytes) {
            None
        } else {
            let (granted, waiting) = oneshot::channel();
            share.line.insert(id, Waiting { bytes, granted });
            Some(waiting)
        };
        self.users.insert(user.clone(), share);
        waiting
    }

    /// Takes the room if there is some, also for the first body that finds none.
    fn takes(&mut self, share: &mut Share, id: u64, bytes: usize) -> bool {
        if share.used + bytes > self.of_user && *share.foremost.get_or_insert(id) != id {
            return false;
        }
        if self.used + bytes > self.all && *self.foremost.get_or_insert(id) != id {
            self.is_full = true;
            return false;
        }
        *share.bodies.entry(id).or_default() += bytes;
        share.used += bytes;
        self.used += bytes;
        true
    }

    /// Gives back all that a body takes, and grants it to those who wait.
    fn give_back(&mut self, user: &Text, id: u64) {
        let Some(mut share) = self.users.remove(user) else { return };
        let bytes = share.bodies.remove(&id).unwrap_or_default();
        share.used -= bytes;
        self.used -= bytes;
        share.line.remove(&id);
        share.foremost = share.foremost.filter(|foremost| *foremost != id);
        self.foremost = self.foremost.filter(|foremost| *foremost != id);
        self.grant(&mut share);
        if !share.bodies.is_empty() || !share.line.is_empty() {
            self.users.insert(user.clone(), share);
        }
        if std::mem::take(&mut self.is_full) {
            self.grant_others();
        }
    }

    /// Grants room to bodies of all users, as long as there is some. Whose body has waited longest goes first.
    fn grant_others(&mut self) {
        let mut users = std::mem::take(&mut self.users);
        let mut lines: Vec<&mut Share> = users.values_mut().filter(|share| !share.line.is_empty()).collect();
        lines.sort_by_key(|share| share.line.keys().next().copied());
        lines.into_iter().for_each(|share| self.grant(share));
        self.users = users;
    }

    /// Grants room to bodies of one user, as long as there is some.
    fn grant(&mut self, share: &mut Share) {
        while let Some((id, waiting)) = share.line.pop_first() {
            if !self.takes(share, id, waiting.bytes) {
                share.line.insert(id, waiting);
                return;
            }
            // Whoever has gone meanwhile gives it back when his room is dropped.
            let _ = waiting.granted.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const KB: usize = 1 << 10;

    fn budget(all: usize) -> BodyBudget {
        BodyBudget::new(all, Duration::from_secs(60), Counter::noop())
    }

    async fn taken<'a>(budget: &'a BodyBudget, user: &str, bytes: usize) -> Room<'a> {
        let mut room = budget.room(user);
        room.extend_to(bytes).now_or_never().expect("room").expect("room");
        room
    }

    fn is_free(budget: &BodyBudget) -> bool {
        let ledger = budget.ledger();
        ledger.used == 0 && ledger.users.is_empty() && ledger.foremost.is_none()
    }

    #[tokio::test]
    async fn bodies_that_have_come_in_part_do_not_wait_for_one_another() {
        let budget = budget(80 * KB);
        let mut rooms = Vec::new();
        for _ in 0..4 {
            rooms.push(taken(&budget, "alice", 2 * KB).await);
        }
        // Each of them needs 8 KB in all.
        while let Some(mut room) = rooms.pop() {
            room.extend_to(8 * KB).now_or_never().expect("it can be completed").expect("room");
        }
        assert!(is_free(&budget));
    }

    #[tokio::test]
    async fn whoever_leaves_the_line_takes_nothing() {
        let budget = budget(8 * KB);
        let held = [taken(&budget, "alice", KB).await, taken(&budget, "alice", KB).await];
        let mut gone = budget.room("alice");
        assert!(gone.extend_to(KB).now_or_never().is_none());
        drop(gone);
        let mut granted = budget.room("alice");
        let mut waiting = Box::pin(granted.extend_to(KB));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(held);
        // It was granted what it does not look at.
        drop(waiting);
        drop(granted);
        assert!(is_free(&budget));
    }
}
