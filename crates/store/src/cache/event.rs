//! One change of an object, with everything that its watchers share.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::account::Account;
use crate::codec::object::Object;
use crate::revision::Revision;

/// A change of one object at one revision. At least one of `current` and `previous` is there.
#[derive(Debug)]
pub struct Event {
    pub revision: Revision,
    /// The object after the change; `None` if it was deleted.
    pub current: Option<Arc<Object>>,
    /// The object before the change; `None` if it was created.
    pub previous: Option<Arc<Object>>,
    departed: OnceLock<Arc<Object>>,
    /// The encoded frames, indexed by encoding and then by event type.
    frames: [[OnceLock<Bytes>; 3]; 2],
    account: Account,
}

/// The type of a watch event that carries an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    Added,
    Modified,
    Deleted,
}

/// The encodings whose frames are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameEncoding {
    Json,
    Protobuf,
}

impl EventType {
    pub fn as_str(self) -> &'static str {
        match self {
            EventType::Added => "ADDED",
            EventType::Modified => "MODIFIED",
            EventType::Deleted => "DELETED",
        }
    }
}

impl Event {
    pub fn new(revision: Revision, current: Option<Arc<Object>>, previous: Option<Arc<Object>>) -> Self {
        Self {
            revision,
            current,
            previous,
            departed: OnceLock::new(),
            frames: Default::default(),
            account: Account::default(),
        }
    }

    /// The object that a watch event of this type carries. DELETED carries the previous content with this event's
    /// revision.
    pub fn object(&self, kind: EventType) -> Option<&Arc<Object>> {
        match kind {
            EventType::Added | EventType::Modified => self.current.as_ref(),
            EventType::Deleted => {
                let previous = self.previous.as_ref()?;
                Some(self.departed.get_or_init(|| Arc::new(previous.at_revision(self.revision))))
            }
        }
    }

    /// The encoded frame of this event, made once for all watchers; `make` must be deterministic. `None` if an event of
    /// this type has no object.
    pub fn frame<E>(
        &self,
        kind: EventType,
        encoding: FrameEncoding,
        make: impl FnOnce(&Object) -> Result<Bytes, E>,
    ) -> Option<Result<Bytes, E>> {
        let slot = &self.frames[encoding as usize][kind as usize];
        if let Some(frame) = slot.get() {
            return Some(Ok(frame.clone()));
        }
        let departs = kind == EventType::Deleted && self.departed.get().is_none();
        let object = self.object(kind)?;
        let before = object.made_size();
        let frame = match make(object) {
            Ok(frame) => frame,
            Err(error) => return Some(Err(error)),
        };
        let departed = if departs { object.size() } else { 0 };
        let made = departed + frame.len() + object.made_size() - before;
        if slot.set(frame).is_ok() {
            self.account.add(made);
        }
        slot.get().cloned().map(Ok)
    }

    /// Bytes of objects that this event keeps in memory. Encodings that are made of them later are added to the account
    /// with which the event is [opened](Event::open_account).
    fn size(&self) -> usize {
        let object = |object: &Option<Arc<Object>>| {
            object.as_ref().map_or(0, |object| object.size() + object.made_size())
        };
        size_of::<Self>() + object(&self.previous) + object(&self.current)
    }

    /// Adds the event's present size to the total, and from now on the size of everything that is made of it.
    pub fn open_account(&self, total: &Arc<AtomicUsize>) {
        self.account.open(total, self.size());
    }

    /// Subtracts everything that this event has added to the total.
    pub fn close_account(&self) {
        self.account.close();
    }
}
