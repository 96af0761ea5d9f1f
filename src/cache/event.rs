//! One change, with everything that watchers share of it.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::account::Account;
use crate::codec::object::Object;
use crate::revision::Revision;

/// What happened to one object at one revision. At least one of `current` and `previous` is there.
#[derive(Debug)]
pub struct Event {
    pub revision: Revision,
    /// The object after the change; `None` if it was deleted.
    pub current: Option<Arc<Object>>,
    /// The object before the change; `None` if it was created.
    pub previous: Option<Arc<Object>>,
    departed: OnceLock<Arc<Object>>,
    /// By encoding, then by type.
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

/// The encodings in which frames are shared.
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

    /// The object as an event of this type carries it: a DELETED one is the previous content under this revision.
    pub fn object(&self, kind: EventType) -> Option<&Arc<Object>> {
        match kind {
            EventType::Added | EventType::Modified => self.current.as_ref(),
            EventType::Deleted => {
                let previous = self.previous.as_ref()?;
                Some(self.departed.get_or_init(|| Arc::new(previous.at_revision(self.revision))))
            }
        }
    }

    /// The frame of this event, made once for all watchers: `make` must make the same of the same object.
    /// `None` if there is no such object.
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

    /// Bytes of objects this event keeps alive beyond the current state. What is made of them later is told to the
    /// account that the event is [opened](Event::open_account) with.
    fn size(&self) -> usize {
        let object = |object: &Option<Arc<Object>>| {
            object.as_ref().map_or(0, |object| object.size() + object.made_size())
        };
        size_of::<Self>() + object(&self.previous) + object(&self.current)
    }

    /// Adds what the event holds, and from now on what it makes, to the total.
    pub fn open_account(&self, total: &Arc<AtomicUsize>) {
        self.account.open(total, self.size());
    }

    /// Takes all of that from the total again.
    pub fn close_account(&self) {
        self.account.close();
    }
}
