//! What a quota refuses, in upstream's order and words (`resourcequota/controller.go`).

use super::amounts::{Amounts, exceeds, is_negative, is_zero};
use super::evaluator::Evaluator;
use super::pods;
use super::scopes::Requirement as Scope;
use crate::api::{ObjectMap, fields};
use crate::tree::Value;

/// Refuses a write that a quota of its namespace does not allow. Quotas are judged in the order of their names.
pub fn check(
    evaluator: Evaluator<'_>,
    quotas: &[(String, ObjectMap)],
    (old, new): (Option<&ObjectMap>, &ObjectMap),
    is_status: bool,
) -> Result<(), String> {
    let mut interested = Vec::new();
    for (name, quota) in quotas {
        let scopes = Scope::all(quota);
        let known: Vec<&str> = hard(quota).filter(|name| evaluator.knows(name)).collect();
        if known.is_empty() || !evaluator.matches(&scopes, new) {
            continue;
        }
        if matches!(evaluator, Evaluator::Pods) {
            let constrained = pods::constrain(known.iter().copied(), new);
            constrained.map_err(|why| format!("failed quota: {name}: {why}"))?;
        }
        if known.iter().any(|resource| fields::at(quota, &["status", "used", resource]).is_none()) {
            return Err(format!("status unknown for quota: {name}, resources: {}", known_sorted(known)));
        }
        interested.push((name, quota, scopes));
    }
    let usage = evaluator.usage(new);
    let negative: Vec<&str> =
        usage.iter().filter(|(_, amount)| is_negative(amount)).map(|(name, _)| name).collect();
    if !negative.is_empty() {
        return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")));
    }
    for (name, quota, scopes) in interested {
        let mut delta = usage.clone();
        if let Some(old) = old.filter(|old| evaluator.matches(&scopes, old)) {
            delta.subtract(&evaluator.usage(old));
            delta.retain(|_, amount| !is_negative(amount));
        }
        delta.retain(|_, amount| !is_zero(amount));
        if !is_status {
            exceeded(name, quota, &delta)?;
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
        Some(old) if matches!(evaluator, Evaluator::Pods) && subresource.is_empty() => {
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
