//! Who makes changes. The table `writers` has each combination once; a change refers to it by number.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::super::Mutation;

/// The longest text of a field, in bytes.
const LONGEST: usize = 512;
/// How long a server relies on a row of `writers` that it has seen to: a row that nobody has needed for much longer, and
/// that is older than all changes, is removed.
const PERIOD: Duration = Duration::from_secs(3600);
/// The most rows that one server adds in a [`PERIOD`]. Clients choose managers and names of programs as they like; beyond
/// this, rows are added without them, and beyond twice as many none are.
const MOST: usize = 10_000;

/// Who made a change, and how. Texts are empty where there is nothing to say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Writer {
    pub username: String,
    /// The user who acted in the name of `username`.
    pub impersonator: String,
    pub verb: String,
    pub subresource: String,
    /// The field manager.
    pub manager: String,
    /// The program: the first word of the User-Agent.
    pub client: String,
}

/// How much of a writer is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordWriters {
    #[default]
    Full,
    /// The field manager, the verb and the subresource, but no user and no program.
    Manager,
    Off,
}

impl RecordWriters {
    /// What is recorded of a writer.
    pub fn record(self, writer: Writer) -> Option<Arc<Author>> {
        match self {
            Self::Full => Some(Author::new(writer)),
            Self::Manager => {
                let Writer { verb, subresource, manager, .. } = writer;
                Some(Author::new(Writer { verb, subresource, manager, ..Writer::default() }))
            }
            Self::Off => None,
        }
    }
}

/// A writer with its number.
#[derive(Debug, PartialEq, Eq)]
pub struct Author {
    id: i64,
    writer: Writer,
}

impl Author {
    /// Texts are cut to 512 bytes, and lose characters that databases cannot store.
    pub fn new(mut writer: Writer) -> Arc<Self> {
        for text in writer.texts_mut() {
            text.retain(|char| char != '\0');
            text.truncate(text.floor_char_boundary(LONGEST));
        }
        let mut digest = Sha256::new();
        for text in writer.texts() {
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text);
        }
        let digest: [u8; 32] = digest.finalize().into();
        let [a, b, c, d, e, f, g, h, ..] = digest;
        Arc::new(Self { id: i64::from_be_bytes([a, b, c, d, e, f, g, h]), writer })
    }

    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    pub(in super::super) fn id(&self) -> i64 {
        self.id
    }

    /// The writer without the texts that clients choose.
    fn plain(&self) -> Arc<Self> {
        let (manager, client) = (String::new(), String::new());
        Self::new(Writer { manager, client, ..self.writer.clone() })
    }
}

impl Writer {
    /// The columns of the table, in its order.
    pub(in super::super) fn texts(&self) -> [&str; 6] {
        let Self { username, impersonator, verb, subresource, manager, client } = self;
        [username, impersonator, verb, subresource, manager, client]
    }

    fn texts_mut(&mut self) -> [&mut String; 6] {
        let Self { username, impersonator, verb, subresource, manager, client } = self;
        [username, impersonator, verb, subresource, manager, client]
    }
}

/// The rows of `writers` that this server has seen to lately.
#[derive(Debug, Default)]
pub struct KnownAuthors(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    since: Option<Instant>,
    ids: HashSet<i64>,
}

/// The writers of a batch.
#[derive(Debug, Default)]
pub struct Told {
    /// The number of each mutation's writer.
    pub ids: Vec<Option<i64>>,
    /// Those whose rows the table may lack, each once.
    pub new: Vec<Arc<Author>>,
}

impl KnownAuthors {
    /// The writers of these mutations.
    pub fn tell<'a>(&self, mutations: impl Iterator<Item = &'a Mutation>) -> Told {
        let mut known = self.lock();
        if known.since.is_none_or(|since| since.elapsed() > PERIOD) {
            *known = Known { since: Some(Instant::now()), ids: HashSet::new() };
        }
        let mut told = Told::default();
        for mutation in mutations {
            let id = mutation.author.as_ref().and_then(|author| known.admit(author, &mut told.new));
            told.ids.push(id);
        }
        told
    }

    /// These rows are in the table: their batch has been committed.
    pub fn note(&self, told: &Told) {
        if !told.new.is_empty() {
            self.lock().ids.extend(told.new.iter().map(|author| author.id));
        }
    }

    /// Rows may have been lost with the commits that added them.
    #[cfg(feature = "postgres")]
    pub fn forget(&self) {
        *self.lock() = Known::default();
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// The number of a writer, who is added to the new ones if need be.
    fn admit(&self, author: &Arc<Author>, new: &mut Vec<Arc<Author>>) -> Option<i64> {
        let is_there = |author: &Author, new: &[Arc<Author>]| {
            self.ids.contains(&author.id) || new.iter().any(|new| new.id == author.id)
        };
        if is_there(author, new) {
            return Some(author.id);
        }
        let count = self.ids.len() + new.len();
        let admitted = match count {
            _ if count < MOST => author.clone(),
            _ => author.plain(),
        };
        let id = admitted.id;
        if !is_there(&admitted, new) {
            if count >= 2 * MOST {
                return None;
            }
            new.push(admitted);
        }
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Change, Expect, Key, ResourceId};

    fn mutation(manager: &str) -> Mutation {
        let key = Key::new(ResourceId(1), "", "a");
        let author = Author::new(Writer { manager: manager.to_owned(), ..Writer::default() });
        Mutation { author: Some(author), ..Mutation::new(key, Expect::Absent, Change::Delete) }
    }

    #[test]
    fn a_writer_is_told_until_it_is_known() {
        let known = KnownAuthors::default();
        let batch = [mutation("a"), mutation("b"), mutation("a")];
        let told = known.tell(batch.iter());
        assert_eq!(told.new.len(), 2);
        assert_eq!(told.ids[0], told.ids[2]);
        assert_eq!(known.tell(batch.iter()).new.len(), 2);
        known.note(&told);
        assert!(known.tell(batch.iter()).new.is_empty());
    }

    #[test]
    fn one_client_adds_a_bounded_number_of_rows() {
        let known = KnownAuthors::default();
        for index in 0..MOST + 2 {
            let told = known.tell([mutation(&index.to_string())].iter());
            known.note(&told);
        }
        assert_eq!(known.lock().ids.len(), MOST + 1);
    }

    #[test]
    fn texts_are_what_databases_can_store() {
        let author =
            Author::new(Writer { username: format!("a\0{}", "ä".repeat(999)), ..Writer::default() });
        let username = &author.writer().username;
        assert!(username.len() <= LONGEST && username.starts_with("aä") && username.ends_with('ä'));
        assert_ne!(Author::new(Writer::default()).id(), author.id());
    }
}
