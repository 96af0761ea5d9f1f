//! What deletions do, judged by the record that a trigger keeps of every row: what is held stays, what is being deleted
//! stays so, owners and dependents go in their order, and nothing goes that nobody asked for.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

use super::history::{Promise, Violation};
use super::records::Row;

/// Where owners and dependents live.
pub const TREES: &str = "trees";
/// What namespaces are called that go with all that is in them.
pub const GONE: &str = "gone-";
/// The finalizer of clients.
pub const HOLD: &str = "faults.example.com/hold";
/// The labels of what is deleted as a collection, and of what the selector picks of it.
pub const BATCH: &str = "batch";
pub const PICK: &str = "pick";
pub const RESOURCES: [&str; 3] = ["secrets", "pods", "namespaces"];
const FOREGROUND: &str = "foregroundDeletion";
const ORPHAN: &str = "orphan";

/// Resource, namespace and name.
pub type Place = (String, String, String);

/// What clients have asked for, written down before they ask.
#[derive(Debug, Default)]
pub struct Asked {
    pub deletions: BTreeSet<Place>,
    pub collections: Vec<Collection>,
    /// The versions of which [`HOLD`] was taken off.
    pub released: BTreeSet<(Place, u64)>,
    /// The versions of Pods whose grace period was ended.
    pub killed: BTreeSet<(Place, u64)>,
}

/// A deletion of all objects of a batch that are picked.
#[derive(Clone, Debug)]
pub struct Collection {
    pub plural: String,
    pub namespace: String,
    pub batch: String,
    /// The revision of the list that is the answer.
    pub answered: Option<u64>,
}

/// What has been judged, so that nobody takes silence for a verdict.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deleted {
    pub rows: usize,
    pub collected: usize,
    pub waited: usize,
    pub orphaned: usize,
    pub released: usize,
    pub killed: usize,
    pub collections: usize,
    pub namespaces: usize,
}

impl fmt::Display for Deleted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, collected, waited, orphaned, released, killed, collections, namespaces } = self;
        write!(
            f,
            "{rows} rows of deletions: {collected} objects collected, {waited} owners waited for dependents, {orphaned} orphaned \
             theirs, {released} holds taken off, {killed} Pods killed, {collections} collections, {namespaces} namespaces"
        )
    }
}

/// An object from its creation to its end.
#[derive(Debug)]
struct Life {
    place: Place,
    created: u64,
    marked: Option<u64>,
    removed: Option<u64>,
    revision: u64,
    /// As it was last.
    object: Value,
}

/// Judges all rows; `lost` says that answered writes may be lost.
pub fn judge(rows: &[Row], asked: &Asked, lost: bool) -> (Deleted, Vec<Violation>) {
    let mut state =
        State { asked, lives: BTreeMap::new(), there: BTreeMap::new(), judged: Deleted::default() };
    let mut violations = Vec::new();
    let mut complain =
        |story: String| violations.push(Violation::new(Promise::Guarded, format!("deletions: {story}")));
    for row in rows.iter().filter(|row| is_ours(row)) {
        for story in state.step(row) {
            complain(format!("{story} at revision {}: {row:?}", row.revision));
        }
    }
    state.left().into_iter().for_each(&mut complain);
    if !lost {
        state.forgotten().into_iter().for_each(&mut complain);
    }
    (state.judged, violations)
}

fn is_ours(row: &Row) -> bool {
    let namespace = if row.plural == "namespaces" { &row.name } else { &row.namespace };
    namespace == TREES || namespace.starts_with(GONE)
}

/// The state after a revision.
struct State<'a> {
    asked: &'a Asked,
    /// By their uids, also those that have ended.
    lives: BTreeMap<String, Life>,
    /// The uids of what is there.
    there: BTreeMap<Place, String>,
    judged: Deleted,
}

impl State<'_> {
    /// Takes in a row. Says what is wrong with it.
    fn step(&mut self, row: &Row) -> Vec<String> {
        self.judged.rows += 1;
        let Row { revision, plural, namespace, name, uid, object } = row;
        let place = (plural.clone(), namespace.clone(), name.clone());
        let before = self.there.get(&place).cloned();
        let stories = match (&before, object) {
            (None, None) => vec!["what is not there was removed".to_owned()],
            (None, Some(object)) => self.created(row, object),
            (Some(before), Some(object)) => self.changed(before, object, *revision),
            (Some(before), None) => self.removed(before, *revision),
        };
        match object {
            Some(object) => {
                let marked = is_marked(object).then_some(*revision);
                let new = || Life {
                    place: place.clone(),
                    created: *revision,
                    marked,
                    removed: None,
                    revision: *revision,
                    object: Value::Null,
                };
                let life = self.lives.entry(uid.clone()).or_insert_with(new);
                life.marked = life.marked.or(marked);
                (life.revision, life.object) = (*revision, object.clone());
                self.there.insert(place, uid.clone());
            }
            None => {
                if let Some(life) = self.there.remove(&place).and_then(|uid| self.lives.get_mut(&uid)) {
                    life.removed = Some(*revision);
                }
            }
        }
        stories
    }

    fn created(&self, row: &Row, object: &Value) -> Vec<String> {
        let mut stories = Vec::new();
        if row.uid.is_empty() || object["metadata"]["uid"] != *row.uid || self.lives.contains_key(&row.uid) {
            stories.push("an object comes without a uid of its own".to_owned());
        }
        if is_marked(object) {
            stories.push("an object comes that is being deleted".to_owned());
        }
        if row.plural != "namespaces" && self.ends(&row.namespace) {
            stories.push("an object comes into a namespace that ends".to_owned());
        }
        stories
    }

    fn changed(&mut self, uid: &str, after: &Value, revision: u64) -> Vec<String> {
        let life = &self.lives[uid];
        let (before, mut stories) = (&life.object, Vec::new());
        if (&before["metadata"]["uid"], &before["metadata"]["creationTimestamp"])
            != (&after["metadata"]["uid"], &after["metadata"]["creationTimestamp"])
        {
            stories.push("an object has become another one".to_owned());
        }
        // All of the same length, in UTC.
        match (deadline(before), deadline(after)) {
            (Some(_), None) => stories.push("a deletion was taken back".to_owned()),
            (Some(before), Some(after)) if after > before => {
                stories.push("a deletion was put off".to_owned());
            }
            (None, Some(_)) => {
                stories.extend(self.reason(life).err());
            }
            _ => {}
        }
        let own = |name: &&str| !matches!(*name, FOREGROUND | ORPHAN);
        let added = finalizers(after).into_iter().filter(|name| !finalizers(before).contains(name));
        if is_marked(before) && added.filter(own).count() > 0 {
            stories.push("what is being deleted is held anew".to_owned());
        }
        stories.extend(self.let_go(life, after));
        let gone: Vec<String> = finalizers(before)
            .into_iter()
            .filter(|name| !finalizers(after).contains(name))
            .map(str::to_owned)
            .collect();
        if deadline(before).is_none() && is_marked(after) && self.is_collected(life) {
            self.judged.collected += 1;
        }
        stories.extend(self.finalized(uid, &gone, revision));
        stories
    }

    fn removed(&mut self, uid: &str, revision: u64) -> Vec<String> {
        let life = &self.lives[uid];
        let (before, mut stories) = (&life.object, Vec::new());
        if !is_marked(before) {
            stories.extend(self.reason(life).err());
        }
        let has_grace = match is_marked(before) {
            true => before["metadata"]["deletionGracePeriodSeconds"].as_i64().is_some_and(|left| left > 0),
            false => before["spec"]["nodeName"].is_string(),
        };
        let is_killed = self.asked.killed.contains(&(life.place.clone(), life.revision));
        if has_grace && !is_killed {
            stories.push("a Pod was removed within its grace period".to_owned());
        }
        let is_collected = !is_marked(before) && self.is_collected(life);
        if life.place.0 == "namespaces" {
            let left = self.there.keys().filter(|(_, namespace, _)| *namespace == life.place.2).count();
            if left > 0 {
                stories.push(format!("a namespace is gone, and {left} objects are left"));
            }
            self.judged.namespaces += 1;
        }
        let gone: Vec<String> = finalizers(before).into_iter().map(str::to_owned).collect();
        self.judged.killed += usize::from(has_grace);
        self.judged.collected += usize::from(is_collected);
        stories.extend(self.finalized(uid, &gone, revision));
        stories
    }

    /// What is wrong with the end of these finalizers.
    fn finalized(&mut self, uid: &str, gone: &[String], revision: u64) -> Vec<String> {
        let life = &self.lives[uid];
        // What has come since its owner was marked may not have been seen.
        let marked = life.marked.unwrap_or(revision);
        let names_it = |dependent: &&Life, blocking: bool| {
            let names = |owner: &Owner<'_>| owner.uid == uid && (owner.blocks || !blocking);
            dependent.created < marked && owners(&dependent.object).iter().any(names)
        };
        let there = || self.there.values().map(|uid| &self.lives[uid]);
        let dependents = |blocking| there().filter(|life| names_it(life, blocking)).count();
        let mut stories = Vec::new();
        for name in gone {
            match name.as_str() {
                FOREGROUND => match dependents(true) {
                    0 => self.judged.waited += 1,
                    left => stories.push(format!("an owner did not wait for {left} dependents")),
                },
                ORPHAN => match dependents(false) {
                    0 => self.judged.orphaned += 1,
                    left => stories.push(format!("an owner went with {left} dependents that still name it")),
                },
                _ if self.asked.released.contains(&(life.place.clone(), life.revision)) => {
                    self.judged.released += 1;
                }
                _ => stories.push(format!("nobody took off {name}")),
            }
        }
        stories
    }

    /// An owner is named until it goes, or is being deleted.
    fn let_go(&self, dependent: &Life, after: &Value) -> Vec<String> {
        let kept: BTreeSet<&str> = owners(after).into_iter().map(|owner| owner.uid).collect();
        let lost = owners(&dependent.object).into_iter().filter(|owner| !kept.contains(owner.uid));
        let stays = |owner: &Owner<'_>| {
            self.lives.get(owner.uid).is_some_and(|life| life.removed.is_none() && !is_marked(&life.object))
        };
        lost.filter(stays).map(|owner| format!("{} is not named any more, and stays", owner.uid)).collect()
    }

    /// Why the object may be deleted.
    fn reason(&self, life: &Life) -> Result<(), String> {
        let (plural, namespace, _) = &life.place;
        let selects = |collection: &Collection| {
            collection.plural == *plural
                && collection.namespace == *namespace
                && picks(collection, &life.object)
        };
        let is_asked = self.asked.deletions.contains(&life.place)
            || self.asked.collections.iter().any(selects)
            || plural != "namespaces" && self.ends(namespace)
            || self.is_collected(life);
        match is_asked {
            true => Ok(()),
            false => Err("an object is deleted that nobody wanted to be".to_owned()),
        }
    }

    /// Whether the object has owners, all of which are gone or wait for it.
    fn is_collected(&self, life: &Life) -> bool {
        let owners = owners(&life.object);
        let is_solid = |owner: &Owner<'_>| {
            self.lives.get(owner.uid).is_some_and(|owner| {
                let waits = is_marked(&owner.object) && finalizers(&owner.object).contains(&FOREGROUND);
                owner.removed.is_none() && !waits
            })
        };
        !owners.is_empty() && !owners.iter().any(is_solid)
    }

    fn ends(&self, namespace: &str) -> bool {
        let place = ("namespaces".to_owned(), String::new(), namespace.to_owned());
        self.there.get(&place).is_none_or(|uid| is_marked(&self.lives[uid].object))
    }

    /// What is left in the end, though it is being deleted or an owner of it is gone.
    fn left(&self) -> Vec<String> {
        let there = self.there.values().map(|uid| &self.lives[uid]);
        let is_gone =
            |owner: &Owner<'_>| self.lives.get(owner.uid).is_none_or(|owner| owner.removed.is_some());
        let left = there.filter(|life| is_marked(&life.object) || owners(&life.object).iter().any(is_gone));
        left.map(|life| format!("this is left in the end: {life:?}")).collect()
    }

    /// What a deletion of a collection has passed over.
    fn forgotten(&mut self) -> Vec<String> {
        let mut stories = Vec::new();
        for collection in &self.asked.collections {
            let Some(at) = collection.answered else { continue };
            self.judged.collections += 1;
            let was_there = |life: &&Life| {
                life.place.0 == collection.plural
                    && life.place.1 == collection.namespace
                    && life.created <= at
                    && picks(collection, &life.object)
            };
            let stays = |life: &&Life| life.marked.is_none() && life.removed.is_none();
            let forgotten = self.lives.values().filter(was_there).filter(stays);
            stories.extend(forgotten.map(|life| format!("{collection:?} has left {life:?}")));
        }
        stories
    }
}

struct Owner<'a> {
    uid: &'a str,
    blocks: bool,
}

fn owners(object: &Value) -> Vec<Owner<'_>> {
    let owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let owner = |owner: &'_ Value| owner["blockOwnerDeletion"] == true;
    owners.map(|it| Owner { uid: it["uid"].as_str().unwrap_or_default(), blocks: owner(it) }).collect()
}

pub fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn deadline(object: &Value) -> Option<&str> {
    object["metadata"]["deletionTimestamp"].as_str()
}

pub fn is_marked(object: &Value) -> bool {
    deadline(object).is_some()
}

fn picks(collection: &Collection, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    labels[BATCH] == *collection.batch && labels[PICK] == "yes"
}
