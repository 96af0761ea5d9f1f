//! Refusals of writes by quotas, in upstream's order and words (`resourcequota/controller.go`).

use std::cell::LazyCell;
use std::collections::BTreeSet;

use super::amounts::{Amounts, exceeds, is_negative};
use super::evaluator::Evaluator;
use super::limited::{LimitedResources, added, resource_of, uncovered};
use super::pods;
use super::refusal::Refusal;
use super::scopes::Requirement as Scope;
use crate::tree::Value;
use crate::{ObjectMap, fields};

/// A write that quotas are asked about.
#[derive(Clone, Copy)]
pub struct Checked<'a> {
    pub evaluator: Evaluator<'a>,
    pub old: Option<&'a ObjectMap>,
    pub new: &'a ObjectMap,
    /// A change of the status is counted, and not refused.
    pub is_status: bool,
    pub limited: &'a LimitedResources,
}

/// A quota that counts the object.
struct Interested<'a> {
    name: &'a str,
    quota: &'a ObjectMap,
    scopes: Vec<Scope<'a>>,
}

/// Refuses a write that a quota of its namespace does not allow, or that none covers where one has to. Quotas are judged in
/// the order of their names.
pub fn check(write: Checked<'_>, quotas: &[(String, ObjectMap)]) -> Result<(), Refusal> {
    let Checked { evaluator, old, new, is_status, limited } = write;
    if quotas.is_empty() && limited.is_empty() {
        return Ok(());
    }
    let (mut interested, mut counted, mut covered) = (Vec::new(), BTreeSet::new(), Vec::new());
    for (name, quota) in quotas {
        let scopes = Scope::all(quota);
        if !limited.is_empty() {
            let matching = |scope: &Scope<'_>| evaluator.matches(std::slice::from_ref(scope), new);
            covered.extend(scopes.iter().filter(|scope| matching(scope)).cloned());
        }
        let known: Vec<&str> = hard(quota).filter(|name| evaluator.knows(name)).collect();
        if known.is_empty() || !evaluator.matches(&scopes, new) {
            continue;
        }
        if matches!(evaluator, Evaluator::Pods(_)) {
            let constrained = pods::constrain(known.iter().copied(), new);
            constrained.map_err(|why| Refusal::Forbidden(format!("failed quota: {name}: {why}")))?;
        }
        if known.iter().any(|resource| fields::at(quota, &["status", "used", resource]).is_none()) {
            let names = known_sorted(known);
            let why = format!("status unknown for quota: {name}, resources: {names}");
            return Err(Refusal::Forbidden(why));
        }
        counted.extend(known);
        interested.push(Interested { name, quota, scopes });
    }
    let usage = evaluator.usage(new);
    let negative: Vec<&str> =
        usage.iter().filter(|(_, amount)| is_negative(amount)).map(|(name, _)| name).collect();
    if !negative.is_empty() {
        let why = format!("quota usage is negative for resource(s): {}", negative.join(","));
        return Err(Refusal::Forbidden(why));
    }
    let before = LazyCell::new(|| old.map(|old| evaluator.usage(old)));
    let delta = |scopes: &[Scope<'_>]| {
        let counted_before = old.is_some_and(|old| evaluator.matches(scopes, old));
        added(&usage, if counted_before { before.as_ref() } else { None })
    };
    let deltas: Vec<_> = interested.iter().filter_map(|quota| Some((quota, delta(&quota.scopes)?))).collect();
    let adds = || if interested.is_empty() { delta(&[]).is_some() } else { !deltas.is_empty() };
    if !limited.is_empty() && adds() {
        let names = limited.names(&resource_of(evaluator), &usage);
        uncovered(&names, &counted, (&limited.scopes(evaluator, new), &covered))?;
    }
    for (Interested { name, quota, .. }, delta) in deltas {
        if !is_status {
            exceeded(name, quota, &delta).map_err(Refusal::Forbidden)?;
        }
    }
    Ok(())
}

/// Whether quotas limit the write. An update of a Pod matters only if the Pod gets a deadline, loses it, or is resized.
pub fn is_handled(
    evaluator: Evaluator<'_>,
    subresource: &str,
    old: Option<&ObjectMap>,
    new: &ObjectMap,
) -> bool {
    match old {
        Some(old) if matches!(evaluator, Evaluator::Pods(_)) && subresource.is_empty() => {
            pods::ends_by_itself(old) != pods::ends_by_itself(new)
        }
        _ => true,
    }
}

fn hard(quota: &ObjectMap) -> impl Iterator<Item = &str> {
    let hard = fields::at(quota, &["status", "hard"]).and_then(Value::as_object);
    hard.into_iter().flatten().map(|(name, _)| name.as_str())
}

fn known_sorted(mut names: Vec<&str>) -> String {
    names.sort_unstable();
    names.join(",")
}

fn exceeded(name: &str, quota: &ObjectMap, delta: &Amounts) -> Result<(), String> {
    let of_status = |list: &str| Amounts::of(fields::at(quota, &["status", list]).and_then(Value::as_object));
    let (used, hard) = (of_status("used"), of_status("hard"));
    let mut next = used.clone();
    next.add(delta);
    let over = |resource: &str| match (next.get(resource), hard.get(resource)) {
        (Some(next), Some(hard)) => delta.get(resource).is_some() && exceeds(next, hard),
        _ => false,
    };
    let [requested, used, limited] = [delta, &used, &hard].map(|amounts| {
        let shown = amounts.iter().filter(|(resource, _)| over(resource));
        shown.map(|(resource, amount)| format!("{resource}={amount}")).collect::<Vec<_>>().join(",")
    });
    if requested.is_empty() {
        return Ok(());
    }
    Err(format!("exceeded quota: {name}, requested: {requested}, used: {used}, limited: {limited}"))
}
