//! The order of versions in discovery, from which clients choose their preferred version.

use std::cmp::{Ordering, Reverse};

/// Kubernetes' version order: GA before beta before alpha, higher numbers first; other names come last, ascending. For
/// the built-in versions this agrees with upstream's version priorities.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (stability(a), stability(b)) {
        (Some(a), Some(b)) => b.cmp(&a),
        (a, b) => Reverse(a.is_some()).cmp(&Reverse(b.is_some())),
    }
    .then_with(|| a.cmp(b))
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Alpha,
    Beta,
    Ga,
}

fn stability(version: &str) -> Option<(Stage, u64, u64)> {
    let rest = version.strip_prefix('v')?;
    if let Some((major, minor)) = rest.split_once("alpha") {
        Some((Stage::Alpha, number(major)?, number(minor)?))
    } else if let Some((major, minor)) = rest.split_once("beta") {
        Some((Stage::Beta, number(major)?, number(minor)?))
    } else {
        Some((Stage::Ga, number(rest)?, 0))
    }
}

fn number(digits: &str) -> Option<u64> {
    let canonical = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    if canonical { digits.parse().ok() } else { None }
}
