//! Packed messages: lz4's block format, behind the length of the unpacked message in four bytes (little-endian).

use lz4_flex::block;

/// How an envelope marks a packed message.
pub const ENCODING: &str = "lz4";

/// Shorter messages are not packed, since they compress badly.
const SHORTEST: usize = 1024;
/// Longer messages are not packed, so that no larger claim about the unpacked length is believed.
const LONGEST: usize = 16 << 20;
/// The largest factor of compression of lz4. It bounds the memory that is reserved by the packed length.
pub const MOST_OF_A_BYTE: usize = 255;

/// Why bytes are not a packed message.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("lz4: {0}")]
    Block(#[from] block::DecompressError),
    #[error("lz4: {bytes} bytes cannot hold {claimed}")]
    Claim { bytes: usize, claimed: usize },
    #[error("lz4: {found} bytes instead of {claimed}")]
    Length { found: usize, claimed: usize },
}

/// Packs the message; `None` if that makes it shorter by less than an eighth, since reading it has a cost, too.
pub fn pack(message: &[u8]) -> Option<Vec<u8>> {
    if !(SHORTEST..=LONGEST).contains(&message.len()) {
        return None;
    }
    let packed = block::compress_prepend_size(message);
    (packed.len() <= message.len() - message.len() / 8).then_some(packed)
}

pub fn unpack(packed: &[u8]) -> Result<Vec<u8>, Error> {
    let (claimed, rest) = block::uncompressed_size(packed)?;
    if claimed > LONGEST.min(rest.len().saturating_mul(MOST_OF_A_BYTE)) {
        return Err(Error::Claim { bytes: rest.len(), claimed });
    }
    let message = block::decompress(rest, claimed)?;
    if message.len() != claimed {
        return Err(Error::Length { found: message.len(), claimed });
    }
    Ok(message)
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, RngExt, SeedableRng};

    use super::*;

    /// Bytes with some repetition.
    fn message(random: &mut SmallRng, length: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = Vec::with_capacity(length);
        while bytes.len() < length {
            let run = random.random_range(1..200).min(length - bytes.len());
            if bytes.len() > 8 && random.random_bool(0.6) {
                let from = random.random_range(0..bytes.len());
                (0..run).for_each(|n| bytes.push(bytes[from + n]));
            } else {
                let end = bytes.len();
                bytes.resize(end + run, 0);
                random.fill_bytes(&mut bytes[end..]);
            }
        }
        bytes
    }

    #[test]
    fn what_is_packed_is_shorter_and_comes_back() {
        let seed = 1;
        println!("seed {seed}");
        let mut random = SmallRng::seed_from_u64(seed);
        let mut lengths: Vec<usize> = (0..200).map(|_| random.random_range(SHORTEST..20_000)).collect();
        // Lengths for both kinds of lz4's tables, and the longest that is packed.
        lengths.extend([SHORTEST, 65_534, 65_535, 65_536, 300_000, LONGEST]);
        for length in lengths {
            let mut whole = message(&mut random, length.min(300_000));
            whole.resize(length, 7);
            if let Some(packed) = pack(&whole) {
                assert!(packed.len() <= length - length / 8, "{length}");
                assert!(unpack(&packed).expect("packed") == whole, "{length}");
            }
        }
        assert!(pack(&[7; SHORTEST]).is_some() && pack(&[7; LONGEST]).is_some());
    }

    #[test]
    fn what_would_not_pay_stays() {
        assert_eq!(pack(&[7; SHORTEST - 1]), None);
        assert_eq!(pack(&vec![7; LONGEST + 1]), None);
        let mut noise = vec![0; 4096];
        SmallRng::seed_from_u64(1).fill_bytes(&mut noise);
        assert_eq!(pack(&noise), None);
    }

    /// No memory is reserved for a false length: the largest would be 4 GiB.
    #[test]
    fn lengths_that_lie_are_errors() {
        let message = [7; 2048];
        let packed = pack(&message).expect("it repeats itself");
        let claiming = |length: usize| {
            let length = u32::try_from(length).expect("32 bits").to_le_bytes();
            unpack(&[&length, &packed[4..]].concat()).expect_err("a lie").to_string()
        };
        let rest = packed.len() - 4;
        for length in [u32::MAX as usize, LONGEST + 1, rest * MOST_OF_A_BYTE + 1] {
            assert_eq!(claiming(length), format!("lz4: {rest} bytes cannot hold {length}"));
        }
        assert_eq!(claiming(2049), "lz4: 2048 bytes instead of 2049");
        for length in [0, 1, 2047] {
            assert!(claiming(length).starts_with("lz4: "), "{length}");
        }
        for short in 0..packed.len() {
            assert!(unpack(&packed[..short]).is_err(), "{short}");
        }
    }

    /// Random bytes never cause a panic, and never yield more than the length that they claim.
    #[test]
    fn survives_noise() {
        let seed = 37;
        println!("seed {seed}");
        let mut random = SmallRng::seed_from_u64(seed);
        let mut opened = 0;
        for round in 0..4_000 {
            let length = random.random_range(SHORTEST..4096);
            let Some(mut bytes) = pack(&message(&mut random, length)) else { continue };
            for _ in 0..random.random_range(1..6) {
                let at = random.random_range(0..bytes.len());
                match random.random_range(0..4) {
                    0 => bytes[at] = random.random(),
                    1 => bytes.truncate(at.max(1)),
                    2 => bytes.insert(at, random.random()),
                    _ => bytes[at] = 255,
                }
            }
            if let Ok(message) = unpack(&bytes) {
                let claimed = u32::from_le_bytes(bytes[..4].try_into().expect("four"));
                assert_eq!(message.len(), claimed as usize, "round {round}");
                opened += 1;
            }
            let mut noise = vec![0; random.random_range(0..64)];
            random.fill_bytes(&mut noise);
            // A plausible length, so that the bytes behind it are read.
            noise.splice(0..0, [random.random(), random.random_range(0..4), 0, 0]);
            drop(unpack(&noise));
        }
        assert!(opened > 100, "{opened}");
    }
}
