//! Past generations of what is served.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::catalog::Served;
use crate::revision::Revision;

/// The most generations that are kept. Each has the resources of all definitions that were stored at one time.
const KEPT: usize = 8;

/// The definitions of a generation: the revision of each, in the order of their names.
pub type Definitions = Vec<Revision>;

/// The past generations that were asked for last, by their definitions.
#[derive(Default)]
pub struct PastGenerations(Mutex<VecDeque<(Definitions, Arc<Served>)>>);

impl PastGenerations {
    pub fn get(&self, definitions: &Definitions) -> Option<Arc<Served>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = kept.iter().position(|(of, _)| of == definitions)?;
        let found = kept.remove(at)?;
        let served = found.1.clone();
        kept.push_front(found);
        Some(served)
    }

    pub fn put(&self, definitions: Definitions, served: Arc<Served>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_front((definitions, served));
        kept.truncate(KEPT);
    }
}
