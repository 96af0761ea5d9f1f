use rand::SeedableRng as _;

use super::*;
use crate::kinds::behavior::names::NameFormat;

#[test]
fn generated_names() {
    let mut rng = rand::rngs::SmallRng::seed_from_u64(1);
    for (prefix, length) in [("a-", 7), (&*"x".repeat(80), 63), (&*"é".repeat(40), 63), ("", 5)] {
        let name = generate_name(prefix, &mut rng);
        assert_eq!(name.len(), length);
        assert!(name.bytes().rev().take(5).all(|b| ALPHABET.contains(&b)));
    }
    assert!(NameFormat::Dns1123Subdomain.check_prefix("a-").is_empty());
    assert!(!NameFormat::Dns1123Subdomain.check_prefix("-").is_empty());
    assert!(NameFormat::PathSegment.check_prefix("..").is_empty());
}
