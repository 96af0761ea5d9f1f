//! How long refused clients are asked to wait: longer while a level refuses many.

/// In seconds.
const LONGEST: u64 = 32;

/// The refusals of a priority level, second by second.
#[derive(Debug)]
pub struct RetryAfter {
    /// Seconds, and how many requests were refused in each of them.
    history: Vec<(u64, u64)>,
    second: u64,
    count: u64,
    seconds: u64,
    raised_at: u64,
}

impl Default for RetryAfter {
    fn default() -> Self {
        Self { history: Vec::new(), second: 0, count: 0, seconds: 1, raised_at: 0 }
    }
}

impl RetryAfter {
    /// Counts a refusal, and says how many seconds the client should wait.
    pub fn refused(&mut self, second: u64) -> u64 {
        if self.second == second {
            self.count += 1;
            return self.seconds;
        }
        self.history.push((self.second, self.count));
        let kept = (2 * self.seconds).min(LONGEST);
        self.history.retain(|(past, _)| self.second.saturating_sub(*past) <= kept);
        (self.second, self.count) = (second, 1);
        self.adjust(second);
        self.seconds
    }

    fn adjust(&mut self, second: u64) {
        let recent = self
            .history
            .iter()
            .filter(|(past, _)| *past < second && second.saturating_sub(*past) <= self.seconds);
        let refused: u64 = recent.map(|(_, count)| count).sum();
        if second.saturating_sub(self.raised_at) >= self.seconds && refused >= 3 * self.seconds {
            self.seconds = (2 * self.seconds).min(LONGEST);
            self.raised_at = second;
        } else if refused < self.seconds && self.seconds > 1 {
            self.seconds -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_under_pressure_and_shrink_afterwards() {
        let mut waits = RetryAfter::default();
        let mut second = |at, count| (0..count).map(|_| waits.refused(at)).last();
        assert_eq!(second(100, 5), Some(1));
        assert_eq!(second(101, 10), Some(2));
        assert_eq!(second(102, 10), Some(2));
        assert_eq!(second(103, 20), Some(4));
        for at in 104..140 {
            second(at, 1000);
        }
        assert_eq!(second(140, 1), Some(32));
        assert_eq!(second(1000, 1), Some(31));
        assert_eq!(second(2000, 1), Some(30));
    }
}
