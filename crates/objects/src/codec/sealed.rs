//! Stored values that are encrypted: how they are recognized, and what stands for one that could not be decrypted.

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::protowire::{BYTES, Reader};

/// The tag of the field `keyID` in the message of a key management service's value.
pub const KEY_ID_TAG: u64 = 2 << 3 | BYTES as u64;
/// The first bytes of every encrypted value. Upstream reserves them.
pub const ENCRYPTED: &[u8] = b"k8s:enc:";
/// The first bytes of a [refused] value. No kind of provider has an empty name, so no stored value begins so.
const REFUSED: &[u8] = b"k8s:enc::";
/// The number of bytes of the reason's length, which stands between [`REFUSED`] and the reason.
const LENGTH: usize = size_of::<u32>();

pub fn is_encrypted(value: &[u8]) -> bool {
    value.starts_with(ENCRYPTED)
}

/// The first bytes of an encrypted value, which name the provider and the key: `k8s:enc:aescbc:v1:NAME:`. That of a key
/// management service ends with the id of its key, which rowplane writes first (`encryption/kms`).
pub fn prefix(value: &[u8]) -> Option<&[u8]> {
    let rest = value.strip_prefix(ENCRYPTED)?;
    let mut colons = memchr::memchr_iter(b':', rest).map(|at| ENCRYPTED.len() + at + 1);
    let (_version, name) = (colons.nth(1)?, colons.next()?);
    let key_id = rest.starts_with(b"kms:v2:").then(|| key_id(&value[name..])).flatten();
    Some(&value[..name + key_id.map_or(0, <[u8]>::len)])
}

/// The field at the start of a message that holds the id of a key, with its tag.
fn key_id(message: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(message);
    reader.tag().ok()?.filter(|tag| tag.raw == KEY_ID_TAG)?;
    reader.bytes().ok()?;
    message.get(..message.len() - reader.remaining())
}

/// The name of the key of a [prefix], for people: `aescbc:NAME`, `kms:NAME:` and the start of the hash of the key's id.
pub fn key_name(prefix: &[u8]) -> String {
    let rest = prefix.strip_prefix(ENCRYPTED).unwrap_or(prefix);
    let mut parts = rest.splitn(4, |byte| *byte == b':').map(String::from_utf8_lossy);
    let mut part = || parts.next().unwrap_or_default();
    let (kind, _version, name) = (part(), part(), part());
    let id = rest.splitn(4, |byte| *byte == b':').nth(3).and_then(|message| {
        let mut reader = Reader::new(message);
        reader.tag().ok()??;
        reader.bytes().ok()
    });
    match id {
        Some(id) => {
            let hash: String = Sha256::digest(id).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
            format!("{kind}:{name}:{hash}")
        }
        None => format!("{kind}:{name}"),
    }
}

/// Stands for a stored value that could not be decrypted. No object is made of it.
pub fn refused(why: &str) -> Bytes {
    let length = u32::try_from(why.len()).unwrap_or_default();
    [REFUSED, &length.to_be_bytes(), why.as_bytes()].concat().into()
}

/// Why a value is no object, if encryption is the reason.
pub fn why_refused(value: &[u8]) -> Option<&str> {
    if !is_encrypted(value) {
        return None;
    }
    let why = value.strip_prefix(REFUSED).and_then(|rest| {
        let (length, rest) = rest.split_at_checked(LENGTH)?;
        let length = u32::from_be_bytes(length.try_into().ok()?);
        std::str::from_utf8(rest.get(..length as usize)?).ok()
    });
    // Nothing was configured that could have decrypted the value.
    why.or(Some("identity transformer tried to read encrypted data"))
}
