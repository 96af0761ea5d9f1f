//! The protobuf encoding of an object, made when the first client asks for it.

use super::kept::keep;
use super::{Object, Undecodable};
use crate::codec::protobuf::{self, Error};
use crate::schema::builtin;
use crate::schema::names::Gvk;
use crate::tree::Map;

/// A stored object that has no protobuf encoding, since it does not conform to its Go type.
#[derive(Debug, thiserror::Error)]
pub enum Unencodable {
    #[error(transparent)]
    Value(#[from] Undecodable),
    #[error("\"{name}\" (namespace \"{namespace}\") has no protobuf form: {reason}")]
    Types { namespace: String, name: String, reason: Error },
}

impl Object {
    /// The message, without an envelope, in the version in which the object is stored. Made once.
    pub fn protobuf(&self) -> Result<&[u8], Unencodable> {
        if let Some(made) = self.protobuf.get() {
            return Ok(made);
        }
        let map = self.to_map()?;
        let made = encode(&map).map_err(|reason| Unencodable::Types {
            namespace: self.namespace().to_owned(),
            name: self.name().to_owned(),
            reason,
        })?;
        Ok(self.protobuf.get_or_init(|| keep(&[&made])))
    }
}

fn encode(map: &Map) -> Result<Vec<u8>, Error> {
    let gvk = Gvk::of(map)?;
    let kind = builtin::kind(&gvk).ok_or(Error::UnknownKind(gvk))?;
    protobuf::encode(&kind, map)
}
