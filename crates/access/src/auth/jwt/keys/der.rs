//! The little of DER that keys and certificates are wrapped in.

pub const RSA: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
pub const EC: &[u8] = &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
pub const P256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
pub const P384: &[u8] = &[6, 5, 0x2b, 0x81, 4, 0, 0x22];
pub const P521: &[u8] = &[6, 5, 0x2b, 0x81, 4, 0, 0x23];
pub const NULL: &[u8] = &[5, 0];

pub fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    tagged(0x30, &parts.concat())
}

pub fn octet_string(bytes: &[u8]) -> Vec<u8> {
    tagged(4, bytes)
}

pub fn bit_string(bytes: &[u8]) -> Vec<u8> {
    tagged(3, &[&[0], bytes].concat())
}

/// A number that is not negative, the highest byte first.
pub fn integer(bytes: &[u8]) -> Vec<u8> {
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    match &bytes[zeros..] {
        [] => tagged(2, &[0]),
        digits @ [first, ..] if *first >= 0x80 => tagged(2, &[&[0], digits].concat()),
        digits => tagged(2, digits),
    }
}

/// The content of the value that comes first, if it has this tag, and what follows it.
pub fn take(tag: u8, bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    if head[0] != tag {
        return None;
    }
    let (length, rest) = match head[1] {
        short @ 0..0x80 => (usize::from(short), rest),
        long => {
            let (digits, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            let add = |sum: usize, digit: &u8| sum.checked_mul(256)?.checked_add(usize::from(*digit));
            (digits.iter().try_fold(0, add)?, rest)
        }
    };
    rest.split_at_checked(length)
}

pub fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    if let Ok(short @ 0..0x80) = u8::try_from(length) {
        out.push(short);
    } else {
        let bytes = length.to_be_bytes();
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        out.push(0x80 | (bytes.len() - zeros) as u8);
        out.extend_from_slice(&bytes[zeros..]);
    }
    out.extend_from_slice(content);
    out
}
