//! The time of day, passed to the server so that tests can set it.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// A clock. Clones are the same clock.
#[derive(Clone)]
pub struct WallClock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl WallClock {
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub fn now(&self) -> SystemTime {
        (self.0)()
    }

    /// The same for calendars; the end of time if the clock is beyond it.
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::try_from(self.now()).unwrap_or(Timestamp::MAX)
    }

    /// Whole milliseconds since the Unix epoch.
    pub fn millis(&self) -> i64 {
        let since = self.now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }

    /// Whole seconds since the Unix epoch.
    pub fn seconds(&self) -> u64 {
        self.now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    }
}

impl Default for WallClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WallClock").field(&self.now()).finish()
    }
}
