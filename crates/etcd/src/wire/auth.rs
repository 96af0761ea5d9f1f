//! Users, roles, and what they may do. All of it is in notes of the store, so every server judges alike.
//!
//! A change writes the note with the revision of it all, so that two changes at the same time do not pass each other.

mod permissions;
mod tokens;

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use prost::Message;
use tonic::Status;

use self::permissions::may;
use super::exchange::Caller;
use super::messages::{PermissionType, Role, User};
use crate::engine::{Etcd, Note, NoteWrite};

/// The user who may do everything, and the role that lets him.
pub const ROOT: &str = "root";

const PREFIX: &str = "auth/";
const STATE: &str = "auth/state";

/// Facts about all users.
#[derive(Clone, PartialEq, Message)]
struct Common {
    #[prost(bool, tag = "1")]
    enabled: bool,
    /// The number of changes.
    #[prost(uint64, tag = "2")]
    revision: u64,
    /// The key of tokens.
    #[prost(bytes = "bytes", tag = "3")]
    token_key: Bytes,
}

/// All users and roles at one time.
#[derive(Clone, Default)]
pub struct Users {
    common: Common,
    pub users: BTreeMap<String, User>,
    pub roles: BTreeMap<String, Role>,
    /// The notes that this was read from.
    notes: BTreeMap<Arc<str>, Note>,
}

/// A user who calls.
pub struct Who {
    pub name: String,
    users: Arc<Users>,
}

/// The users as they were read last.
#[derive(Default)]
pub struct Known(ArcSwapOption<Users>);

impl Known {
    /// The users, as far as this server knows.
    pub fn users(&self, etcd: &Etcd) -> Arc<Users> {
        let newest = etcd.known_notes(STATE).into_iter().next();
        if let Some(known) = self.0.load_full()
            && known.notes.get(STATE) == newest.as_ref().map(|(_, note)| note)
        {
            return known;
        }
        let users = Arc::new(match newest {
            None => Users::default(),
            Some(_) => Users::read(etcd.known_notes(PREFIX)),
        });
        self.0.store(Some(users.clone()));
        users
    }

    /// The user who calls; `None` where everybody may do everything.
    pub fn who(&self, etcd: &Etcd, caller: &Caller, now: u64) -> Result<Option<Who>, Status> {
        let users = self.users(etcd);
        if !users.common.enabled {
            return Ok(None);
        }
        let name = match (&caller.token, caller.common_name()) {
            (Some(token), _) => tokens::user(token, &users.common.token_key, users.common.revision, now)?,
            (None, Some(name)) => name,
            (None, None) => return Err(Status::invalid_argument("etcdserver: user name is empty")),
        };
        Ok(Some(Who { name, users }))
    }

    /// Changes users or roles. `change` may be called again, with what others have made of them.
    pub async fn change(
        &self,
        etcd: &Etcd,
        mut change: impl FnMut(&mut Users) -> Result<(), Status>,
    ) -> Result<(), Status> {
        loop {
            let before = Users::read(etcd.notes(PREFIX).await?);
            let mut after = before.clone();
            change(&mut after)?;
            let writes = before.writes(&after);
            if writes.is_empty() || etcd.write_notes(writes).await? {
                return Ok(());
            }
        }
    }
}

impl Users {
    fn read(notes: Vec<(Arc<str>, Note)>) -> Self {
        let mut this = Self { notes: notes.into_iter().collect(), ..Self::default() };
        for (name, note) in &this.notes {
            // A note that cannot be read lets nobody in.
            if &**name == STATE {
                this.common = Common::decode(note.value.clone())
                    .unwrap_or(Common { enabled: true, ..Common::default() });
            } else if name.starts_with("auth/user/") {
                let user = User::decode(note.value.clone()).unwrap_or_default();
                this.users.insert(text(&user.name), user);
            } else if name.starts_with("auth/role/") {
                let role = Role::decode(note.value.clone()).unwrap_or_default();
                this.roles.insert(text(&role.name), role);
            }
        }
        this
    }

    /// The notes that make these users those.
    fn writes(&self, after: &Self) -> Vec<NoteWrite> {
        let mut wanted = BTreeMap::<Arc<str>, Bytes>::new();
        wanted.extend(
            after.users.iter().map(|(name, user)| (note_of("user", name), user.encode_to_vec().into())),
        );
        wanted.extend(
            after.roles.iter().map(|(name, role)| (note_of("role", name), role.encode_to_vec().into())),
        );
        let gone = self.notes.keys().filter(|name| &***name != STATE && !wanted.contains_key(*name));
        let mut writes: Vec<_> = gone.map(|name| self.write(name, None)).collect();
        let is_new = |(name, value): &(&Arc<str>, &Bytes)| {
            self.notes.get(*name).is_none_or(|note| note.value != **value)
        };
        let changed = wanted.iter().filter(is_new);
        writes.extend(changed.map(|(name, value)| self.write(name, Some(value.clone()))));
        if writes.is_empty() && self.common == after.common {
            return writes;
        }
        let mut common = after.common.clone();
        // To turn it on changes no user.
        if !writes.is_empty() || !common.enabled {
            common.revision += 1;
        }
        writes.push(self.write(&STATE.into(), Some(common.encode_to_vec().into())));
        writes
    }

    fn write(&self, name: &Arc<str>, value: Option<Bytes>) -> NoteWrite {
        NoteWrite { name: name.clone(), seen: self.notes.get(name).map(|note| note.sequence), value }
    }

    pub fn is_enabled(&self) -> bool {
        self.common.enabled
    }

    /// The number of changes, which begins with 1.
    pub fn revision(&self) -> u64 {
        self.common.revision + 1
    }

    /// Turns it on or off. The key of tokens is used where there is none yet.
    pub fn enable(&mut self, enabled: bool, new_key: &[u8]) {
        self.common.enabled = enabled;
        if self.common.token_key.is_empty() {
            self.common.token_key = Bytes::copy_from_slice(new_key);
        }
    }

    /// A token of a user.
    pub fn token(&self, name: &str, now: u64) -> String {
        tokens::of_user(name, &self.common.token_key, self.common.revision, now)
    }

    fn is_root(&self, name: &str) -> bool {
        self.users.get(name).is_some_and(|user| user.roles.iter().any(|role| role == ROOT))
    }
}

impl Who {
    pub fn is_root(&self) -> bool {
        self.users.is_root(&self.name)
    }

    /// Refuses users without the role of root.
    pub fn require_root(&self) -> Result<(), Status> {
        match self.users.users.get(&self.name) {
            None => Err(Status::failed_precondition("etcdserver: user name not found")),
            Some(_) if self.is_root() => Ok(()),
            Some(_) => Err(denied()),
        }
    }

    pub fn has_role(&self, role: &str) -> bool {
        self.users.users.get(&self.name).is_some_and(|user| user.roles.iter().any(|held| held == role))
    }

    /// Refuses what the user's roles do not permit for all keys from `key` to before `range_end`.
    pub fn require(&self, wanted: PermissionType, key: &[u8], range_end: &[u8]) -> Result<(), Status> {
        let Some(user) = self.users.users.get(&self.name) else { return Err(denied()) };
        let roles = user.roles.iter().filter_map(|role| self.users.roles.get(role));
        let permissions: Vec<_> = roles.flat_map(|role| &role.key_permission).collect();
        if self.is_root() || may(&permissions, wanted, key, range_end) { Ok(()) } else { Err(denied()) }
    }
}

fn denied() -> Status {
    Status::permission_denied("etcdserver: permission denied")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The note of a user or a role. Names may have any characters.
fn note_of(kind: &str, name: &str) -> Arc<str> {
    use std::fmt::Write as _;
    let mut note = format!("{PREFIX}{kind}/");
    for byte in name.bytes() {
        // Writing to a string does not fail.
        let _ = write!(note, "{byte:02x}");
    }
    note.into()
}
