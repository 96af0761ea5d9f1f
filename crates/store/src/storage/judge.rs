//! The rules of a batch, as a pure function: which mutations pass, and which revisions they get.

use std::collections::HashMap;
use std::ops::Range;

use bytes::Bytes;

use super::commit::required_keys;
use super::counting::{Account, Counted};
use super::{
    Change, ChangeKind, Error, Expect, Fence, Key, Mutation, Outcome, RegistryChange, Requirement, Terms,
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
}

/// Judges a batch under its terms. Also returns the change of the registry to carry out: the requested one if all
/// mutations pass, otherwise none.
pub fn judge_under<'a>(
    batch: &[Mutation],
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

/// Judges `batch` in order. Each mutation is judged against what the earlier mutations of the batch did
/// to the rows that it writes or requires. `lost` is the server's fence if its registration is gone.
fn judge(batch: &[Mutation], base: Revision, found: Found<'_>, lost: Option<&Fence>) -> Verdict {
    let mut judging = Judging::new(batch, base, found, lost);
    let mut start = 0;
    for (index, mutation) in batch.iter().enumerate() {
        if mutation.joins_next && index + 1 < batch.len() {
            continue;
        }
        match index - start {
            0 => judging.one(index),
            _ => judging.together(start..index + 1),
        }
        start = index + 1;
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
    /// The revision of the next write.
    next: Revision,
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
        Found { live, counted, compacted, .. }: Found<'a>,
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
        Self { batch, live, lost, compacted, current, accounts, next: Revision(base.0 + 1), verdict }
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
        let revision = self.next;
        self.next = Revision(revision.0 + 1);
        self.current.insert(key, Some(revision));
        let previous = self.live[index];
        self.verdict.writes.push(Write { index, revision, kind: ChangeKind::Modified, previous });
        Outcome::Committed(revision)
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
        let (next, writes) = (self.next, self.verdict.writes.len());
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
        self.next = next;
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
        let revision = self.next;
        let after = (kind != ChangeKind::Deleted).then_some(revision);
        if mutation.requires.is_empty() && mutation.charges.is_empty() {
            *slot = after;
        } else {
            if let Some(unmet) = first_unmet(&mutation.requires, &self.current)
                && !strikes(Bug::RequirementIgnored)
            {
                return unmet;
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
        self.next = Revision(revision.0 + 1);
        self.verdict.writes.push(Write { index, revision, kind, previous: found });
        Outcome::Committed(revision)
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

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::storage::ResourceId;

    fn found(live: &[Option<Revision>]) -> Found<'_> {
        static NONE: LazyLock<HashMap<Revision, Bytes>> = LazyLock::new(HashMap::new);
        Found { live, counted: &NONE, registered: true, compacted: Revision(5) }
    }

    fn mutation(name: &str, expect: Expect, put: bool) -> Mutation {
        let change = if put {
            Change::Put {
                uid: "u".into(),
                stored_version: "v1".into(),
                value: Bytes::from_static(b"{}").into(),
            }
        } else {
            Change::Delete
        };
        Mutation::new(Key::new(ResourceId(1), "", name), expect, change)
    }

    #[test]
    fn a_shared_requirement_is_judged_as_an_own_one() {
        let row = |n| Key::new(ResourceId(2), "", n);
        let needs = |name: &str, expect| {
            let shares = Some(std::sync::Arc::new(Requirement { key: row("r"), expect }));
            Mutation { shares, ..mutation(name, Expect::Absent, true) }
        };
        let raise = Mutation { key: row("r"), ..mutation("r", Expect::At(Revision(7)), true) };
        let old = Expect::At(Revision(7));
        let batch = [needs("a", old), needs("b", Expect::Absent), raise, needs("c", old), needs("a", old)];
        assert_eq!(required_keys(&batch), [&row("r")]);
        let seven = Some(Revision(7));
        let live = [None, None, seven, None, None, seven];
        let verdict = judge(&batch, Revision(9), found(&live), None);
        let unmet = |found| Outcome::Unmet { requirement: 0, found: Some(Revision(found)) };
        let committed = |revision| Outcome::Committed(Revision(revision));
        let conflict = Outcome::Conflict { found: Some(Revision(10)) };
        assert_eq!(verdict.outcomes, [committed(10), unmet(7), committed(11), unmet(11), conflict]);
    }

    #[test]
    fn what_was_decided_by_history_that_is_given_up_is_outdated() {
        let decided = |name: &str, at: u64| Mutation {
            decided_at: Some(Revision(at)),
            ..mutation(name, Expect::Absent, true)
        };
        let batch = [
            decided("a", 4),
            decided("a", 5),
            Mutation { joins_next: true, ..decided("b", 9) },
            decided("c", 4),
            decided("b", 9),
        ];
        let verdict = judge(&batch, Revision(9), found(&[None; 5]), None);
        let committed = |revision| Outcome::Committed(Revision(revision));
        let wanted = [Outcome::Outdated, committed(10), Outcome::Apart, Outcome::Outdated, committed(11)];
        assert_eq!(verdict.outcomes, wanted);
    }

    #[test]
    fn losers_take_no_revision_and_fail_alone() {
        let at = |n| Expect::At(Revision(n));
        let batch = [
            mutation("a", Expect::Absent, true),
            mutation("b", at(3), true),
            mutation("b", at(4), true),
            mutation("c", at(5), false),
            mutation("d", Expect::Absent, false),
        ];
        let live = [None, Some(Revision(4)), Some(Revision(4)), Some(Revision(5)), None];
        let verdict = judge(&batch, Revision(10), found(&live), None);
        assert_eq!(
            verdict.outcomes,
            [
                Outcome::Committed(Revision(11)),
                Outcome::Conflict { found: Some(Revision(4)) },
                Outcome::Committed(Revision(12)),
                Outcome::Committed(Revision(13)),
                Outcome::Conflict { found: None },
            ]
        );
        let kinds: Vec<_> = verdict.writes.iter().map(|w| (w.index, w.kind, w.previous)).collect();
        assert_eq!(
            kinds,
            [
                (0, ChangeKind::Added, None),
                (2, ChangeKind::Modified, Some(Revision(4))),
                (3, ChangeKind::Deleted, Some(Revision(5))),
            ]
        );
    }

    #[test]
    fn one_key_is_judged_against_what_the_batch_made_of_it() {
        let batch = [
            mutation("a", Expect::At(Revision(4)), false),
            mutation("a", Expect::Absent, true),
            mutation("a", Expect::At(Revision(4)), true),
            mutation("a", Expect::At(Revision(12)), true),
        ];
        let verdict = judge(&batch, Revision(10), found(&[Some(Revision(4)); 4]), None);
        assert_eq!(
            verdict.outcomes,
            [
                Outcome::Committed(Revision(11)),
                Outcome::Committed(Revision(12)),
                Outcome::Conflict { found: Some(Revision(12)) },
                Outcome::Committed(Revision(13)),
            ]
        );
    }

    fn require(name: &str, expect: Expect) -> Requirement {
        Requirement { key: Key::new(ResourceId(2), "", name), expect }
    }

    #[test]
    fn a_requirement_fails_the_mutation_alone_and_each_key_is_read_once() {
        let at = |n| Expect::At(Revision(n));
        let create = |name| mutation(name, Expect::Absent, true);
        let batch = [
            create("a").requiring([require("ns", at(3))]),
            create("b").requiring([require("ns", at(2))]),
            create("c").requiring([require("ns", at(3)), require("gone", Expect::Absent)]),
            create("d").requiring([require("ns", at(3)), require("gone", at(1))]),
            create("e"),
            mutation("f", at(9), true).requiring([require("ns", at(2))]),
        ];
        let keys: Vec<&str> = required_keys(&batch).into_iter().map(|key| &*key.name).collect();
        assert_eq!(keys, ["ns", "gone"]);
        let live = [None, None, None, None, None, None, Some(Revision(3)), None];
        let verdict = judge(&batch, Revision(10), found(&live), None);
        assert_eq!(
            verdict.outcomes,
            [
                Outcome::Committed(Revision(11)),
                Outcome::Unmet { requirement: 0, found: Some(Revision(3)) },
                Outcome::Committed(Revision(12)),
                Outcome::Unmet { requirement: 1, found: None },
                Outcome::Committed(Revision(13)),
                // A conflict on the mutation's own row is reported before unmet requirements: the caller has lost the
                // row anyway.
                Outcome::Conflict { found: None },
            ]
        );
        assert_eq!(verdict.writes.iter().map(|write| write.index).collect::<Vec<_>>(), [0, 2, 4]);
    }

    #[test]
    fn what_an_earlier_mutation_made_of_a_required_row_counts() {
        let at = |n| Expect::At(Revision(n));
        let namespace =
            |expect, put| Mutation { key: require("ns", expect).key, ..mutation("ns", expect, put) };
        let create =
            |name, version| mutation(name, Expect::Absent, true).requiring([require("ns", at(version))]);
        let batch = [
            create("a", 3),
            namespace(at(3), true),
            create("b", 3),
            create("c", 12),
            namespace(at(12), false),
            create("d", 12),
            namespace(Expect::Absent, true),
            create("e", 15),
        ];
        let mut live = vec![None; batch.len()];
        (live[1], live[4], live[6]) = (Some(Revision(3)), Some(Revision(3)), Some(Revision(3)));
        live.push(Some(Revision(3)));
        assert_eq!(
            judge(&batch, Revision(10), found(&live), None).outcomes,
            [
                Outcome::Committed(Revision(11)),
                Outcome::Committed(Revision(12)),
                Outcome::Unmet { requirement: 0, found: Some(Revision(12)) },
                Outcome::Committed(Revision(13)),
                Outcome::Committed(Revision(14)),
                Outcome::Unmet { requirement: 0, found: None },
                Outcome::Committed(Revision(15)),
                Outcome::Committed(Revision(16)),
            ]
        );
    }

    #[test]
    fn what_is_joined_passes_together_or_not_at_all() {
        let at = |n| Expect::At(Revision(n));
        let joined = |mutation| Mutation { joins_next: true, ..mutation };
        let create = |name| mutation(name, Expect::Absent, true);
        let batch = [
            joined(create("a")),
            joined(create("b")),
            create("c").requiring([require("ns", at(3))]),
            // The second of these finds what the first group has taken, and takes nothing with it.
            joined(create("d")),
            joined(create("a")),
            create("e"),
            joined(create("d")),
            create("e").requiring([require("ns", at(2))]),
            create("d"),
            joined(mutation("a", at(11), false)),
            create("e"),
        ];
        let mut live = vec![None; batch.len()];
        live.push(Some(Revision(3)));
        let verdict = judge(&batch, Revision(10), found(&live), None);
        let committed = |n| Outcome::Committed(Revision(n));
        assert_eq!(
            verdict.outcomes,
            [
                committed(11),
                committed(12),
                committed(13),
                Outcome::Apart,
                Outcome::Conflict { found: Some(Revision(11)) },
                Outcome::Apart,
                Outcome::Apart,
                Outcome::Unmet { requirement: 0, found: Some(Revision(3)) },
                committed(14),
                committed(15),
                committed(16),
            ]
        );
        assert_eq!(verdict.writes.iter().map(|write| write.index).collect::<Vec<_>>(), [0, 1, 2, 8, 9, 10]);
    }

    #[test]
    fn without_its_registration_a_server_writes_only_what_is_exempt() {
        let mut lease = mutation("a", Expect::Absent, true);
        lease.key.resource = ResourceId(2);
        let batch = [mutation("a", Expect::Absent, true), lease];
        let fence = Fence { server: "s".into(), incarnation: "i".into(), exempt: vec![ResourceId(2)] };
        let verdict = judge(&batch, Revision(10), found(&[None; 2]), Some(&fence));
        assert_eq!(verdict.outcomes, [Outcome::Fenced, Outcome::Committed(Revision(11))]);
        assert_eq!(verdict.writes.len(), 1);
    }

    #[test]
    fn what_changes_the_registry_passes_as_a_whole() {
        let change = RegistryChange::Remove(vec!["other".into()]);
        let fence = Fence { server: "s".into(), incarnation: "i".into(), exempt: Vec::new() };
        let terms = Terms { fence: Some(&fence), registry: Some(&change), ..Terms::default() };
        let batch = [mutation("a", Expect::Absent, true), mutation("b", Expect::Absent, true)];
        let judged =
            |live, registered| judge_under(&batch, Revision(10), Found { registered, ..found(live) }, terms);

        let (verdict, registry) = judged(&[None; 2], true).expect("it stands");
        assert_eq!((verdict.writes.len(), registry), (2, Some(&change)));
        let (verdict, registry) = judged(&[None, Some(Revision(3))], true).expect("it stands");
        assert_eq!((verdict.writes.len(), registry), (0, None));
        assert_eq!(verdict.outcomes[1], Outcome::Conflict { found: Some(Revision(3)) });
        assert!(matches!(judged(&[None; 2], false), Err(Error::Fenced)));

        let [first, second] = batch.clone();
        let batch = [first, second.requiring([require("ns", Expect::At(Revision(3)))])];
        let judged = |live: &[_]| judge_under(&batch, Revision(10), found(live), terms).expect("it stands");
        assert_eq!(judged(&[None, None, Some(Revision(3))]).1, Some(&change));
        assert_eq!(judged(&[None, None, Some(Revision(4))]).1, None);
    }
}
