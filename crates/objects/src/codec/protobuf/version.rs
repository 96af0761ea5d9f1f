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
