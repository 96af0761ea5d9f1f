//! The protobuf message of an object: left by the write that made it, or made when the first client asks for it, and
//! dropped when no list has asked for a while.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

use super::{Object, Undecodable};
use crate::codec::protobuf::{self, Error};
use crate::schema::builtin;
use crate::schema::names::Gvk;
use crate::tree::Map;

/// A message without an envelope, in the version in which its object is stored. Its bytes come from the program's own
/// allocator, unlike the object's: messages that were made one after the other are dropped together, and then whole
/// pages go back to the system.
pub type Message = Arc<Vec<u8>>;

/// The place of an object's message.
#[derive(Default)]
pub(super) struct Slot(ArcSwapOption<Vec<u8>>);

impl Clone for Slot {
    fn clone(&self) -> Self {
        Self(ArcSwapOption::new(self.get()))
    }
}

impl Slot {
    pub fn holding(message: Option<Vec<u8>>) -> Self {
        Self(ArcSwapOption::new(message.map(|message| exact(&message))))
    }

    pub fn get(&self) -> Option<Message> {
        self.0.load_full()
    }

    /// The length of the message in bytes, 0 without one.
    pub fn len(&self) -> usize {
        self.0.load().as_ref().map_or(0, |message| message.len())
    }
}

/// A stored object that has no protobuf encoding, since it does not conform to its Go type.
#[derive(Debug, thiserror::Error)]
pub enum Unencodable {
    #[error(transparent)]
    Value(#[from] Undecodable),
    #[error("\"{name}\" (namespace \"{namespace}\") has no protobuf form: {reason}")]
    Types { namespace: String, name: String, reason: Error },
}

impl Object {
    /// The object's message, which readers share while it is held.
    pub fn protobuf(&self) -> Result<Message, Unencodable> {
        if let Some(made) = self.message.get() {
            return Ok(made);
        }
        let map = self.to_map()?;
        let made = encode(&map).map_err(|reason| Unencodable::Types {
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
            reason,
        })?;
        let made = exact(&made);
        self.message.0.store(Some(made.clone()));
        Ok(made)
    }

    /// Drops the message, if it is held; the next reader has it made again.
    pub fn drop_protobuf(&self) {
        self.message.0.store(None);
    }
}

/// A copy without spare capacity, which a buffer that has grown while it was written has: up to as much again.
fn exact(message: &[u8]) -> Message {
    Arc::new(message.to_vec())
}

fn encode(map: &Map) -> Result<Vec<u8>, Error> {
    let gvk = Gvk::of(map)?;
    let kind = builtin::kind(&gvk).ok_or(Error::UnknownKind(gvk))?;
    protobuf::encode(&kind, map)
}

#[cfg(test)]
mod tests {
    use crate::codec::object::Draft;
    use crate::revision::Revision;

    #[test]
    fn a_message_takes_no_more_than_its_length() {
        let data: String = (0..50).map(|n| format!("\"key-{n}\":\"{}\",", "x".repeat(40))).collect();
        let json = format!(
            "{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"a\",\"namespace\":\"b\"}},\"data\":{{{}}}}}",
            data.trim_end_matches(',')
        );
        let object = Draft::of_json("b", "a", json.into()).into_object(Revision(1));
        let message = object.protobuf().expect("a message");
        assert_eq!((message.len() > 2000, message.capacity()), (true, message.len()));
    }
}
