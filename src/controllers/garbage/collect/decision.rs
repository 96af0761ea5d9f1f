//! The next step for a dependent, decided from the states of its owners alone.

use crate::controllers::garbage::graph::{FOREGROUND, Facts, ORPHAN, OwnerReference};
use crate::kinds::behavior::deletion::Propagation;

/// The state of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// It exists and stays.
    Solid,
    /// It does not exist.
    Dangling,
    /// It waits for its dependents in a foreground deletion.
    Waiting,
    /// It waits until its dependents do not name it any more. Only if the owner or the dependent is an extension
    /// server's: otherwise the owner's own step releases its dependents.
    Orphaning,
    /// Undecided: this server does not know the kind, the kind cannot own the object, or the owner exists and cannot be
    /// read.
    Unknown,
}

impl Owner {
    /// The state of an owner that exists, seen from a dependent at another server.
    pub fn of(owner: &Facts) -> Self {
        if owner.waits_to_orphan() {
            Self::Orphaning
        } else if owner.waits_for_dependents() {
            Self::Waiting
        } else {
            Self::Solid
        }
    }
}

/// The owners of a dependent by their state.
#[derive(Debug, Default)]
pub struct Owners<'a> {
    pub solid: Vec<&'a OwnerReference>,
    pub dangling: Vec<&'a OwnerReference>,
    pub waiting: Vec<&'a OwnerReference>,
    pub orphaning: Vec<&'a OwnerReference>,
    /// At least one owner is undecided.
    pub unknown: bool,
    /// At least one owner is an extension server's, which may end without a word.
    pub remote: bool,
}

impl<'a> Owners<'a> {
    pub fn add(&mut self, owner: &'a OwnerReference, state: Owner) {
        match state {
            Owner::Solid => self.solid.push(owner),
            Owner::Dangling => self.dangling.push(owner),
            Owner::Waiting => self.waiting.push(owner),
            Owner::Orphaning => self.orphaning.push(owner),
            Owner::Unknown => self.unknown = true,
        }
    }
}

/// The dependents that an object has itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct OwnDependents {
    pub exist: bool,
    /// At least one of them waits for dependents of its own in a foreground deletion.
    pub one_waits: bool,
}

/// The next step for a dependent.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The object stays as it is.
    Keep,
    /// An owner is undecided, or may end without a word: the object is to be looked at again.
    Undecided,
    /// The references to the owners with these uids are to be removed.
    Release(Vec<&'a str>),
    /// No owner is to wait for the object any more, since there may be a cycle of objects that wait for each other.
    /// Upstream breaks it here, too.
    Unblock,
    Delete(Propagation),
}

/// Decides. `own` is asked only if an owner waits for the object.
pub fn decide<'a>(owners: &Owners<'a>, facts: &Facts, own: impl FnOnce() -> OwnDependents) -> Step<'a> {
    let uid = |owner: &&'a OwnerReference| owner.uid.as_str();
    if !owners.orphaning.is_empty() {
        return Step::Release(owners.orphaning.iter().map(uid).collect());
    }
    if owners.unknown {
        return Step::Undecided;
    }
    if owners.dangling.is_empty() && owners.waiting.is_empty() {
        return if owners.remote { Step::Undecided } else { Step::Keep };
    }
    if !owners.solid.is_empty() {
        return Step::Release(owners.dangling.iter().chain(&owners.waiting).map(uid).collect());
    }
    if !owners.waiting.is_empty() {
        let own = own();
        if own.one_waits && facts.owner_references.iter().any(OwnerReference::blocks) {
            return Step::Unblock;
        }
        if own.exist {
            return Step::Delete(Propagation::Foreground);
        }
    }
    let policy = if facts.has_finalizer(FOREGROUND) {
        Propagation::Foreground
    } else if facts.has_finalizer(ORPHAN) {
        Propagation::Orphan
    } else {
        Propagation::Background
    };
    Step::Delete(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(uid: &str) -> OwnerReference {
        OwnerReference { uid: uid.to_owned(), block_owner_deletion: Some(true), ..OwnerReference::default() }
    }

    fn of(states: &[(&OwnerReference, Owner)], own: OwnDependents) -> String {
        let mut owners = Owners::default();
        let mut facts = Facts::default();
        for (owner, state) in states {
            owners.add(owner, *state);
            facts.owner_references.push((*owner).clone());
        }
        format!("{:?}", decide(&owners, &facts, || own))
    }

    #[test]
    fn what_is_unknown_decides_nothing_and_who_orphans_is_left() {
        let (a, b) = (owner("a"), owner("b"));
        let none = OwnDependents::default();
        let some = OwnDependents { exist: true, one_waits: false };
        let cycle = OwnDependents { exist: true, one_waits: true };
        for (states, own, want) in [
            (vec![(&a, Owner::Solid)], none, "Keep"),
            (vec![(&a, Owner::Dangling)], none, "Delete(Background)"),
            (vec![(&a, Owner::Dangling), (&b, Owner::Unknown)], none, "Undecided"),
            (vec![(&a, Owner::Dangling), (&b, Owner::Solid)], none, "Release([\"a\"])"),
            (vec![(&a, Owner::Orphaning), (&b, Owner::Unknown)], none, "Release([\"a\"])"),
            (vec![(&a, Owner::Orphaning), (&b, Owner::Dangling)], none, "Release([\"a\"])"),
            (vec![(&a, Owner::Waiting), (&b, Owner::Solid)], none, "Release([\"a\"])"),
            (vec![(&a, Owner::Waiting)], none, "Delete(Background)"),
            (vec![(&a, Owner::Waiting)], some, "Delete(Foreground)"),
            (vec![(&a, Owner::Waiting)], cycle, "Unblock"),
        ] {
            assert_eq!(of(&states, own), want, "{states:?}");
        }
    }
}
