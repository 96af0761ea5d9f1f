//! Sets of bytes, and texts of nothing else.

/// A set of bytes, asked in one step.
pub struct ByteSet([bool; 256]);

impl ByteSet {
    /// ASCII letters, digits, and `others`.
    pub const fn alphanumeric_or(others: &[u8]) -> Self {
        let mut set = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            set[byte] = (byte as u8).is_ascii_alphanumeric();
            byte += 1;
        }
        let mut at = 0;
        while at < others.len() {
            set[others[at] as usize] = true;
            at += 1;
        }
        Self(set)
    }

    pub fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte)]
    }

    /// Whether a text consists of these bytes. Heads are nearly always right, so all of it is looked at, without a branch a byte.
    pub fn has_all(&self, text: &[u8]) -> bool {
        text.iter().fold(true, |all, byte| all & self.has(*byte))
    }
}

/// ByteSet of methods and of names of headers (RFC 9110, `tchar`).
pub static TOKEN: ByteSet = ByteSet::alphanumeric_or(b"!#$%&'*+-.^_`|~");
/// ByteSet of names of headers that Go takes until it knows everything else.
pub static NAME: ByteSet = ByteSet::alphanumeric_or(b" !#$%&'*+-.^_`|~");
/// ByteSet of a target that may stand in a [`Uri`](axum::http::Uri): those that are seen, without `"#<>\^`{|}`.
pub static PLAIN: ByteSet = ByteSet::alphanumeric_or(b"!$%&'()*+,-./:;=?@[]_~");
/// ByteSet of a `Host` header (Go's `httpguts.ValidHostHeader`).
pub static HOST: ByteSet = ByteSet::alphanumeric_or(b"!$%&()*+,-.:;=[']_~");

/// Whether the value of a header has no control character but tabs.
pub fn is_value(text: &[u8]) -> bool {
    !text.iter().fold(false, |any, byte| any | (*byte < b' ') & (*byte != b'\t') | (*byte == 0x7f))
}
