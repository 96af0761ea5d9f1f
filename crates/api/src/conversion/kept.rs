//! Objects that webhooks have converted, and the conversions that are under way.
//!
//! An object is converted by whoever wants it first; all others wait for the result. When the call fails, they fail with
//! it, so that a webhook that hangs makes nobody wait longer than for one call.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::codec::object::Object;
use crate::error::Error;
use crate::resource::hook::Failed;
use crate::revision::Revision;

/// Bytes of converted objects that are kept; the oldest results go first.
const MOST_KEPT: usize = 64 << 20;

/// The most objects of a call, and the most bytes of them, unless one alone has more.
const MOST_OBJECTS: usize = 500;
const MOST_BYTES: usize = 3 << 20;

/// One change of an object, in the version of one form of its definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Id {
    pub revision: Revision,
    /// The [number](crate::kinds::custom::CustomVersion::number) of the version.
    pub version: u32,
}

#[derive(Default)]
pub struct Kept(Mutex<State>);

#[derive(Default)]
struct State {
    done: HashMap<Id, Arc<Object>>,
    /// The keys of `done`, the oldest first.
    order: VecDeque<Id>,
    bytes: usize,
    working: HashMap<Id, watch::Receiver<Option<Error>>>,
}

/// The next step of a request that wants converted objects.
pub enum Turn<'a> {
    /// All have been found.
    Done,
    /// Somebody else converts one of them.
    Wait(Outcome),
    Work(Work<'a>),
}

/// The outcome of a call that another request makes.
pub struct Outcome(watch::Receiver<Option<Error>>);

/// Objects that nobody else converts meanwhile.
pub struct Work<'a> {
    kept: &'a Kept,
    places: Vec<usize>,
    ids: Vec<Id>,
    told: watch::Sender<Option<Error>>,
}

impl Kept {
    /// Puts what is there into `found`, and says how to get the rest.
    pub fn turn(&self, wanted: &[(Id, Arc<Object>)], found: &mut [Option<Arc<Object>>]) -> Turn<'_> {
        let mut state = self.state();
        let (mut free, mut waits) = (Vec::new(), None);
        for (place, (id, _)) in wanted.iter().enumerate() {
            if found[place].is_some() {
                continue;
            }
            match (state.done.get(id), state.working.get(id)) {
                (Some(object), _) => found[place] = Some(object.clone()),
                (None, Some(working)) => waits = Some(working.clone()),
                (None, None) => free.push(place),
            }
        }
        if free.is_empty() {
            return waits.map_or(Turn::Done, |waits| Turn::Wait(Outcome(waits)));
        }
        let places = batch(free, wanted);
        let ids: Vec<Id> = places.iter().map(|place| wanted[*place].0).collect();
        let (told, outcome) = watch::channel(None);
        state.working.extend(ids.iter().map(|id| (*id, outcome.clone())));
        Turn::Work(Work { kept: self, places, ids, told })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first of these places, as many as one call converts.
fn batch(mut free: Vec<usize>, wanted: &[(Id, Arc<Object>)]) -> Vec<usize> {
    let version = |place: usize| wanted[place].1.api_version();
    let of = free.first().and_then(|first| version(*first)).map(str::to_owned);
    free.retain(|place| version(*place) == of.as_deref());
    let mut bytes = 0;
    let fits = |place: &&usize| {
        bytes += wanted[**place].1.size();
        bytes <= MOST_BYTES
    };
    let fitting = free.iter().take_while(fits).count();
    free.truncate(fitting.clamp(1, MOST_OBJECTS));
    free
}

impl Outcome {
    /// Waits for the end of the call. The error is one that everybody would see.
    pub async fn wait(mut self) -> Result<(), Error> {
        // An error here means that the call has ended without one, or was given up.
        let _ = self.0.changed().await;
        let failed = self.0.borrow().clone();
        failed.map_or(Ok(()), Err)
    }
}

impl Work<'_> {
    /// The places of the objects among those that are wanted.
    pub fn places(&self) -> &[usize] {
        &self.places
    }

    pub fn finish(self, converted: Vec<Arc<Object>>, found: &mut [Option<Arc<Object>>]) {
        let mut state = self.kept.state();
        for ((id, place), object) in self.ids.iter().zip(&self.places).zip(converted) {
            found[*place] = Some(object.clone());
            state.bytes += object.size();
            if let Some(before) = state.done.insert(*id, object) {
                state.bytes -= before.size();
            } else {
                state.order.push_back(*id);
            }
        }
        while state.bytes > MOST_KEPT {
            let Some(oldest) = state.order.pop_front() else { break };
            let gone = state.done.remove(&oldest).map_or(0, |object| object.size());
            state.bytes -= gone;
        }
    }

    /// Returns the error. The others learn it unless they may have better luck with their own objects.
    pub fn fail(self, failed: Failed) -> Error {
        if failed.is_of_all || self.ids.len() == 1 {
            self.told.send_replace(Some(failed.error.clone()));
        }
        failed.error
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let mut state = self.kept.state();
        for id in &self.ids {
            state.working.remove(id);
        }
    }
}

#[cfg(test)]
mod tests;
