//! Services that every part of a server gets instead of globals, so that a process may have any number of servers, and
//! a test can control a server's time and random numbers.

use std::sync::Arc;

use crate::egress::Egresses;
use crate::metrics::Metrics;
use crate::random::Random;
use crate::tasks::Tasks;
use crate::wall_clock::WallClock;

/// Clones belong to the same server.
#[derive(Clone, Debug, Default)]
pub struct Runtime {
    /// The time of day, by which certificates are checked.
    pub clock: WallClock,
    /// The source of names and ids of objects.
    pub random: Random,
    pub metrics: Arc<Metrics>,
    /// The ways to the networks that the server connects to.
    pub egresses: Egresses,
    /// The background tasks, by which the server also learns that it cannot continue.
    pub tasks: Tasks,
}

impl Runtime {
    /// The same runtime with a separate group of tasks, which is stopped and waited for by itself.
    pub fn group(&self) -> Self {
        Self { tasks: self.tasks.group(), ..self.clone() }
    }
}
