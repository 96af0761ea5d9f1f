//! Inserts the resourceVersion into a message without decoding the rest.

use std::ops::Range;

use crate::protowire::write::{append_bytes, append_head, size_of_bytes};
use crate::protowire::{BYTES, Reader};
use crate::revision::Revision;

/// The field number of `metadata` in every kind, and of `resourceVersion` in `metadata`.
const METADATA: i32 = 1;
const RESOURCE_VERSION: i32 = 6;

/// The message with this resourceVersion. Its fields must be in the order of their numbers, as
/// [`encode`](super::encode()) writes them; otherwise `None`.
pub fn with_version(message: &[u8], revision: Revision) -> Option<Vec<u8>> {
    let outer = place(message, METADATA)?;
    let metadata = &message[outer.content.clone()];
    let inner = place(metadata, RESOURCE_VERSION)?;
    let version = revision.to_string();
    let length = metadata.len() - inner.field.len() + size_of_bytes(RESOURCE_VERSION, version.len());
    let size = message.len() - outer.field.len() + size_of_bytes(METADATA, length);
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(&message[..outer.field.start]);
    append_head(&mut out, METADATA, length);
    out.extend_from_slice(&metadata[..inner.field.start]);
    append_bytes(&mut out, RESOURCE_VERSION, version.as_bytes());
    out.extend_from_slice(&metadata[inner.field.end..]);
    out.extend_from_slice(&message[outer.field.end..]);
    debug_assert_eq!(out.len(), size);
    Some(out)
}

/// The range of a field, or the place where it would be.
struct FieldRange {
    /// The whole field with tag and length.
    field: Range<usize>,
    content: Range<usize>,
}

fn place(message: &[u8], number: i32) -> Option<FieldRange> {
    let mut reader = Reader::new(message);
    let at = |reader: &Reader<'_>| message.len() - reader.remaining();
    loop {
        let start = at(&reader);
        match reader.tag().ok()? {
            Some(tag) if tag.number() == number && tag.wire() == BYTES => {
                let length = reader.bytes().ok()?.len();
                let end = at(&reader);
                return Some(FieldRange { field: start..end, content: end - length..end });
            }
            Some(tag) if tag.number() == number => return None,
            Some(tag) if tag.number() < number => reader.skip(tag).ok()?,
            _ => return Some(FieldRange { field: start..start, content: start..start }),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::{Map, Value, json};

    use super::super::{decode, encode};
    use super::*;
    use crate::kinds::built_in;
    use crate::schema::builtin;
    use crate::schema::names::Gvk;
    use crate::schema::resource::Storage;

    fn members(value: Value) -> Map {
        value.as_object().expect("an object").clone()
    }

    /// Every stored kind has its metadata in the expected field.
    #[test]
    fn every_stored_kind_takes_a_version() {
        let mut seen = 0;
        for definition in built_in::definitions() {
            let Storage::Table { version, .. } = &definition.storage else { continue };
            let stored = version.with_kind(definition.kind_name().clone());
            let kind = definition.kind.sibling(&stored).expect("a kind");
            let object = members(json!({"metadata": {"name": "a", "uid": "u", "generation": 1}}));
            let plain = encode(&kind, &object).expect("encodes");
            for revision in [1, 12345, u64::MAX] {
                let spliced = with_version(&plain, Revision(revision)).expect("a message");
                let mut want = object.clone();
                want["metadata"]["resourceVersion"] = revision.to_string().into();
                assert_eq!(spliced, encode(&kind, &want).expect("encodes"));
                // Replaces the version that was just inserted.
                let moved = with_version(&spliced, Revision(7)).expect("a message");
                let moved = decode(&kind, &moved).expect("decodes");
                assert_eq!(moved["metadata"]["resourceVersion"], "7");
            }
            seen += 1;
        }
        assert!(seen > 40, "{seen}");
    }

    #[test]
    fn what_is_missing_is_made() {
        let pod = builtin::kind(&Gvk::fixed("v1", "Pod")).expect("a kind");
        for raw in [&b""[..], b"\x0a\x00", b"\x0a\x03\x0a\x01a", b"\x0a\x02\x38\x01", b"\x12\x00"] {
            let spliced = with_version(raw, Revision(5)).expect("a message");
            let object = decode(&pod, &spliced).expect("decodes");
            assert_eq!(object["metadata"]["resourceVersion"], "5", "{raw:?}");
        }
        assert_eq!(with_version(b"\x08\x01", Revision(5)), None);
        assert_eq!(with_version(b"\x0a\x05", Revision(5)), None);
    }
}
