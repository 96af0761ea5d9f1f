//! The rules of a batch, as a pure function: which mutations pass, and which revisions they get.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use super::commit::required_keys;
use super::counting::{Account, Counted};
use super::{
    Change, ChangeKind, Error, Expect, Fence, Key, Mutation, Outcome, RegistryChange, Requirement, Terms,
    UnchangedRange, Units,
};
use crate::failpoints::{Bug, strikes};
use crate::revision::Revision;

/// The result of judging a batch.
#[derive(Debug, PartialEq, Eq)]
pub struct Verdict {
    /// One outcome per mutation.
    pub outcomes: Vec<Outcome>,
    /// The writes to carry out. Their revisions follow the base without a gap.
    pub writes: Vec<Write>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Write {
    /// The mutation's index in the batch.
    pub index: usize,
    pub revision: Revision,
    pub kind: ChangeKind,
    pub previous: Option<Revision>,
    /// The revision of the write in etcd's terms.
    pub etcd_revision: i64,
}

/// The state of the database, read while the clock's lock is held.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    /// The live version of every mutation's key, and then of every [required key](required_keys).
    pub live: &'a [Option<Revision>],
    /// The values of [`counted_versions`](super::counting::counted_versions).
    pub counted: &'a HashMap<Revision, Bytes>,
    /// Whether the fence's registration still exists.
    pub registered: bool,
    /// The clock's `compacted`: a failover that may have taken commits back has raised it above all of them.
    pub compacted: Revision,
    /// Whether each of the batch's [ranges](super::commit::ranges) has changed.
    pub changed: &'a [bool],
    pub lag: i64,
}

/// Judges a batch under its terms. Also returns the change of the registry to carry out: the requested one if all
/// mutations pass, otherwise none.
pub fn judge_under<'a>(
    batch: &Units,
    base: Revision,
    found: Found<'_>,
    terms: Terms<'a>,
) -> Result<(Verdict, Option<&'a RegistryChange>), Error> {
    let lost = terms.fence.filter(|_| !found.registered && !strikes(Bug::FenceIgnored));
    let Some(change) = terms.registry else { return Ok((judge(batch, base, found, lost), None)) };
    if lost.is_some() {
        return Err(Error::Fenced);
    }
    let mut verdict = judge(batch, base, found, None);
    if verdict.writes.len() < batch.len() {
        verdict.writes.clear();
        return Ok((verdict, None));
    }
    Ok((verdict, Some(change)))
}

/// Judges the units in order. Each mutation is judged against what the earlier mutations of the batch did
/// to the rows that it writes or requires. `lost` is the server's fence if its registration is gone.
fn judge(batch: &Units, base: Revision, found: Found<'_>, lost: Option<&Fence>) -> Verdict {
    let mut judging = Judging::new(batch, base, found, lost);
    for places in batch.places() {
        match places.len() {
            1 => judging.one(places.start),
            _ => judging.together(places),
        }
    }
    judging.verdict
}

/// A batch that has been judged up to some mutation.
struct Judging<'a> {
    batch: &'a [Mutation],
    live: &'a [Option<Revision>],
    lost: Option<&'a Fence>,
    compacted: Revision,
    /// The live versions of the rows that have been looked at.
    current: HashMap<&'a Key, Option<Revision>>,
    /// The counted rows, while they are as the database has them or as the batch has counted them.
    accounts: HashMap<&'a Key, Open>,
    /// For each range of the mutations that are still to be judged, whether it has changed before the batch.
    changed: &'a [bool],
    /// The revision of the next write.
    next: Revision,
    /// The newest revision in etcd's terms.
    etcd_revision: i64,
    verdict: Verdict,
}

/// A counted row.
struct Open {
    account: Box<dyn Account>,
    /// Whether the batch has charged it.
    charged: bool,
}

/// The version of a counted row that the batch has charged. It holds for no expectation: nobody can have seen it.
pub const UNWRITTEN: Revision = Revision(u64::MAX);

impl<'a> Judging<'a> {
    fn new(
        batch: &'a [Mutation],
        base: Revision,
        Found { live, counted, compacted, changed, lag, .. }: Found<'a>,
        lost: Option<&'a Fence>,
    ) -> Self {
        let mut current = HashMap::with_capacity(batch.len());
        for (key, live) in required_keys(batch).into_iter().zip(live.get(batch.len()..).unwrap_or_default()) {
            current.insert(key, *live);
        }
        let verdict = Verdict { outcomes: Vec::with_capacity(batch.len()), writes: Vec::new() };
        let accounts = match counted.is_empty() {
            true => HashMap::new(),
            false => open_accounts(batch, live, counted),
        };
        let (next, etcd_revision) = (Revision(base.0 + 1), base.0 as i64 - lag);
        Self { batch, live, lost, compacted, current, accounts, changed, next, etcd_revision, verdict }
    }

    fn one(&mut self, index: usize) {
        let outcome = match &self.batch[index].change {
            Change::Count(counted) => self.write_count(index, counted),
            Change::Put { .. } | Change::Delete => self.outcome(index),
        };
        self.verdict.outcomes.push(outcome);
    }

    /// Writes a counted row if the batch has charged it.
    fn write_count(&mut self, index: usize, counted: &Counted) -> Outcome {
        let key = &self.batch[index].key;
        let Some(Open { account, charged: true }) = self.accounts.get(key) else { return Outcome::Apart };
        counted.set(account.change());
        self.current.insert(key, Some(self.next));
        self.write(index, ChangeKind::Modified, self.live[index])
    }

    /// Adds a write to the verdict.
    fn write(&mut self, index: usize, kind: ChangeKind, previous: Option<Revision>) -> Outcome {
        let counting = self.batch[index].counting;
        let (revision, etcd_revision) = (self.next, counting.revision_after(self.etcd_revision));
        self.verdict.writes.push(Write { index, revision, kind, previous, etcd_revision });
        self.next = Revision(revision.0 + 1);
        self.etcd_revision = counting.newest_after(self.etcd_revision);
        Outcome::Committed(revision)
    }

    /// Whether a range that a mutation wants unchanged has changed, before the batch or by it. Each mutation asks once.
    fn range_changed(&mut self, mutation: &Mutation) -> bool {
        let wanted = &mutation.unchanged;
        let (before, rest) = self.changed.split_at(wanted.len().min(self.changed.len()));
        self.changed = rest;
        let given_up = |range: &UnchangedRange| range.since < self.compacted;
        let written = |range: &UnchangedRange| {
            self.verdict.writes.iter().any(|write| range.covers(&self.batch[write.index].key))
        };
        before.contains(&true) || wanted.iter().any(|range| given_up(range) || written(range))
    }

    /// Adds a mutation's charges to their rows, or none of them. Returns the index of the one that does not fit.
    fn charge(&mut self, mutation: &'a Mutation) -> Result<(), usize> {
        for (index, charge) in mutation.charges.iter().enumerate() {
            let open = self.accounts.get_mut(&charge.key);
            if strikes(Bug::NotCounted) {
                continue;
            }
            if open.is_none_or(|open| {
                !open.account.add(charge) || strikes(Bug::CountedTwice) && !open.account.add(charge)
            }) {
                return Err(index);
            }
        }
        for charge in &mutation.charges {
            if let Some(open) = self.accounts.get_mut(&charge.key) {
                open.charged = true;
            }
            self.current.insert(&charge.key, Some(UNWRITTEN));
        }
        Ok(())
    }

    /// The variant of [`Judging::charge`] that leaves the accounts as they were if one charge does not fit.
    fn charge_all(&mut self, mutation: &'a Mutation) -> Result<(), usize> {
        // A single charge is added or not.
        if mutation.charges.len() < 2 {
            return self.charge(mutation);
        }
        let before = self.saved(std::slice::from_ref(mutation));
        self.charge(mutation).inspect_err(|_| self.accounts.extend(before))
    }

    /// Copies of the accounts that these mutations charge.
    fn saved(&self, mutations: &'a [Mutation]) -> Vec<(&'a Key, Open)> {
        let charges = mutations.iter().flat_map(|mutation| &mutation.charges);
        let saved = charges.filter_map(|charge| {
            let Open { account, charged } = self.accounts.get(&charge.key)?;
            Some((&charge.key, Open { account: account.duplicate(), charged: *charged }))
        });
        saved.collect()
    }

    /// Judges mutations of which all pass or none.
    fn together(&mut self, group: Range<usize>) {
        let mutations = &self.batch[group.clone()];
        let charged = mutations.iter().flat_map(|mutation| &mutation.charges).map(|charge| &charge.key);
        let keys = mutations.iter().map(|mutation| &mutation.key).chain(charged);
        let accounts = self.saved(mutations);
        let before: Vec<_> = keys.map(|key| (key, self.current.get(key).copied())).collect();
        let (next, etcd_revision, writes) = (self.next, self.etcd_revision, self.verdict.writes.len());
        group.clone().for_each(|index| self.one(index));
        let outcomes = &mut self.verdict.outcomes[group];
        let is_whole = outcomes.iter().all(|outcome| matches!(outcome, Outcome::Committed(_)));
        if is_whole || strikes(Bug::HalfAGroup) {
            return;
        }
        for outcome in outcomes {
            if matches!(outcome, Outcome::Committed(_)) {
                *outcome = Outcome::Apart;
            }
        }
        (self.next, self.etcd_revision) = (next, etcd_revision);
        self.verdict.writes.truncate(writes);
        self.accounts.extend(accounts);
        for (key, live) in before {
            match live {
                Some(live) => self.current.insert(key, live),
                None => self.current.remove(key),
            };
        }
    }

    fn outcome(&mut self, index: usize) -> Outcome {
        let mutation = &self.batch[index];
        let range_changed = self.range_changed(mutation);
        if self.lost.is_some_and(|fence| !fence.exempts(mutation)) {
            return Outcome::Fenced;
        }
        if mutation.decided_at.is_some_and(|decided_at| decided_at < self.compacted)
            && !strikes(Bug::FailoverForgotten)
        {
            return Outcome::Outdated;
        }
        let shared = mutation.shares.as_deref().and_then(|shared| {
            let found = self.current.get(&shared.key).copied().flatten();
            let requirement = mutation.requires.len();
            (!holds(shared.expect, found)).then_some(Outcome::Unmet { requirement, found })
        });
        let slot = self.current.entry(&mutation.key).or_insert(self.live[index]);
        let found = *slot;
        let kind = match (&mutation.change, mutation.expect) {
            (Change::Put { .. }, Expect::Absent) => ChangeKind::Added,
            (Change::Put { .. }, Expect::At(_)) => ChangeKind::Modified,
            (Change::Delete | Change::Count(_), _) => ChangeKind::Deleted,
        };
        let deletes_nothing = kind == ChangeKind::Deleted && found.is_none();
        let is_stale = found.is_some() && mutation.expect != Expect::Absent && strikes(Bug::StaleUpdate);
        if deletes_nothing || !holds(mutation.expect, found) && !is_stale {
            return Outcome::Conflict { found };
        }
        if let Some(unmet) = shared.filter(|_| !strikes(Bug::ConfigurationIgnored)) {
            return unmet;
        }
        let after = (kind != ChangeKind::Deleted).then_some(self.next);
        if mutation.requires.is_empty() && mutation.charges.is_empty() && !range_changed {
            *slot = after;
        } else {
            if let Some(unmet) = first_unmet(&mutation.requires, &self.current)
                && !strikes(Bug::RequirementIgnored)
            {
                return unmet;
            }
            if range_changed && !strikes(Bug::RequirementIgnored) {
                return Outcome::RangeChanged;
            }
            if let Err(charge) = self.charge_all(mutation) {
                return Outcome::Unfit { charge };
            }
            self.current.insert(&mutation.key, after);
        }
        // What others write is not what was opened.
        if !self.accounts.is_empty() {
            self.accounts.remove(&mutation.key);
        }
        self.write(index, kind, found)
    }
}

fn open_accounts<'a>(
    batch: &'a [Mutation],
    live: &[Option<Revision>],
    counted: &HashMap<Revision, Bytes>,
) -> HashMap<&'a Key, Open> {
    let charges = batch.iter().flat_map(|mutation| &mutation.charges);
    let ledgers: HashMap<&Key, _> = charges.map(|charge| (&charge.key, charge.ledger)).collect();
    let rows = batch.iter().zip(live).filter(|(mutation, _)| matches!(mutation.change, Change::Count(_)));
    let opened = rows.filter_map(|(Mutation { key, .. }, live)| {
        let account = ledgers.get(key)?.open(key, counted.get(live.as_ref()?)?.clone())?;
        Some((key, Open { account, charged: false }))
    });
    opened.collect()
}

fn holds(expect: Expect, found: Option<Revision>) -> bool {
    found != Some(UNWRITTEN) && expect.holds(found)
}

fn first_unmet(requires: &[Requirement], current: &HashMap<&Key, Option<Revision>>) -> Option<Outcome> {
    requires.iter().enumerate().find_map(|(requirement, Requirement { key, expect })| {
        let found = current.get(key).copied().flatten();
        (!holds(*expect, found)).then_some(Outcome::Unmet { requirement, found })
    })
}
