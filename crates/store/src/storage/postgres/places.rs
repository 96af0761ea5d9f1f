//! Places of a pool: the right to have a connection, shared fairly by the stores that use the pool.
//!
//! A store that is alone may take all places. Where there are several, each has a share, its part of the places by their
//! number; no store takes so many that less than a share is left for another one, and a place that becomes free goes to the
//! waiting store that has the fewest. So a store that floods the database slows down itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The number by which a pool knows a store.
pub type StoreKey = u64;

/// The kinds of work that have places of their own, so that none waits for a slower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Batches, upkeep, and short reads.
    Calls,
    /// Lists from SQL, which last as long as the slow client that reads them.
    Scans,
    /// Questions on which the holders of other places wait: what became of a batch, and who blocks it. They take a place
    /// of [`Lane::Calls`] if one is free.
    Repairs,
}

impl Lane {
    const ALL: [Lane; 3] = [Lane::Calls, Lane::Scans, Lane::Repairs];
}

/// The places of each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    pub calls: usize,
    pub scans: usize,
    pub repairs: usize,
}

/// Clones share their places.
#[derive(Clone)]
pub struct Places(Arc<Mutex<State>>);

struct State {
    stores: BTreeSet<StoreKey>,
    lines: [Line; 3],
}

/// The places of a lane, and those who wait for one.
struct Line {
    size: usize,
    taken: usize,
    /// How many each store has; no entry for none.
    held: BTreeMap<StoreKey, usize>,
    /// The waiting calls of each store in their order; no entry for none.
    waiting: BTreeMap<StoreKey, VecDeque<oneshot::Sender<Place>>>,
}

/// A place that is taken until it is dropped.
pub struct Place {
    places: Places,
    store: StoreKey,
    lane: Lane,
}

/// The store has left the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left;

impl Places {
    pub fn new(sizes: Sizes) -> Self {
        let line = |size| Line { size, taken: 0, held: BTreeMap::new(), waiting: BTreeMap::new() };
        let lines = [line(sizes.calls), line(sizes.scans), line(sizes.repairs)];
        Self(Arc::new(Mutex::new(State { stores: BTreeSet::new(), lines })))
    }

    pub fn join(&self, store: StoreKey) {
        self.state().stores.insert(store);
    }

    /// Ends the waits of a store, which takes no more places. Returns whether it was the last one.
    pub fn leave(&self, store: StoreKey) -> bool {
        let mut state = self.state();
        state.stores.remove(&store);
        let given_up: Vec<_> = state.lines.iter_mut().map(|line| line.waiting.remove(&store)).collect();
        let unused: Vec<_> = Lane::ALL.into_iter().flat_map(|lane| self.pass_on(&mut state, lane)).collect();
        let last = state.stores.is_empty();
        drop(state);
        drop((given_up, unused));
        last
    }

    /// Waits for a place. May be given up at any time.
    pub async fn take(&self, store: StoreKey, lane: Lane) -> Result<Place, Left> {
        let place = {
            let mut state = self.state();
            if !state.stores.contains(&store) {
                return Err(Left);
            }
            let lanes = if lane == Lane::Repairs { &[Lane::Calls, Lane::Repairs][..] } else { &[lane] };
            let free = lanes.iter().find(|lane| state.may_take(store, **lane)).copied();
            match free {
                Some(lane) => return Ok(self.give(&mut state, store, lane)),
                None => {
                    let (give, place) = oneshot::channel();
                    let queue = state.lines[lane as usize].waiting.entry(store).or_default();
                    // All wait equally long, so the first ones are given up first.
                    while queue.front().is_some_and(|first| first.is_closed()) {
                        queue.pop_front();
                    }
                    queue.push_back(give);
                    place
                }
            }
        };
        place.await.map_err(|_| Left)
    }

    /// The places that are taken, and all there are.
    pub fn taken(&self) -> (usize, usize) {
        let state = self.state();
        let sum = |of: fn(&Line) -> usize| state.lines.iter().map(of).sum();
        (sum(|line| line.taken), sum(|line| line.size))
    }

    fn give(&self, state: &mut State, store: StoreKey, lane: Lane) -> Place {
        let line = &mut state.lines[lane as usize];
        line.taken += 1;
        *line.held.entry(store).or_default() += 1;
        Place { places: self.clone(), store, lane }
    }

    /// Hands free places to those who wait. Returns the places of calls that were given up meanwhile, which are to be
    /// dropped once the lock is released.
    fn pass_on(&self, state: &mut State, lane: Lane) -> Vec<Place> {
        let mut unused = Vec::new();
        while let Some(store) = state.next(lane) {
            let line = &mut state.lines[lane as usize];
            let queue = line.waiting.get_mut(&store);
            let waiting = queue.and_then(|queue| queue.pop_front());
            if line.waiting.get(&store).is_none_or(VecDeque::is_empty) {
                line.waiting.remove(&store);
            }
            if let Some(waiting) = waiting.filter(|waiting| !waiting.is_closed()) {
                unused.extend(waiting.send(self.give(state, store, lane)).err());
            }
        }
        unused
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn may_take(&self, store: StoreKey, lane: Lane) -> bool {
        let line = &self.lines[lane as usize];
        line.taken < line.size && line.held(store) < self.most(line.size)
    }

    /// The most places of a lane that one store may have.
    fn most(&self, size: usize) -> usize {
        match self.stores.len() {
            0 | 1 => size,
            stores => (size - (size / stores).max(1)).max(1),
        }
    }

    /// The store that gets the next free place.
    fn next(&self, lane: Lane) -> Option<StoreKey> {
        let line = &self.lines[lane as usize];
        let waiting = line.waiting.keys().copied().filter(|store| self.may_take(*store, lane));
        waiting.min_by_key(|store| line.held(*store))
    }
}

impl Line {
    fn held(&self, store: StoreKey) -> usize {
        self.held.get(&store).copied().unwrap_or_default()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.places.state();
        let line = &mut state.lines[self.lane as usize];
        line.taken -= 1;
        if let Some(held) = line.held.get_mut(&self.store) {
            *held -= 1;
            if *held == 0 {
                line.held.remove(&self.store);
            }
        }
        let unused = self.places.pass_on(&mut state, self.lane);
        drop(state);
        drop(unused);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn places(calls: usize, stores: &[StoreKey]) -> Places {
        let places = Places::new(Sizes { calls, scans: 2, repairs: 1 });
        stores.iter().for_each(|store| places.join(*store));
        places
    }

    fn now(places: &Places, store: StoreKey, lane: Lane) -> Option<Place> {
        places.take(store, lane).now_or_never().and_then(Result::ok)
    }

    fn as_many_as_go(places: &Places, store: StoreKey) -> Vec<Place> {
        std::iter::from_fn(|| now(places, store, Lane::Calls)).collect()
    }

    #[test]
    fn a_store_alone_has_all_places_and_one_of_several_leaves_a_share() {
        for (stores, most) in [(1, 10), (2, 5), (3, 7), (4, 8), (10, 9), (1000, 9)] {
            let places = places(10, &(0..stores).collect::<Vec<_>>());
            assert_eq!(as_many_as_go(&places, 0).len(), most, "{stores} stores");
        }
        // Where there is one place, each has it in turn.
        assert_eq!(as_many_as_go(&places(1, &[1, 2, 3]), 1).len(), 1);
    }

    #[tokio::test]
    async fn a_free_place_goes_to_who_has_fewest() {
        let places = places(4, &[1, 2, 3]);
        let (mut one, mut two) = (as_many_as_go(&places, 1), as_many_as_go(&places, 2));
        assert_eq!((one.len(), two.len()), (3, 1));
        let mut waiting = [1, 2, 3].map(|store| Box::pin(places.take(store, Lane::Calls)));
        for wait in &mut waiting {
            assert!(futures_util::poll!(wait).is_pending());
        }
        let [one_more, two_more, three] = waiting;
        one.pop();
        let third = three.await.expect("the first, which has none");
        two.pop();
        let second = two_more.await.expect("the second, which has none now");
        drop(third);
        drop((one_more.await.expect("nobody else waits"), second));
        assert_eq!(places.taken(), (2, 7));
    }

    #[tokio::test]
    async fn a_wait_that_is_given_up_takes_no_place() {
        let places = places(2, &[1]);
        let all = as_many_as_go(&places, 1);
        let mut first = Box::pin(places.take(1, Lane::Calls));
        let mut second = Box::pin(places.take(1, Lane::Calls));
        assert!(
            futures_util::poll!(&mut first).is_pending() && futures_util::poll!(&mut second).is_pending()
        );
        // One is given up while it waits, the other one when it has been given its place.
        drop(first);
        drop(all);
        drop(second);
        assert_eq!(places.taken().0, 0);
    }

    #[tokio::test]
    async fn a_store_that_leaves_waits_no_more_and_others_have_its_share() {
        let places = places(2, &[1, 2]);
        let held = [1, 2].map(|store| now(&places, store, Lane::Calls).expect("a place"));
        let mut more = Box::pin(places.take(1, Lane::Calls));
        let mut other = Box::pin(places.take(2, Lane::Calls));
        assert!(futures_util::poll!(&mut more).is_pending() && futures_util::poll!(&mut other).is_pending());
        assert!(!places.leave(2));
        assert_eq!(other.await.err(), Some(Left));
        assert_eq!(places.take(2, Lane::Calls).await.err(), Some(Left));
        let [_own, last] = held;
        drop(last);
        let _more = more.await.expect("the other's place");
        assert!(places.leave(1));
    }

    #[test]
    fn a_repair_has_a_place_where_calls_have_none() {
        let places = places(2, &[1]);
        let calls = as_many_as_go(&places, 1);
        let repair = now(&places, 1, Lane::Repairs).expect("a place of its own");
        assert!(now(&places, 1, Lane::Repairs).is_none());
        drop(calls);
        assert!(now(&places, 1, Lane::Repairs).is_some_and(|place| place.lane == Lane::Calls));
        drop(repair);
    }
}
