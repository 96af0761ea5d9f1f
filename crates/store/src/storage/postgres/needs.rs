//! Preconditions of a batch on other rows than those that it writes, as arrays for the procedure that commits it.

use super::rows::Rows;
use crate::failpoints::{Bug, strikes};
use crate::revision::Revision;
use crate::storage::commit::ranges;
use crate::storage::{Expect, Mutation, Requirement, UnchangedRange};

/// The version of no row, and one that no row has.
pub const NONE: i64 = 0;
const IMPOSSIBLE: i64 = -1;

/// The requirements of all mutations, one behind the other.
pub struct Needs {
    /// The end of each mutation's requirements in the other two lists.
    pub ends: Vec<i32>,
    pub places: Vec<i32>,
    pub expects: Vec<i64>,
}

impl Needs {
    pub fn of(mutations: &[&Mutation], rows: &Rows<'_>) -> Option<Self> {
        if mutations.iter().all(|mutation| mutation.shares.is_none() && mutation.requires.is_empty()) {
            return None;
        }
        let mut needs = Self { ends: Vec::with_capacity(mutations.len()), places: vec![], expects: vec![] };
        for mutation in mutations {
            for Requirement { key, expect } in requirements(mutation) {
                needs.places.push(rows.place(key));
                needs.expects.push(expected(*expect));
            }
            needs.ends.push(needs.places.len() as i32);
        }
        Some(needs)
    }
}

/// The ranges of all mutations that must not have changed, one behind the other.
#[derive(Default)]
pub struct Ranges<'a> {
    /// The end of each mutation's ranges in the other lists.
    pub ends: Vec<i32>,
    pub resources: Vec<i32>,
    pub starts: Vec<&'a str>,
    pub stops: Vec<Option<&'a str>>,
    pub since: Vec<i64>,
}

impl<'a> Ranges<'a> {
    /// The ranges of each mutation.
    pub fn of(mutations: &'a [Mutation]) -> Option<Self> {
        if ranges(mutations).next().is_none() || strikes(Bug::RequirementIgnored) {
            return None;
        }
        let mut all = Self::default();
        for mutation in mutations {
            mutation.unchanged.iter().for_each(|range| all.push(range));
            all.ends.push(all.since.len() as i32);
        }
        Some(all)
    }

    /// Ranges of whatever mutations.
    pub fn unchanged(ranges: impl Iterator<Item = &'a UnchangedRange>) -> Option<Self> {
        let mut all = Self::default();
        ranges.for_each(|range| all.push(range));
        all.ends.push(all.since.len() as i32);
        (!all.since.is_empty() && !strikes(Bug::RequirementIgnored)).then_some(all)
    }

    fn push(&mut self, UnchangedRange { resource, start, stop, since }: &'a UnchangedRange) {
        self.resources.push(resource.0);
        self.starts.push(start);
        self.stops.push(stop.as_deref());
        self.since.push(i64::try_from(since.0).unwrap_or(i64::MAX));
    }
}

/// The requirements of a mutation on other rows, in the order in which they are judged.
fn requirements(mutation: &Mutation) -> impl Iterator<Item = &Requirement> {
    let shares = mutation.shares.as_deref().filter(|_| !strikes(Bug::ConfigurationIgnored));
    shares.into_iter().chain(mutation.requires.iter().filter(|_| !strikes(Bug::RequirementIgnored)))
}

/// A live version as a number. No row has the version 0, nor one that is no `BIGINT`.
pub fn number(version: Option<Revision>) -> i64 {
    match version {
        None => NONE,
        Some(Revision(0)) => IMPOSSIBLE,
        Some(Revision(version)) => i64::try_from(version).unwrap_or(IMPOSSIBLE),
    }
}

pub fn version(number: i64) -> Option<Revision> {
    (number != NONE).then_some(Revision(number as u64))
}

pub fn expected(expect: Expect) -> i64 {
    match expect {
        Expect::Absent => number(None),
        Expect::At(version) => number(Some(version)),
    }
}
