//! The rules of a batch, as a pure function: which mutations pass, and which revisions they get.

use std::collections::HashMap;

use super::commit::required_keys;
use super::{
    Change, ChangeKind, Error, Expect, Fence, Key, Mutation, Outcome, RegistryChange, Requirement, Terms,
};
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

/// Judges a batch under its terms. `registered` tells whether the fence's registration still exists. Also returns the
/// change of the registry to carry out: the requested one if all mutations pass, otherwise none.
pub fn judge_under<'a>(
    batch: &[Mutation],
    base: Revision,
    live: &[Option<Revision>],
    registered: bool,
    terms: Terms<'a>,
) -> Result<(Verdict, Option<&'a RegistryChange>), Error> {
    let lost = terms.fence.filter(|_| !registered);
    let Some(change) = terms.registry else { return Ok((judge(batch, base, live, lost), None)) };
    if lost.is_some() {
        return Err(Error::Fenced);
    }
    let mut verdict = judge(batch, base, live, None);
    if verdict.writes.len() < batch.len() {
        verdict.writes.clear();
        return Ok((verdict, None));
    }
    Ok((verdict, Some(change)))
}

/// Judges `batch` in order. `live[i]` is the live version in the database of `batch[i].key`; behind these follow the
/// live versions of the [`required_keys`]. Each mutation is judged against what the earlier mutations of the batch did
/// to the rows that it writes or requires. `lost` is the server's fence if its registration is gone.
fn judge(batch: &[Mutation], base: Revision, live: &[Option<Revision>], lost: Option<&Fence>) -> Verdict {
    let mut current: HashMap<&Key, Option<Revision>> = HashMap::with_capacity(batch.len());
    let mut verdict = Verdict { outcomes: Vec::with_capacity(batch.len()), writes: Vec::new() };
    for (key, live) in required_keys(batch).into_iter().zip(live.get(batch.len()..).unwrap_or_default()) {
        current.insert(key, *live);
    }
    let mut next = base.0 + 1;
    for (index, mutation) in batch.iter().enumerate() {
        if lost.is_some_and(|fence| !fence.exempts(mutation)) {
            verdict.outcomes.push(Outcome::Fenced);
            continue;
        }
        let slot = current.entry(&mutation.key).or_insert(live[index]);
        let found = *slot;
        let kind = match (&mutation.change, mutation.expect) {
            (Change::Put { .. }, Expect::Absent) => ChangeKind::Added,
            (Change::Put { .. }, Expect::At(_)) => ChangeKind::Modified,
            (Change::Delete, _) => ChangeKind::Deleted,
        };
        let deletes_nothing = kind == ChangeKind::Deleted && found.is_none();
        if deletes_nothing || !mutation.expect.holds(found) {
            verdict.outcomes.push(Outcome::Conflict { found });
            continue;
        }
        let revision = Revision(next);
        let after = (kind != ChangeKind::Deleted).then_some(revision);
        if mutation.requires.is_empty() {
            *slot = after;
        } else if let Some(unmet) = first_unmet(&mutation.requires, &current) {
            verdict.outcomes.push(unmet);
            continue;
        } else {
            current.insert(&mutation.key, after);
        }
        next += 1;
        verdict.writes.push(Write { index, revision, kind, previous: found });
        verdict.outcomes.push(Outcome::Committed(revision));
    }
    verdict
}

fn first_unmet(requires: &[Requirement], current: &HashMap<&Key, Option<Revision>>) -> Option<Outcome> {
    requires.iter().enumerate().find_map(|(requirement, Requirement { key, expect })| {
        let found = current.get(key).copied().flatten();
        (!expect.holds(found)).then_some(Outcome::Unmet { requirement, found })
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::codec::object::Draft;
    use crate::storage::ResourceId;

    fn mutation(name: &str, expect: Expect, put: bool) -> Mutation {
        let change = if put {
            let draft = Draft::of_json("", name, Bytes::from_static(b"{\"metadata\":{}}"));
            Change::Put { uid: "u".into(), stored_version: "v1".into(), draft }
        } else {
            Change::Delete
        };
        Mutation::new(Key::new(ResourceId(1), "", name), expect, change)
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
        let verdict = judge(&batch, Revision(10), &live, None);
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
        let verdict = judge(&batch, Revision(10), &[Some(Revision(4)); 4], None);
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
        let verdict = judge(&batch, Revision(10), &live, None);
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
            judge(&batch, Revision(10), &live, None).outcomes,
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
    fn without_its_registration_a_server_writes_only_what_is_exempt() {
        let mut lease = mutation("a", Expect::Absent, true);
        lease.key.resource = ResourceId(2);
        let batch = [mutation("a", Expect::Absent, true), lease];
        let fence = Fence { server: "s".into(), incarnation: "i".into(), exempt: vec![ResourceId(2)] };
        let verdict = judge(&batch, Revision(10), &[None; 2], Some(&fence));
        assert_eq!(verdict.outcomes, [Outcome::Fenced, Outcome::Committed(Revision(11))]);
        assert_eq!(verdict.writes.len(), 1);
    }

    #[test]
    fn what_changes_the_registry_passes_as_a_whole() {
        let change = RegistryChange::Remove(vec!["other".into()]);
        let fence = Fence { server: "s".into(), incarnation: "i".into(), exempt: Vec::new() };
        let terms = Terms { fence: Some(&fence), registry: Some(&change), ..Terms::default() };
        let batch = [mutation("a", Expect::Absent, true), mutation("b", Expect::Absent, true)];
        let judged = |live, registered| judge_under(&batch, Revision(10), live, registered, terms);

        let (verdict, registry) = judged(&[None; 2], true).expect("it stands");
        assert_eq!((verdict.writes.len(), registry), (2, Some(&change)));
        let (verdict, registry) = judged(&[None, Some(Revision(3))], true).expect("it stands");
        assert_eq!((verdict.writes.len(), registry), (0, None));
        assert_eq!(verdict.outcomes[1], Outcome::Conflict { found: Some(Revision(3)) });
        assert!(matches!(judged(&[None; 2], false), Err(Error::Fenced)));

        let [first, second] = batch.clone();
        let batch = [first, second.requiring([require("ns", Expect::At(Revision(3)))])];
        let judged = |live: &[_]| judge_under(&batch, Revision(10), live, true, terms).expect("it stands");
        assert_eq!(judged(&[None, None, Some(Revision(3))]).1, Some(&change));
        assert_eq!(judged(&[None, None, Some(Revision(4))]).1, None);
    }
}
