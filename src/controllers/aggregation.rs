//! ClusterRoles that consist of others: their `rules` are those of the roles that their selectors match
//! (`pkg/controller/clusterroleaggregation`).
//!
//! The rules follow just after the write that changes them. They cannot be written with it: which roles match is known
//! at the commit only if no other role is written then, and roles that consist of others may consist of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::api::error::Error;
use crate::api::options::write::WriteOptions;
use crate::api::request::Request;
use crate::api::selector::label::LabelSelector;
use crate::api::{Api, Target, fields};
use crate::auth::rbac::{CLUSTER_ROLES, GROUP, PolicyRule};
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::gotext;
use crate::kinds::behavior::part::Part;
use crate::patch::apply::ownership::Conflicts;
use crate::revision::Revision;
use crate::schema::resource::Verb;
use crate::storage::{self, ResourceId};
use crate::tree::{Map, Value, json};

const MANAGER: &str = "clusterrole-aggregation-controller";
/// How often roles are looked at again because one of them has been written. Roles that consist of each other may gain
/// from each other once each.
const ROUNDS: usize = 16;

/// Keeps aggregated roles up to date for ever.
pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&CLUSTER_ROLES).cloned() else { return Ok(()) };
    let mut watcher = api.cache.watch(resource.id, api.cache.any().revision);
    let mut roles = Roles::default();
    loop {
        roles.bring_up_to_date(&api).await?;
        watcher.changed().await;
        while match watcher.next().await {
            Err(storage::Error::Compacted { .. }) => return Ok(()),
            events => !events?.is_empty(),
        } {}
    }
}

/// Brings all aggregated roles up to date.
pub async fn bring_up_to_date(api: &Api) -> Result<(), Error> {
    Roles::default().bring_up_to_date(api).await
}

/// The ClusterRoles as they were read last, by name.
#[derive(Default)]
struct Roles(BTreeMap<Box<str>, Role>);

struct Role {
    revision: Revision,
    labels: Map,
    rules: Vec<PolicyRule>,
    /// Of an aggregated role.
    selectors: Option<Vec<LabelSelector>>,
}

impl Roles {
    async fn bring_up_to_date(&mut self, api: &Api) -> Result<(), Error> {
        let Some(resource) = api.resources.get(&CLUSTER_ROLES) else { return Ok(()) };
        let mut refused = BTreeSet::new();
        for _ in 0..ROUNDS {
            self.read(&api.cache.any(), resource.id);
            let stale = self.stale().filter(|(name, _)| !refused.contains(name));
            let stale: Vec<(Box<str>, Vec<PolicyRule>)> = stale.collect();
            if stale.is_empty() {
                break;
            }
            for (name, rules) in stale {
                let target = Target { resource, namespace: "", name: &name };
                if let Err(error) = apply(api, target, &rules).await {
                    tracing::warn!(clusterrole = &*name, %error, "cannot write the rules of an aggregated role");
                    refused.insert(name);
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, state: &State, resource: ResourceId) {
        let mut known = std::mem::take(&mut self.0);
        for object in state.objects(resource).range(&Range::of(None)) {
            let role = known.remove(object.name()).filter(|role| role.revision == object.revision());
            if let Some(role) = role.or_else(|| Role::of(object)) {
                self.0.insert(object.name().into(), role);
            }
        }
    }

    /// The aggregated roles that have other rules than they should have, with these.
    fn stale(&self) -> impl Iterator<Item = (Box<str>, Vec<PolicyRule>)> {
        self.0.iter().filter_map(|(name, role)| {
            let rules = self.rules(name, role.selectors.as_ref()?);
            (rules != role.rules).then(|| (name.clone(), rules))
        })
    }

    fn rules(&self, own: &str, selectors: &[LabelSelector]) -> Vec<PolicyRule> {
        let mut rules: Vec<PolicyRule> = Vec::new();
        for selector in selectors {
            let others =
                self.0.iter().filter(|(name, role)| &***name != own && role.is_selected_by(selector));
            for rule in others.flat_map(|(_, role)| &role.rules) {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
        rules
    }
}

impl Role {
    fn of(object: &Object) -> Option<Self> {
        let content = object.to_closed_map().ok()?;
        let selectors = fields::object(&content, "aggregationRule").map(|rule| {
            let selectors = fields::items(rule, &["clusterRoleSelectors"]).iter();
            selectors.filter_map(|selector| LabelSelector::of_object(Some(selector))).collect()
        });
        let labels = fields::at(&content, &["metadata", "labels"]).and_then(Value::as_object);
        Some(Self {
            revision: object.revision(),
            labels: labels.cloned().unwrap_or_default(),
            rules: PolicyRule::of_role(&content),
            selectors,
        })
    }

    fn is_selected_by(&self, selector: &LabelSelector) -> bool {
        selector.matches(|name| self.labels.get(name).and_then(Value::as_str))
    }
}

/// Makes these the rules of a role, whoever owned them.
async fn apply(api: &Api, target: Target<'_>, rules: &[PolicyRule]) -> Result<(), Error> {
    let mut configuration = Map::new();
    configuration.insert("kind", "ClusterRole".into());
    configuration.insert("apiVersion", format!("{GROUP}/v1").into());
    configuration.insert("metadata", json!({"name": target.name}));
    if !rules.is_empty() {
        configuration.insert("rules", Value::Array(rules.iter().map(PolicyRule::to_value).collect()));
    }
    let options = WriteOptions {
        field_manager: Some(MANAGER.to_owned()),
        conflicts: Conflicts::Force,
        ..WriteOptions::default()
    };
    let request = Request::own(Verb::Patch, target).with(&options);
    let body = gotext::json(&Value::Object(configuration));
    api.apply(&request, Part::Main, body.as_bytes()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::object::Draft;

    fn roles(objects: &[Value]) -> Roles {
        let role = |object: &Value| {
            let name = object["metadata"]["name"].as_str().expect("a name");
            let object = Draft::of_json("", name, object.to_string().into()).into_object(Revision(1));
            (Box::from(name), Role::of(&object).expect("a role"))
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

    #[test]
    fn a62_rules_come_in_the_order_of_names_without_repetitions_and_without_ones_own() {
        let roles = roles(&[
            aggregated("whole", "x", &[rule("own")]),
            part("b", "x", &["pods", "nodes"]),
            part("a", "x", &["secrets", "pods"]),
            part("c", "y", &["events"]),
        ]);
        let stale: Vec<_> = roles.stale().collect();
        let resources: Vec<&str> = stale[0].1.iter().map(|rule| rule.resources[0].as_str()).collect();
        assert_eq!((&*stale[0].0, resources), ("whole", vec!["secrets", "pods", "nodes"]));
    }

    #[test]
    fn a_role_with_the_right_rules_is_left_alone() {
        let roles = roles(&[aggregated("whole", "x", &[rule("pods")]), part("a", "x", &["pods"])]);
        assert_eq!(roles.stale().count(), 0);
    }
}
