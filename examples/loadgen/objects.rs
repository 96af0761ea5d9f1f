//! ConfigMaps of a given size.

use bytes::Bytes;

/// The bytes that an object has beside its payload, once the server has added uid, time and version.
const ENVELOPE: usize = 300;

/// Makes objects that differ only in name and mark.
pub struct Maker {
    payload: String,
}

impl Maker {
    pub fn new(bytes: usize) -> Self {
        Self { payload: text(bytes.saturating_sub(ENVELOPE)) }
    }

    /// `mark` is the value of `data.mark`.
    pub fn object(&self, name: &str, labels: &str, mark: &str) -> Bytes {
        self.versioned(name, labels, mark, None)
    }

    pub fn versioned(&self, name: &str, labels: &str, mark: &str, version: Option<&str>) -> Bytes {
        let payload = &self.payload;
        let version = version.map(|v| format!(r#","resourceVersion":"{v}""#)).unwrap_or_default();
        Bytes::from(format!(
            r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}","labels":{{{labels}}}{version}}},"data":{{"mark":"{mark}","payload":"{payload}"}}}}"#
        ))
    }
}

/// A merge patch that sets `data.mark`.
pub fn mark_patch(mark: &str) -> Bytes {
    Bytes::from(format!(r#"{{"data":{{"mark":"{mark}"}}}}"#))
}

/// Letters and digits that compress about as badly as base64; the same in every run.
fn text(length: usize) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(LETTERS[(state >> 58) as usize])
    };
    (0..length).map(|_| letter()).collect()
}
