//! The two counters of docs/spec/etcd.md, 3.1: the sequence S counts rows, the revision R what etcd's clients see. A
//! row is *uncounted* if it shares the revision of the row after it, or takes none at all; R(S) = S - the uncounted
//! rows up to S.

use imbl::OrdMap;
use rowplane_store::storage::Counting;

/// A place in the sequence.
pub use rowplane_objects::revision::Revision as Sequence;

/// The most runs that are remembered. The store knows of the others.
const MOST_RUNS: usize = 64 * 1024;

/// The uncounted rows after a place, as runs of neighbours. Clones share everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lags {
    /// The place from which on everything is known, and the uncounted rows up to there.
    floor: (Sequence, i64),
    /// By the sequence of their first rows.
    runs: OrdMap<Sequence, Run>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// The uncounted rows before the run.
    before: i64,
    length: u64,
    /// How many of its last rows have the revision of the row after the run.
    shared: u64,
}

impl Lags {
    pub fn new(floor: Sequence, lag: i64) -> Self {
        Self { floor: (floor, lag), runs: OrdMap::new() }
    }

    /// Notes how a row counts. It is newer than all that are noted.
    pub fn push(&mut self, sequence: Sequence, counting: Counting) {
        let shares = match counting {
            Counting::Own => return,
            Counting::Shared => true,
            Counting::None => false,
        };
        let last = self.runs.get_max().copied();
        match last {
            Some((start, run)) if start.0 + run.length == sequence.0 => {
                let shared = if shares { run.shared + 1 } else { 0 };
                self.runs.insert(start, Run { length: run.length + 1, shared, ..run });
            }
            _ => {
                let before = last.map_or(self.floor.1, |(_, run)| run.before + run.length as i64);
                self.runs.insert(sequence, Run { before, length: 1, shared: u64::from(shares) });
            }
        }
        if self.runs.len() > MOST_RUNS {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((start, run)) = self.runs.get_min().copied() else { return };
        self.runs.remove(&start);
        self.floor = (Sequence(start.0 + run.length - 1), run.before + run.length as i64);
    }

    /// The uncounted rows up to a place; `None` if it is too old.
    fn lag(&self, sequence: Sequence) -> Option<i64> {
        if sequence < self.floor.0 {
            return None;
        }
        let run = self.runs.get_prev(&sequence);
        Some(run.map_or(self.floor.1, |(start, run)| {
            run.before + run.length.min(sequence.0 - start.0 + 1) as i64
        }))
    }

    /// The revision of the state after this row; `None` if it is too old.
    pub fn revision(&self, sequence: Sequence) -> Option<i64> {
        Some(sequence.0 as i64 - self.lag(sequence)?)
    }

    /// The last place at which the state has this revision and no unit is cut; `None` if it is too old.
    pub fn sequence(&self, revision: i64) -> Option<Sequence> {
        if revision < self.floor.0.0 as i64 - self.floor.1 {
            return None;
        }
        // A run stands at the revision of the row before it. The one that counts is the last that stands at this
        // revision or before it, so its start is at most the revision after this one and the uncounted rows before
        // any later run.
        let mut above = Sequence(u64::MAX);
        let lag = loop {
            let Some((start, run)) = self.runs.get_prev(&above) else { break self.floor.1 };
            let stands_at = start.0 as i64 - 1 - run.before;
            if stands_at == revision {
                break run.before + (run.length - run.shared) as i64;
            }
            if stands_at < revision {
                break run.before + run.length as i64;
            }
            let most = (revision + 1 + run.before).max(0) as u64;
            above = Sequence(most.min(start.0.saturating_sub(1)));
        };
        Some(Sequence((revision + lag).max(0) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule, counted one by one. Rows count from 1.
    struct Model(Vec<Counting>);

    impl Model {
        fn revision(&self, sequence: u64) -> i64 {
            self.0.iter().take(sequence as usize).filter(|counting| **counting == Counting::Own).count()
                as i64
        }

        /// Whether no unit is cut after a row.
        fn is_whole(&self, sequence: u64) -> bool {
            sequence == 0 || self.0[sequence as usize - 1] != Counting::Shared
        }
    }

    fn models() -> impl Iterator<Item = Model> {
        let patterns = (0..5000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        patterns.map(|pattern| {
            let counting = |place: u64| match pattern >> (2 * place) & 3 {
                0 | 1 => Counting::Own,
                2 => Counting::Shared,
                _ => Counting::None,
            };
            Model((0..20).map(counting).chain([Counting::Own]).collect())
        })
    }

    #[test]
    fn revisions_and_places_are_those_of_the_rule() {
        for (number, model) in models().enumerate() {
            let floor = (0..=number as u64 % 7).rfind(|place| model.is_whole(*place)).expect("the first");
            let mut lags = Lags::new(Sequence(floor), floor as i64 - model.revision(floor));
            for (place, counting) in (1..).zip(&model.0).skip(floor as usize) {
                lags.push(Sequence(place), *counting);
            }
            for sequence in 0..=21 {
                let revision = model.revision(sequence);
                let told = lags.revision(Sequence(sequence));
                assert_eq!(told, (sequence >= floor).then_some(revision), "{:?} {sequence}", model.0);
                let same = |other: &u64| model.revision(*other) == revision && model.is_whole(*other);
                let last = (0..=21).filter(same).max();
                let told = lags.sequence(revision).map(|place| place.0);
                let expected = last.filter(|_| revision >= model.revision(floor));
                assert_eq!(told, expected, "{:?}: of revision {revision}", model.0);
            }
        }
    }

    #[test]
    fn what_is_forgotten_is_not_told() {
        let mut lags = Lags::default();
        [3, 4, 6].into_iter().for_each(|row| lags.push(Sequence(row), Counting::None));
        lags.forget_oldest();
        assert_eq!(lags.revision(Sequence(3)), None);
        assert_eq!([4, 5, 6, 7].map(|row| lags.revision(Sequence(row))), [2, 3, 3, 4].map(Some));
    }
}
