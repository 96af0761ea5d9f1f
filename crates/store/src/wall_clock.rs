//! The time of day, passed to the server so that tests can set it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use tokio::sync::watch;

/// A clock. Clones are the same clock.
#[derive(Clone)]
pub struct WallClock {
    own: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// `None` for a clock that nobody sets.
    steering: Option<Steering>,
}

/// The hands of a clock that a test sets. Clones are those of the same clock.
#[derive(Clone, Default)]
pub struct Steering(watch::Sender<Setting>);

/// How a clock has been set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// The time that it stands still at; `None` while it runs.
    frozen: Option<SystemTime>,
    /// How far it has been advanced in all.
    advanced: Duration,
}

impl Steering {
    /// Sets the clock ahead, whether it runs or stands still.
    pub fn advance(&self, by: Duration) {
        self.0.send_modify(|setting| {
            setting.advanced = setting.advanced.saturating_add(by);
            setting.frozen = setting.frozen.map(|at| at.checked_add(by).unwrap_or(at));
        });
    }

    /// Lets the clock stand still at a time.
    pub fn freeze(&self, at: SystemTime) {
        self.0.send_modify(|setting| setting.frozen = Some(at));
    }

    /// Lets the clock run again: from the present time, and what it was advanced by.
    pub fn run(&self) {
        self.0.send_modify(|setting| setting.frozen = None);
    }
}

impl WallClock {
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self { own: Arc::new(now), steering: None }
    }

    /// A clock that goes as this one does, unless it is set.
    pub fn steered(self, steering: Steering) -> Self {
        Self { own: Arc::new(move || self.now()), steering: Some(steering) }
    }

    /// The same clock as if nobody had set it.
    pub fn unsteered(&self) -> Self {
        Self { own: self.own.clone(), steering: None }
    }

    pub fn now(&self) -> SystemTime {
        let Some(steering) = &self.steering else { return (self.own)() };
        let Setting { frozen, advanced } = *steering.0.borrow();
        frozen.unwrap_or_else(|| {
            let now = (self.own)();
            now.checked_add(advanced).unwrap_or(now)
        })
    }

    /// How far the clock has been advanced in all, for whoever measures ages by another clock.
    pub fn advanced(&self) -> Duration {
        self.steering.as_ref().map_or(Duration::ZERO, |steering| steering.0.borrow().advanced)
    }

    /// Returns once the clock is advanced beyond that; never if nobody sets it.
    pub async fn advanced_beyond(&self, known: Duration) {
        let Some(steering) = &self.steering else { return std::future::pending().await };
        let mut setting = steering.0.subscribe();
        if setting.wait_for(|setting| setting.advanced > known).await.is_err() {
            std::future::pending().await
        }
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
