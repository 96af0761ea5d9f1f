//! Nobody grants what he does not have: a write of a role or binding needs the rights that it would grant, unless the
//! user may `escalate` or `bind` (`pkg/registry/rbac/*/policybased`).

use std::collections::BTreeSet;

use super::Concern;
use crate::admission::{Attempt, Verdict};
use crate::auth::authorizer::{Attributes, Decision};
use crate::auth::rbac::{GROUP, PolicyRule, RoleRef, quoted_list};
use crate::error::Error;
use crate::gotext::quote;
use crate::request::Request;
use crate::rights::only_collected;
use crate::schema::names::GroupResource;
use crate::schema::resource::ResourceDefinition;
use crate::user::MASTERS;
use crate::{ObjectMap, fields};

/// The most single rights of one object that are looked at. Lists in a rule multiply: a small one may stand for billions.
const MAX_RIGHTS: usize = 100_000;
/// How many texts of rules are compared with those of rules of the user.
const MAX_COMPARISONS: usize = 20_000_000;
const TOO_MANY: &str = "the rules stand for too many permissions to be compared with those currently held";

pub(super) struct Escalation;

impl Concern for Escalation {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        definition.group().as_str() == GROUP
    }

    fn needs_confirmed_right(&self, request: &Request<'_>) -> bool {
        !request.user.is_in(MASTERS)
    }

    fn completed<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        match attempt.request.user.is_in(MASTERS) {
            true => Verdict::Nothing,
            false => Verdict::Later(Box::pin(check(attempt))),
        }
    }
}

/// 403 if the write would grant what the user does not have.
async fn check(attempt: &Attempt<'_>) -> Result<(), Error> {
    let definition = &attempt.request.target.resource.definition;
    let Some(object) = &attempt.object else { return Ok(()) };
    match &*definition.plural {
        "roles" | "clusterroles" => role(attempt, object).await,
        "rolebindings" | "clusterrolebindings" => binding(attempt, object).await,
        _ => Ok(()),
    }
}

async fn role(attempt: &Attempt<'_>, role: &ObjectMap) -> Result<(), Error> {
    let request = attempt.request;
    let plural = &*request.target.resource.definition.plural;
    let (namespace, name) = (request.target.namespace, request.target.name);
    if may(attempt, "escalate", plural, namespace, name).await || only_collected(role, attempt.old) {
        return Ok(());
    }
    confirm(attempt, &PolicyRule::of_role(role))?;
    let aggregates =
        |role: &ObjectMap| !fields::items(role, &["aggregationRule", "clusterRoleSelectors"]).is_empty();
    if aggregates(role) || attempt.old.is_some_and(aggregates) {
        let why = "must have cluster-admin privileges to use the aggregationRule";
        confirm(attempt, &PolicyRule::everything()).map_err(|_| attempt.target.forbidden(why))?;
    }
    Ok(())
}

async fn binding(attempt: &Attempt<'_>, binding: &ObjectMap) -> Result<(), Error> {
    if only_collected(binding, attempt.old) {
        return Ok(());
    }
    let role = RoleRef::of(binding);
    let plural = match role.kind {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        _ => "",
    };
    let namespace = attempt.request.target.namespace;
    if !plural.is_empty() && may(attempt, "bind", plural, namespace, role.name).await {
        return Ok(());
    }
    let Some(rbac) = &attempt.cluster.rbac else { return Err(Error::UnknownResource) };
    match rbac.rules_of_role(role, namespace) {
        Ok(rules) => confirm(attempt, rules.rules()),
        Err(_) if plural.is_empty() => {
            Err(Error::Unclassified(format!("unsupported role reference kind: {}", quote(role.kind))))
        }
        // Upstream looks for the role in the name of the request, which is one for bindings.
        Err(_) => {
            let resource = GroupResource::new(GROUP, &attempt.request.target.resource.definition.plural);
            Err(Error::not_found(resource, role.name))
        }
    }
}

/// Whether the user may do this to a role, by any authorizer.
async fn may(attempt: &Attempt<'_>, verb: &str, resource: &str, namespace: &str, name: &str) -> bool {
    let request = attempt.request;
    let path = Attributes::of_path(request.user, verb, "");
    let attributes = Attributes { group: GROUP, version: "*", resource, namespace, name, ..path };
    let decision = request.authorizer.decide(&attributes).decided().await;
    matches!(decision, Decision::Allow(_))
}

/// 403 unless the user has all rights of these rules, by RBAC alone.
fn confirm(attempt: &Attempt<'_>, rules: &[PolicyRule]) -> Result<(), Error> {
    let (user, namespace) = (attempt.request.user, attempt.request.target.namespace);
    let (held, error) = match &attempt.cluster.rbac {
        Some(rbac) => rbac.held_by(user, namespace),
        None => Default::default(),
    };
    let held: Vec<&PolicyRule> = held.iter().flat_map(|role| role.rules()).collect();
    let missing = missing(&held, rules, MAX_COMPARISONS).map_err(|why| attempt.target.forbidden(why))?;
    if missing.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = missing.into_iter().collect();
    let mut why = format!(
        "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        quote(&user.name),
        quoted_list(&user.groups),
        lines.join("\n")
    );
    if let Some(error) = error {
        why.push_str(&format!("; resolution errors: [{error}]"));
    }
    Err(attempt.target.forbidden(why))
}

/// The rights of `rules` that no single one of the held rules covers, as upstream shows them.
fn missing(
    held: &[&PolicyRule],
    rules: &[PolicyRule],
    most: usize,
) -> Result<BTreeSet<String>, &'static str> {
    let (mut uncovered, mut rights, mut left) = (Vec::new(), 0_usize, most);
    let mut is_covered = |wanted: &PolicyRule| -> Result<bool, &'static str> {
        for own in held {
            left = left.checked_sub(own.cost_of_covering(wanted)).ok_or(TOO_MANY)?;
            if own.covers(wanted) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    for rule in rules {
        // Most often one rule covers all of another.
        if is_covered(rule)? {
            continue;
        }
        rights = rule.count_of_rights().saturating_add(rights);
        if rights > MAX_RIGHTS {
            return Err(TOO_MANY);
        }
        for right in rule.single_rights() {
            if !is_covered(&right)? {
                uncovered.push(right);
            }
        }
    }
    Ok(compacted(uncovered).iter().map(PolicyRule::compact_text).collect())
}

/// One rule for all verbs of a resource, or of an object of it.
fn compacted(rights: Vec<PolicyRule>) -> Vec<PolicyRule> {
    let mut compacted: Vec<PolicyRule> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for right in rights {
        if !right.urls.is_empty() {
            compacted.push(right);
            continue;
        }
        let subject = (right.groups.clone(), right.resources.clone(), right.names.clone());
        match places.get(&subject) {
            Some(&at) => {
                let rule: &mut PolicyRule = &mut compacted[at];
                rule.verbs.extend(right.verbs);
            }
            None => {
                places.insert(subject, compacted.len());
                compacted.push(right);
            }
        }
    }
    compacted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Value, json};

    fn rules(value: Value) -> Vec<PolicyRule> {
        PolicyRule::of_role(json!({"rules": value}).as_object().expect("a role"))
    }

    fn each(rules: &[PolicyRule]) -> Vec<&PolicyRule> {
        rules.iter().collect()
    }

    #[test]
    fn auth_58_what_is_missing_is_sorted_and_compacted() {
        let held = rules(json!([{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]));
        let wanted = rules(json!([
            {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["secrets", "pods"]},
            {"verbs": ["get"], "nonResourceURLs": ["/metrics"]},
            {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]},
        ]));
        let lines: Vec<String> =
            missing(&each(&held), &wanted, MAX_COMPARISONS).expect("few").into_iter().collect();
        assert_eq!(
            lines,
            [
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["list" "watch"]}"#,
                r#"{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list" "watch"]}"#,
                r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#,
            ]
        );
        assert!(missing(&each(&wanted), &held, MAX_COMPARISONS).expect("few").is_empty());
    }

    #[test]
    fn rules_that_stand_for_billions_are_refused_and_not_counted_out() {
        // More than 2^64.
        let many: Vec<String> = (0..70_000).map(|n| format!("x{n}")).collect();
        let wanted =
            rules(json!([{"verbs": many, "apiGroups": many, "resources": many, "resourceNames": many}]));
        assert!(missing(&[], &wanted, MAX_COMPARISONS).is_err());
        let more = [rules(json!([{"verbs": ["x"], "nonResourceURLs": ["/x"]}])), wanted.clone()].concat();
        assert!(missing(&[], &more, MAX_COMPARISONS).is_err());
        let covered = missing(&each(&PolicyRule::everything()), &wanted, MAX_COMPARISONS);
        assert!(covered.expect("covered at once").is_empty());
    }

    /// Without a bound on comparisons, these would be 4 * 10^8.
    #[test]
    fn many_rules_are_compared_with_many_only_so_often() {
        let many = |prefix: &str| -> Vec<PolicyRule> {
            let rule =
                |n| json!({"verbs": ["get"], "apiGroups": [""], "resources": [format!("{prefix}{n}")]});
            rules(Value::Array((0..20_000).map(rule).collect()))
        };
        let (held, wanted) = (many("a"), many("b"));
        assert_eq!(missing(&each(&held), &wanted, 1_000_000), Err(TOO_MANY));
        // What the first rules cover is soon found.
        assert_eq!(missing(&each(&held), &held[..100], 1_000_000), Ok(BTreeSet::new()));
    }
}
