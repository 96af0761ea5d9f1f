//! Random numbers, passed to the server so that tests can repeat them. Keys and other secrets do not come from here.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, RngExt as _, SeedableRng as _};
use uuid::{Builder, Uuid};

/// A source of random numbers. Clones share it. The default is the system's.
#[derive(Clone, Default)]
pub struct Random(Option<Arc<Mutex<StdRng>>>);

impl Random {
    /// A source with the same numbers in every run, provided that they are drawn in the same order.
    pub fn seeded(seed: u64) -> Self {
        Self(Some(Arc::new(Mutex::new(StdRng::seed_from_u64(seed)))))
    }

    /// Draws from the source.
    #[expect(clippy::disallowed_methods, reason = "this is the source")]
    pub fn with<T>(&self, draw: impl FnOnce(&mut dyn Rng) -> T) -> T {
        match &self.0 {
            None => draw(&mut rand::rng()),
            Some(seeded) => draw(&mut *seeded.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// A source apart, whose numbers do not depend on what others draw from this one later.
    pub fn fork(&self) -> Self {
        match &self.0 {
            None => Self::default(),
            Some(_) => Self::seeded(self.with(|rng| rng.random())),
        }
    }

    /// A number from 0 up to, and without, 1.
    pub fn share(&self) -> f64 {
        self.with(|rng| rng.random())
    }

    /// A random UUID of version 4.
    pub fn uuid(&self) -> Uuid {
        Builder::from_random_bytes(self.with(|rng| rng.random())).into_uuid()
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Random(seeded)" } else { "Random(system)" })
    }
}
