//! The order of groups and versions in discovery, on which clients base their preferences.

use std::cmp::{Ordering, Reverse};

use super::Origin;

/// Upstream's APIService priorities (kube-apiserver, `pkg/controlplane/apiserver/aggregator.go`). The
/// aggregator's own group has none there: it always comes first.
const BUILT_IN: &[(&str, u32)] = &[
    ("apiregistration.k8s.io", u32::MAX),
    ("", 18_000),
    ("apps", 17_800),
    ("events.k8s.io", 17_750),
    ("authentication.k8s.io", 17_700),
    ("authorization.k8s.io", 17_600),
    ("autoscaling", 17_500),
    ("batch", 17_400),
    ("certificates.k8s.io", 17_300),
    ("networking.k8s.io", 17_200),
    ("policy", 17_100),
    ("rbac.authorization.k8s.io", 17_000),
    ("storage.k8s.io", 16_800),
    ("admissionregistration.k8s.io", 16_700),
    ("apiextensions.k8s.io", 16_700),
    ("scheduling.k8s.io", 16_600),
    ("coordination.k8s.io", 16_500),
    ("node.k8s.io", 16_300),
    ("discovery.k8s.io", 16_200),
    ("flowcontrol.apiserver.k8s.io", 16_100),
    ("internal.apiserver.k8s.io", 16_000),
    ("resource.k8s.io", 15_900),
    ("storagemigration.k8s.io", 15_800),
];

const CUSTOM: u32 = 1_000;

pub(super) fn group_priority(group: &str) -> u32 {
    built_in_priority(group).unwrap_or(CUSTOM)
}

pub(super) fn origin(group: &str) -> Origin {
    if built_in_priority(group).is_some() { Origin::BuiltIn } else { Origin::Custom }
}

fn built_in_priority(group: &str) -> Option<u32> {
    BUILT_IN.iter().find(|(name, _)| *name == group).map(|&(_, priority)| priority)
}

/// Kube-aware: GA before beta before alpha, higher numbers first, other names last and ascending. For the
/// built-in versions this agrees with upstream's version priorities.
pub(super) fn compare_versions(a: &str, b: &str) -> Ordering {
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
