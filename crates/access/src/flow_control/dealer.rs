//! Shuffle sharding: each flow gets a hand of queues, so that two flows rarely share all of theirs.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

/// The largest hand for whose shuffle the bits of a hash suffice: the bound of upstream's validation.
const LARGEST_HAND: usize = 15;

/// The queues that a flow may use.
pub struct Hand {
    cards: [usize; LARGEST_HAND],
    size: usize,
}

impl Hand {
    /// Deals a hand from a deck of `queues`. Each different hash is a different shuffle.
    pub fn dealt(queues: usize, size: usize, mut hash: u64) -> Self {
        let queues = queues.max(1);
        let size = size.clamp(1, queues.min(LARGEST_HAND));
        let mut cards = [0; LARGEST_HAND];
        for (dealt, card) in cards[..size].iter_mut().enumerate() {
            let left = (queues - dealt) as u64;
            *card = (hash % left) as usize;
            hash /= left;
        }
        // Each card counts only those that are left when it is dealt.
        let remainders = cards;
        for (dealt, card) in cards[..size].iter_mut().enumerate() {
            for earlier in remainders[..dealt].iter().rev() {
                *card += usize::from(*card >= *earlier);
            }
        }
        Self { cards, size }
    }

    pub fn cards(&self) -> &[usize] {
        &self.cards[..self.size]
    }
}

/// A hash with a random key. Clients do not know the key, so they cannot pick a flow whose hand of queues is the same as
/// another flow's. Upstream's SHA-256 has no key, and takes longer.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The hash of a flow: of its FlowSchema's name, and of its distinguisher, a user or a namespace.
pub fn flow_hash(schema: &str, distinguisher: &str) -> u64 {
    HASHER.hash_one((schema, distinguisher))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hand_has_no_card_twice() {
        for hash in (0..2_000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            let hand = Hand::dealt(16, 8, hash);
            let mut cards = hand.cards().to_vec();
            cards.sort_unstable();
            cards.dedup();
            assert!(cards.len() == 8 && cards[7] < 16, "{cards:?}");
        }
    }

    #[test]
    fn hands_are_all_equally_frequent() {
        // 4 * 3 = 12 ordered hands of two cards.
        let mut counts = [[0; 4]; 4];
        for hash in 0..12_000 {
            let hand = Hand::dealt(4, 2, hash);
            counts[hand.cards()[0]][hand.cards()[1]] += 1;
        }
        for (first, row) in counts.iter().enumerate() {
            for (second, count) in row.iter().enumerate() {
                assert_eq!(*count, if first == second { 0 } else { 1000 });
            }
        }
    }
}
