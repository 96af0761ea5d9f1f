//! Certificate policies (RFC 5280, 6.1, with the changes of RFC 9618), for callers that take any policy.

use std::collections::{BTreeMap, BTreeSet};

use crate::certificate::Certificate;

/// anyPolicy.
const ANY: &[u8] = &[0x55, 0x1d, 0x20, 0];

/// The policies that hold at one certificate, each with those that the next one may name for it. Only the newest level
/// of RFC 9618's graph is kept: with any policy taken, all that is asked in the end is whether that level is empty.
type Level = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

/// Whether a chain, the leaf first, has a policy where an authority requires one.
pub(crate) fn are_valid(chain: &[&Certificate]) -> bool {
    let Some(count) = chain.len().checked_sub(1).filter(|count| *count > 0) else { return true };
    let unlimited = count as u64 + 1;
    let (mut explicit, mut mapping, mut any) = (unlimited, unlimited, unlimited);
    let mut level = Some(Level::from([(ANY.to_vec(), vec![ANY.to_vec()])]));
    for (at, certificate) in chain[..count].iter().enumerate().rev() {
        let policies = &certificate.extensions.policies;
        let is_self_issued = certificate.raw_issuer() == certificate.raw_subject();
        level = level.filter(|_| !policies.own.is_empty());
        if explicit == 0 && level.is_none() {
            return false;
        }
        let is_any_taken = any > 0 || (at > 0 && is_self_issued);
        level = level.map(|above| next(&above, &policies.own, is_any_taken));
        if at == 0 {
            break;
        }
        if let Some(level) = &mut level
            && !map(level, &policies.mappings, mapping > 0)
        {
            return false;
        }
        if !is_self_issued {
            (explicit, mapping, any) =
                (explicit.saturating_sub(1), mapping.saturating_sub(1), any.saturating_sub(1));
        }
        explicit = explicit.min(policies.require_explicit.unwrap_or(explicit));
        mapping = mapping.min(policies.inhibit_mapping.unwrap_or(mapping));
        any = any.min(policies.inhibit_any.unwrap_or(any));
    }
    let is_required = explicit <= 1 || chain[0].extensions.policies.require_explicit == Some(0);
    !is_required || level.is_some_and(|level| !level.is_empty())
}

/// The policies of a certificate that the level above it expects.
fn next(above: &Level, own: &[Vec<u8>], is_any_taken: bool) -> Level {
    let expected: BTreeSet<&Vec<u8>> = above.values().flatten().collect();
    let named = own.iter().filter(|policy| *policy != ANY);
    let named = named.filter(|policy| expected.contains(policy) || above.contains_key(ANY));
    let mut level: Level = named.map(|policy| (policy.clone(), vec![policy.clone()])).collect();
    if is_any_taken && own.iter().any(|policy| policy == ANY) {
        for policy in above.values().flatten() {
            level.entry(policy.clone()).or_insert_with(|| vec![policy.clone()]);
        }
    }
    level
}

/// Applies the mappings of an authority. `false` if one of them is forbidden.
fn map(level: &mut Level, mappings: &[(Vec<u8>, Vec<u8>)], may_map: bool) -> bool {
    let mut grouped: BTreeMap<&Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for (issuer, subject) in mappings {
        if !may_map {
            level.remove(issuer);
            continue;
        }
        if issuer == ANY || subject == ANY {
            return false;
        }
        grouped.entry(issuer).or_default().push(subject.clone());
    }
    for (issuer, subjects) in grouped {
        if level.contains_key(issuer) || level.contains_key(ANY) {
            level.insert(issuer.clone(), subjects);
        }
    }
    true
}
