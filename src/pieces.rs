//! Bytes copied in small pieces.
//!
//! On processors that ask for it (`fsrm`) glibc copies by `rep movsb` from 2113 bytes on, until the fix of its bug 30994.
//! AMD's Zen 3 and 4 ask for it, and where the target stands at an odd address it takes them up to twenty times as long as
//! vector instructions. Lists are copied twice on their way out, to anywhere: with HTTP/2 it was half of what they cost.

/// Too little for that.
pub const PIECE: usize = 2048;

/// As `extend_from_slice`.
pub fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len());
    for piece in bytes.chunks(PIECE) {
        out.extend_from_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_between_pieces() {
        let bytes: Vec<u8> = (0..2 * PIECE + 5).map(|at| (at % 251) as u8).collect();
        for length in [0, 1, PIECE - 1, PIECE, PIECE + 1, bytes.len()] {
            let mut out = b"before".to_vec();
            append(&mut out, &bytes[..length]);
            assert_eq!(out, [b"before", &bytes[..length]].concat());
        }
    }
}
