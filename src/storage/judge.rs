//! The rules of a batch, as a pure function: which mutations pass, and with which revisions.

use std::collections::HashMap;

use super::{Change, ChangeKind, Error, Expect, Fence, Key, Mutation, Outcome, RegistryChange, Terms};
use crate::revision::Revision;

/// What a batch comes down to.
#[derive(Debug, PartialEq, Eq)]
pub struct Verdict {
    /// One per mutation.
    pub outcomes: Vec<Outcome>,
    /// The writes to do; their revisions follow the base without a gap.
    pub writes: Vec<Write>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Write {
    /// Index into the batch.
    pub index: usize,
    pub revision: Revision,
    pub kind: ChangeKind,
    pub previous: Option<Revision>,
}

/// Judges a batch under its terms; `registered` tells whether the fence stands. Returns also what becomes of the
/// registry: what was asked for, if everything else passes.
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

/// Judges `batch` in order. `live[i]` is the database's live version of `batch[i].key`; a later mutation of the same
/// key is judged against what an earlier one made of it. `lost` is the server's fence, if it does not stand any more.
fn judge(batch: &[Mutation], base: Revision, live: &[Option<Revision>], lost: Option<&Fence>) -> Verdict {
    let mut current: HashMap<&Key, Option<Revision>> = HashMap::with_capacity(batch.len());
    let mut verdict = Verdict { outcomes: Vec::with_capacity(batch.len()), writes: Vec::new() };
    let mut next = base.0 + 1;
    for (index, mutation) in batch.iter().enumerate() {
        if lost.is_some_and(|fence| !fence.exempts(mutation)) {
            verdict.outcomes.push(Outcome::Fenced);
            continue;
        }
        let live = current.entry(&mutation.key).or_insert(live[index]);
        let kind = match (&mutation.change, mutation.expect, *live) {
            (Change::Put { .. }, Expect::Absent, None) => ChangeKind::Added,
            (Change::Put { .. }, Expect::At(expected), Some(found)) if expected == found => {
                ChangeKind::Modified
            }
            (Change::Delete, Expect::At(expected), Some(found)) if expected == found => ChangeKind::Deleted,
            (_, _, found) => {
                verdict.outcomes.push(Outcome::Conflict { found });
                continue;
            }
        };
        let revision = Revision(next);
        next += 1;
        verdict.writes.push(Write { index, revision, kind, previous: *live });
        verdict.outcomes.push(Outcome::Committed(revision));
        *live = (kind != ChangeKind::Deleted).then_some(revision);
    }
    verdict
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
        Mutation { key: Key::new(ResourceId(1), "", name), expect, change }
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
    }
}
