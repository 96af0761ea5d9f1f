//! What every part of a server is handed from its start, in place of globals: so that a process may hold any number of
//! servers, and a test may own their time and their chance.

use std::sync::Arc;

use crate::metrics::Metrics;
use crate::random::Random;
use crate::tasks::Tasks;
use crate::wall_clock::WallClock;

/// Cheap to clone; clones are the same server's.
#[derive(Clone, Debug, Default)]
pub struct Runtime {
    /// The time of day: what certificates are checked by.
    pub clock: WallClock,
    /// Names and ids of objects are drawn from it.
    pub random: Random,
    pub metrics: Arc<Metrics>,
    /// What runs in the background, and how it ends the server when it cannot go on.
    pub tasks: Tasks,
}

impl Runtime {
    /// The same, with a group of tasks that is stopped and waited for by itself.
    pub fn group(&self) -> Self {
        Self { tasks: self.tasks.group(), ..self.clone() }
    }
}
