//! The rules that aggregated roles should have.

use std::collections::{BTreeMap, HashSet};

use crate::auth::rbac::PolicyRule;
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::options::selector::label::LabelSelector;
use crate::revision::Revision;
use crate::storage::ResourceId;
use crate::tree::{Map, Value};
use crate::{ObjectMap, fields};

/// How often roles are looked at again because one of them has changed. Roles that consist of each other may gain from
/// each other once each.
const ROUNDS: usize = 16;

/// The ClusterRoles as they were read last, by name.
#[derive(Default)]
pub struct Roles(BTreeMap<Box<str>, Role>);

pub struct Role {
    /// The revision of the role's row; that of no row if the role was never stored like this.
    revision: Revision,
    labels: Map,
    rules: Vec<PolicyRule>,
    /// The selectors of an aggregated role.
    selectors: Option<Vec<LabelSelector>>,
}

impl Roles {
    /// Takes the roles from a state. Those that have not changed are not decoded again.
    pub fn read(&mut self, state: &State, resource: ResourceId) {
        let mut known = std::mem::take(&mut self.0);
        for object in state.objects(resource).range(&Range::of(None)) {
            let role = known.remove(object.name()).filter(|role| role.revision == object.revision());
            if let Some(role) = role.or_else(|| Role::of_object(object)) {
                self.0.insert(object.name().into(), role);
            }
        }
    }

    /// The aggregated roles that have other rules than they should have, with these.
    pub fn stale(&self) -> Vec<(Box<str>, Vec<PolicyRule>)> {
        let stale = self.0.iter().filter_map(|(name, role)| {
            let rules = self.rules(name, role.selectors.as_ref()?);
            let is_stale = !rules.iter().copied().eq(&role.rules);
            is_stale.then(|| (name.clone(), rules.into_iter().cloned().collect()))
        });
        stale.collect()
    }

    /// The roles that are [stale](Roles::stale) once this one is another one or gone, and those that become stale by them
    /// in turn. Until the next [read](Roles::read), all roles are known with the rules that they should have then.
    pub fn stale_after(&mut self, name: &str, role: Option<Role>) -> BTreeMap<Box<str>, Vec<PolicyRule>> {
        match role {
            Some(role) => _ = self.0.insert(name.into(), role),
            None => _ = self.0.remove(name),
        }
        let mut all = BTreeMap::new();
        for _ in 0..ROUNDS {
            let stale = self.stale();
            if stale.is_empty() {
                break;
            }
            for (name, rules) in stale {
                if let Some(role) = self.0.get_mut(&name) {
                    (role.rules, role.revision) = (rules.clone(), Revision(0));
                }
                all.insert(name, rules);
            }
        }
        all
    }

    fn rules(&self, own: &str, selectors: &[LabelSelector]) -> Vec<&PolicyRule> {
        let (mut rules, mut seen) = (Vec::new(), HashSet::new());
        for selector in selectors {
            let others =
                self.0.iter().filter(|(name, role)| &***name != own && role.is_selected_by(selector));
            rules.extend(others.flat_map(|(_, role)| &role.rules).filter(|rule| seen.insert(*rule)));
        }
        rules
    }
}

impl Role {
    fn of_object(object: &Object) -> Option<Self> {
        Some(Self::of(object.revision(), &object.to_closed_map().ok()?))
    }

    pub fn of(revision: Revision, content: &ObjectMap) -> Self {
        let selectors = fields::object(content, "aggregationRule").map(|rule| {
            let selectors = fields::items(rule, &["clusterRoleSelectors"]).iter();
            selectors.filter_map(|selector| LabelSelector::of_object(Some(selector))).collect()
        });
        let labels = fields::at(content, &["metadata", "labels"]).and_then(Value::as_object);
        Self {
            revision,
            labels: labels.cloned().unwrap_or_default(),
            rules: PolicyRule::of_role(content),
            selectors,
        }
    }

    fn is_selected_by(&self, selector: &LabelSelector) -> bool {
        selector.matches(|name| self.labels.get(name).and_then(Value::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::object::Draft;
    use crate::tree::json;

    fn roles(objects: &[Value]) -> Roles {
        let role = |object: &Value| {
            let name = object["metadata"]["name"].as_str().expect("a name");
            let object = Draft::of_json("", name, object.to_string().into()).into_object(Revision(1));
            (Box::from(name), Role::of_object(&object).expect("a role"))
        };
        Roles(objects.iter().map(role).collect())
    }

    fn rule(resource: &str) -> Value {
        json!({"verbs": ["get"], "apiGroups": [""], "resources": [resource]})
    }

    fn aggregated(name: &str, label: &str, rules: &[Value]) -> Value {
        let selectors = [json!({"matchLabels": {label: "true"}})];
        json!({"metadata": {"name": name, "labels": {label: "true"}},
            "aggregationRule": {"clusterRoleSelectors": selectors}, "rules": rules})
    }

    fn part(name: &str, label: &str, resources: &[&str]) -> Value {
        let rules: Vec<Value> = resources.iter().map(|resource| rule(resource)).collect();
        json!({"metadata": {"name": name, "labels": {label: "true"}}, "rules": rules})
    }

    fn resources(rules: &[PolicyRule]) -> Vec<&str> {
        rules.iter().map(|rule| rule.resources[0].as_str()).collect()
    }

    #[test]
    fn auth_62_rules_come_in_the_order_of_names_without_repetitions_and_without_ones_own() {
        let roles = roles(&[
            aggregated("whole", "x", &[rule("own")]),
            part("b", "x", &["pods", "nodes"]),
            part("a", "x", &["secrets", "pods"]),
            part("c", "y", &["events"]),
        ]);
        let stale = roles.stale();
        assert_eq!((&*stale[0].0, resources(&stale[0].1)), ("whole", vec!["secrets", "pods", "nodes"]));
    }

    #[test]
    fn a_role_with_the_right_rules_is_left_alone() {
        let roles = roles(&[aggregated("whole", "x", &[rule("pods")]), part("a", "x", &["pods"])]);
        assert_eq!(roles.stale().len(), 0);
    }

    #[test]
    fn a_change_goes_on_to_roles_that_consist_of_aggregated_ones() {
        let mut whole = aggregated("whole", "y", &[]);
        whole["metadata"]["labels"] = json!({"x": "true"});
        let mut roles = roles(&[whole, aggregated("top", "x", &[]), part("a", "y", &[])]);
        let content = |role: Value| role.as_object().expect("an object").clone();
        let new = Role::of(Revision(0), &content(part("a", "y", &["pods"])));
        let stale = roles.stale_after("a", Some(new));
        let names: Vec<&str> = stale.keys().map(|name| &**name).collect();
        assert_eq!(names, ["top", "whole"]);
        assert!(stale.values().all(|rules| resources(rules) == ["pods"]));
        let stale = roles.stale_after("a", None);
        assert!(
            stale.len() == 2 && stale.values().all(Vec::is_empty),
            "a role that goes takes its rules along"
        );
    }
}
