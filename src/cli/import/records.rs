//! Records of a store, made of the keys of a source.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write as _};

use rowplane_etcd::KeyValue;
use rowplane_etcd::keys::{KeyMap, ObjectKey};
use rowplane_etcd::live::Change;

use super::findings::Found;
use crate::revision::Revision;
use crate::storage::transfer::{Error, Record, StoredObject};

/// Makes records of keys, in the order of their revisions.
pub struct Objects {
    keys: KeyMap,
    /// The key of the object before, and its revision.
    previous: Option<(Vec<u8>, u64)>,
    found: Found,
}

impl Objects {
    pub fn new(keys: KeyMap, found: Found) -> Self {
        Self { keys, previous: None, found }
    }

    /// The record of a key; `None` if it stands for no object.
    pub fn object_of(&mut self, next: KeyValue) -> Result<Option<Record>, Error> {
        match self.keys.object(&next.key) {
            Ok(object) => in_order(&mut self.previous, next).map(|next| Some(stored(object, next))),
            Err(left) => {
                self.found.update(|findings| *findings.left.entry(left).or_default() += 1);
                Ok(None)
            }
        }
    }
}

/// Fails if a key was written together with the one before it: no two objects of a store have the same revision.
fn in_order(previous: &mut Option<(Vec<u8>, u64)>, next: KeyValue) -> Result<KeyValue, Error> {
    let revision = next.mod_revision;
    if let Some((key, _)) = previous.as_ref().filter(|(_, written)| *written == revision) {
        return Err(same_revision(key, &next));
    }
    *previous = Some((next.key.clone(), revision));
    Ok(next)
}

fn stored(key: ObjectKey, found: KeyValue) -> Record {
    let ObjectKey { resource, namespace, name } = key;
    let (revision, value) = (Revision(found.mod_revision), found.value);
    let (uid, stored_version) = (String::new(), String::new());
    Record::Object(StoredObject { resource, namespace, name, revision, uid, stored_version, value })
}

/// Makes records of the changes of a source, in which an object has one record that lasts.
pub struct Changes {
    keys: KeyMap,
    found: Found,
    /// The revision of each object, by its key.
    live: HashMap<Vec<u8>, u64>,
    /// The revisions in `live`.
    taken: HashSet<u64>,
    /// Whether the first state is complete.
    following: bool,
}

impl Changes {
    pub fn new(keys: KeyMap, found: Found) -> Self {
        Self { keys, found, live: HashMap::new(), taken: HashSet::new(), following: false }
    }

    pub fn records(&mut self, changes: Vec<Change>) -> Result<Vec<Record>, Error> {
        let mut records = Vec::with_capacity(changes.len());
        for change in changes {
            match change {
                Change::Put(next) => self.put(next, &mut records)?,
                Change::Delete { key, revision } => records.extend(self.remove(&key, revision)),
                Change::Following => {
                    self.following = true;
                    let text =
                        "import: follows changes; stop what writes to the source, and then press Ctrl-C";
                    // The standard error may be closed, which is no reason to end.
                    let _ = writeln!(io::stderr(), "{text}");
                }
                Change::Reached(revision) => {
                    let revision = Revision(revision);
                    self.found.update(|findings| findings.reached = Some(revision));
                    records.push(Record::Reached(revision));
                }
            }
        }
        Ok(records)
    }

    fn put(&mut self, next: KeyValue, records: &mut Vec<Record>) -> Result<(), Error> {
        let object = match self.keys.object(&next.key) {
            Ok(object) => object,
            Err(left) => {
                if !self.following {
                    self.found.update(|findings| *findings.left.entry(left).or_default() += 1);
                }
                return Ok(());
            }
        };
        let revision = next.mod_revision;
        // A watch that begins anew may send again what has come.
        if self.live.get(&next.key).is_some_and(|known| *known >= revision) {
            return Ok(());
        }
        records.extend(self.remove(&next.key, revision));
        if !self.taken.insert(revision) {
            let other = self.live.iter().find(|(_, known)| **known == revision);
            let other = other.map(|(key, _)| key.as_slice()).unwrap_or_default();
            return Err(same_revision(other, &next));
        }
        self.live.insert(next.key.clone(), revision);
        records.push(stored(object, next));
        Ok(())
    }

    /// The end of a key's object, if it is older than a revision.
    fn remove(&mut self, key: &[u8], revision: u64) -> Option<Record> {
        let known = *self.live.get(key).filter(|known| **known < revision)?;
        let object = self.keys.object(key).ok()?;
        self.live.remove(key);
        self.taken.remove(&known);
        Some(Record::Removed(object.resource, Revision(known)))
    }
}

/// The error of two keys of one revision: no two objects of a store have the same one.
fn same_revision(key: &[u8], next: &KeyValue) -> Error {
    let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
    Error::Source(format!(
        "{} and {} have the same revision {}: write one of them again, and import anew",
        text(key),
        text(&next.key),
        next.mod_revision
    ))
}

#[cfg(test)]
mod tests {
    use rowplane_etcd::keys::PREFIX;

    use super::*;
    use crate::schema::names::GroupResource;

    fn changes() -> Changes {
        Changes::new(KeyMap::new(PREFIX), Found::default())
    }

    fn put(name: &str, mod_revision: u64) -> Change {
        let key = format!("/registry/configmaps/ns/{name}").into_bytes();
        Change::Put(KeyValue { key, mod_revision, value: Vec::new() })
    }

    fn delete(name: &str, revision: u64) -> Change {
        Change::Delete { key: format!("/registry/configmaps/ns/{name}").into_bytes(), revision }
    }

    /// The revisions of objects that came, and that went.
    fn of(records: &[Record]) -> (Vec<u64>, Vec<u64>) {
        let came = records.iter().filter_map(|record| match record {
            Record::Object(object) => Some(object.revision.0),
            _ => None,
        });
        let went = records.iter().filter_map(|record| match record {
            Record::Removed(resource, revision) => {
                assert_eq!(*resource, GroupResource::new("", "configmaps"));
                Some(revision.0)
            }
            _ => None,
        });
        (came.collect(), went.collect())
    }

    #[test]
    fn an_object_has_one_record_that_lasts() {
        let mut changes = changes();
        let mut step = |all: Vec<Change>| of(&changes.records(all).expect("records"));
        assert_eq!(step(vec![put("a", 3), put("b", 2)]), (vec![3, 2], vec![]));
        assert_eq!(step(vec![put("a", 5), delete("b", 6), put("b", 7)]), (vec![5, 7], vec![3, 2]));
        // What a watch sends again changes nothing.
        assert_eq!(step(vec![put("a", 3), put("a", 5), delete("b", 6), put("b", 7)]), (vec![], vec![]));
        assert_eq!(step(vec![delete("a", 8), delete("a", 9)]), (vec![], vec![5]));
    }

    #[test]
    fn two_objects_of_one_revision_are_refused() {
        let mut changes = changes();
        let error = changes.records(vec![put("a", 3), put("b", 3)]).expect_err("refused").to_string();
        assert!(error.contains("ns/a and /registry/configmaps/ns/b have the same revision 3"), "{error}");
    }
}
