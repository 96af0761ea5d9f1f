//! Rules of roles: what each allows, and which rules cover others (`pkg/apis/rbac/v1/evaluation_helpers.go`,
//! `component-helpers/auth/rbac/validation`).

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::super::authorizer::Attributes;
use crate::fields;
use crate::gotext::quote;
use crate::tree::{Map, Value, json};

const ALL: &str = "*";

/// A rule of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct PolicyRule {
    pub verbs: Vec<String>,
    pub groups: Vec<String>,
    pub resources: Vec<String>,
    /// `resourceNames`; empty means all objects.
    pub names: Vec<String>,
    /// `nonResourceURLs`.
    pub urls: Vec<String>,
}

impl PolicyRule {
    /// The rules of a Role or ClusterRole.
    pub fn of_role(role: &Map) -> Vec<Self> {
        let rules = fields::items(role, &["rules"]).iter().filter_map(Value::as_object);
        rules.map(Self::of_object).collect()
    }

    fn of_object(rule: &Map) -> Self {
        let texts = |name: &str| {
            let items = fields::items(rule, &[name]).iter();
            items.map(|item| item.as_str().unwrap_or_default().to_owned()).collect()
        };
        Self {
            verbs: texts("verbs"),
            groups: texts("apiGroups"),
            resources: texts("resources"),
            names: texts("resourceNames"),
            urls: texts("nonResourceURLs"),
        }
    }

    /// The rule as a member of `rules`.
    pub fn to_value(&self) -> Value {
        let mut rule = Map::new();
        rule.insert("verbs", json!(self.verbs));
        let optional = [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.urls),
        ];
        for (name, texts) in optional {
            if !texts.is_empty() {
                rule.insert(name, json!(texts));
            }
        }
        Value::Object(rule)
    }

    /// The rules of `cluster-admin`.
    pub fn everything() -> Vec<Self> {
        let all = || vec![ALL.to_owned()];
        vec![
            Self { verbs: all(), groups: all(), resources: all(), ..Self::default() },
            Self { verbs: all(), urls: all(), ..Self::default() },
        ]
    }

    pub fn allows(&self, a: &Attributes<'_>) -> bool {
        if !has_or_all(&self.verbs, a.verb) {
            return false;
        }
        if !a.is_resource() {
            return self.urls.iter().any(|url| url_covers(url, a.path));
        }
        has_or_all(&self.groups, a.group)
            && self.resources.iter().any(|own| resource_matches(own, a.resource, a.subresource))
            && (self.names.is_empty() || has(&self.names, a.name))
    }

    /// Whether the rule covers a [single right](Self::single_rights).
    pub fn covers(&self, single: &Self) -> bool {
        let verb = single.verbs.iter().all(|verb| has_or_all(&self.verbs, verb));
        let group = has(&self.groups, ALL) || single.groups.iter().all(|group| has(&self.groups, group));
        let names = match single.names.as_slice() {
            [] => self.names.is_empty(),
            names => self.names.is_empty() || names.iter().all(|name| has(&self.names, name)),
        };
        verb && group
            && names
            && (has(&self.resources, ALL)
                || single.resources.iter().all(|one| resource_covered(&self.resources, one)))
            && single.urls.iter().all(|url| self.urls.iter().any(|own| url_covers(own, url)))
    }

    /// About how many bytes the rule takes as JSON.
    pub fn size(&self) -> usize {
        self.lists().into_iter().flatten().map(|text| text.len() + 4).sum::<usize>() + 64
    }

    fn lists(&self) -> [&Vec<String>; 5] {
        [&self.verbs, &self.groups, &self.resources, &self.names, &self.urls]
    }

    /// How many texts [`covers`](Self::covers) compares at the most.
    pub fn cost_of_covering(&self, other: &Self) -> usize {
        let pairs = self.lists().into_iter().zip(other.lists());
        let costs = pairs.map(|(own, other)| own.len().saturating_mul(other.len()));
        costs.fold(1, usize::saturating_add)
    }

    /// How many [single rights](Self::single_rights) there are.
    pub fn count_of_rights(&self) -> usize {
        let resources = self.groups.len().saturating_mul(self.resources.len());
        let objects = resources.saturating_mul(self.names.len().max(1));
        objects.saturating_add(self.urls.len()).saturating_mul(self.verbs.len())
    }

    /// The rule as rules with one verb and one resource, name or URL each, in upstream's order.
    pub fn single_rights(&self) -> Vec<Self> {
        let one = |text: &String| vec![text.clone()];
        let mut rights = Vec::new();
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let right = Self {
                        verbs: one(verb),
                        groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    match self.names.as_slice() {
                        [] => rights.push(right),
                        names => {
                            rights
                                .extend(names.iter().map(|name| Self { names: one(name), ..right.clone() }));
                        }
                    }
                }
            }
        }
        for url in &self.urls {
            rights.extend(self.verbs.iter().map(|verb| Self {
                verbs: one(verb),
                urls: one(url),
                ..Self::default()
            }));
        }
        rights
    }

    /// `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
    pub fn compact_text(&self) -> String {
        let parts = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let parts = parts.into_iter().filter(|(_, texts)| !texts.is_empty());
        let parts = parts.map(|(name, texts)| format!("{name}:{}", quoted_list(texts)));
        format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
    }
}

/// Texts as Go prints a slice with `%q`.
pub fn quoted_list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quote(text)).collect::<Vec<_>>().join(" "))
}

fn has(texts: &[String], text: &str) -> bool {
    texts.iter().any(|own| own == text)
}

fn has_or_all(texts: &[String], text: &str) -> bool {
    texts.iter().any(|own| own == ALL || own == text)
}

fn resource_matches(own: &str, resource: &str, subresource: &str) -> bool {
    if own == ALL {
        return true;
    }
    if subresource.is_empty() {
        return own == resource;
    }
    let rest = own.strip_suffix(subresource).and_then(|rest| rest.strip_suffix('/'));
    rest.is_some_and(|rest| rest == resource || rest == ALL)
}

fn resource_covered(owned: &[String], resource: &str) -> bool {
    if has(owned, resource) {
        return true;
    }
    let subresource = resource.split_once('/').map(|(_, subresource)| subresource);
    subresource.is_some_and(|subresource| {
        owned.iter().any(|own| own.strip_prefix("*/").is_some_and(|own| own == subresource))
    })
}

fn url_covers(own: &str, path: &str) -> bool {
    own == path || own.ends_with('*') && path.starts_with(own.trim_end_matches('*'))
}

/// The rules of one role, ready for decisions.
#[derive(Debug)]
pub struct Rules {
    rules: Box<[PolicyRule]>,
    index: Option<Index>,
    is_large: bool,
}

/// The rules that may allow something, by resource; the numbers are positions in [`Rules`].
#[derive(Debug)]
struct Index {
    /// By resource, without its subresource.
    by_resource: HashMap<Box<str>, Vec<u32>, RandomState>,
    /// Rules with a wildcard for resources.
    any_resource: Vec<u32>,
    paths: Vec<u32>,
}

/// The most rules without an index: to look at all of so few takes less time.
const INDEXED: usize = 8;
/// A role with more texts takes its time.
const LARGE: usize = 1000;

impl Rules {
    pub fn new(rules: Vec<PolicyRule>) -> Self {
        let index = (rules.len() > INDEXED).then(|| Index::new(&rules));
        let texts: usize = rules.iter().flat_map(PolicyRule::lists).map(Vec::len).sum();
        Self { rules: rules.into(), index, is_large: texts > LARGE }
    }

    /// Whether a decision should not look at the rules more often than once.
    pub fn is_large(&self) -> bool {
        self.is_large
    }

    pub fn allow(&self, attributes: &Attributes<'_>) -> bool {
        let Some(index) = &self.index else {
            return self.rules.iter().any(|rule| rule.allows(attributes));
        };
        let allows = |at: &u32| self.rules.get(*at as usize).is_some_and(|rule| rule.allows(attributes));
        if !attributes.is_resource() {
            return index.paths.iter().any(allows);
        }
        let own = index.by_resource.get(main_resource(attributes.resource));
        own.is_some_and(|own| own.iter().any(allows)) || index.any_resource.iter().any(allows)
    }

    pub fn rules(&self) -> &[PolicyRule] {
        &self.rules
    }
}

impl Index {
    fn new(rules: &[PolicyRule]) -> Self {
        let mut index = Self { by_resource: HashMap::default(), any_resource: Vec::new(), paths: Vec::new() };
        for (rule, at) in rules.iter().zip(0..) {
            if !rule.urls.is_empty() {
                index.paths.push(at);
            }
            if rule.resources.iter().any(|resource| main_resource(resource) == ALL) {
                index.any_resource.push(at);
            }
            for resource in &rule.resources {
                let positions = index.by_resource.entry(main_resource(resource).into()).or_default();
                if positions.last() != Some(&at) {
                    positions.push(at);
                }
            }
        }
        index
    }
}

/// The resource of `resource/subresource`.
fn main_resource(resource: &str) -> &str {
    resource.split_once('/').map_or(resource, |(resource, _)| resource)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::User;

    fn rule(value: Value) -> PolicyRule {
        PolicyRule::of_object(value.as_object().expect("a rule"))
    }

    fn allows(
        rule: &PolicyRule,
        verb: &str,
        group: &str,
        resource: &str,
        subresource: &str,
        name: &str,
    ) -> bool {
        let user = User::default();
        let attributes =
            Attributes { group, resource, subresource, name, ..Attributes::of_path(&user, verb, "") };
        rule.allows(&attributes)
    }

    #[test]
    fn auth_51_resources_subresources_names_and_paths() {
        let pods = rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}));
        assert!(allows(&pods, "get", "", "pods", "", "x"));
        assert!(!allows(&pods, "get", "", "pods", "log", "x"));
        assert!(!allows(&pods, "list", "", "pods", "", ""));
        assert!(!allows(&pods, "get", "apps", "pods", "", ""));
        let scale = rule(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale", "pods/log"]}));
        assert!(allows(&scale, "get", "apps", "deployments", "scale", "x"));
        assert!(
            allows(&scale, "get", "", "pods", "log", "x") && allows(&scale, "get", "", "pods/log", "", "x")
        );
        assert!(
            !allows(&scale, "get", "", "scale", "", "x") && !allows(&scale, "get", "", "pods", "logs", "x")
        );
        let all = rule(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        assert!(allows(&all, "anything", "g", "r", "s", "n"));
        let named =
            rule(json!({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]}));
        assert!(allows(&named, "get", "", "pods", "", "x") && allows(&named, "list", "", "pods", "", "x"));
        assert!(!allows(&named, "list", "", "pods", "", "") && !allows(&named, "create", "", "pods", "", ""));
        let user = User::default();
        let path = |urls: &[&str], path: &str| {
            rule(json!({"verbs": ["get"], "nonResourceURLs": urls}))
                .allows(&Attributes::of_path(&user, "get", path))
        };
        assert!(path(&["/a/*"], "/a/") && path(&["/a/*"], "/a/b/c") && !path(&["/a/*"], "/a"));
        assert!(
            path(&["/a"], "/a") && !path(&["/a"], "/a/b") && path(&["*"], "/x") && path(&["/a**"], "/ab")
        );
    }

    #[test]
    fn an_index_finds_what_looking_at_all_rules_finds() {
        let texts = ["a", "b", "a/s", "b/s", "*", "*/s"];
        let rules: Vec<_> = (0..24)
            .map(|n| {
                let resources = [texts[n % 6], texts[(n / 6) % 6]];
                let verb = if n % 2 == 0 { "get" } else { "list" };
                rule(json!({"verbs": [verb], "apiGroups": [format!("g{}", n % 5)], "resources": resources}))
            })
            .chain([rule(json!({"verbs": ["get"], "nonResourceURLs": ["/x/*"]}))])
            .collect();
        let compiled = Rules::new(rules.clone());
        assert!(compiled.index.is_some());
        let user = User::default();
        let mut seen = [0, 0];
        for verb in ["get", "list", "watch"] {
            for group in ["g0", "g1", "g2", "g3", "g4", "g5"] {
                for resource in ["a", "b", "c", "s", "a/s"] {
                    for subresource in ["", "s", "t"] {
                        let path = Attributes::of_path(&user, verb, "");
                        let attributes = Attributes { group, resource, subresource, ..path };
                        let one_by_one = rules.iter().any(|rule| rule.allows(&attributes));
                        assert_eq!(compiled.allow(&attributes), one_by_one, "{attributes:?}");
                        seen[usize::from(one_by_one)] += 1;
                    }
                }
            }
        }
        assert!(seen.iter().all(|&count| count > 20), "{seen:?}");
        assert!(compiled.allow(&Attributes::of_path(&user, "get", "/x/y")));
        assert!(!compiled.allow(&Attributes::of_path(&user, "get", "/y")));
    }

    #[test]
    fn what_covers_a_right() {
        let covers = |owner: Value, right: Value| rule(owner).covers(&rule(right));
        let right = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]});
        assert!(covers(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}), right.clone()));
        assert!(covers(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["*/log"]}), right.clone()));
        assert!(!covers(json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), right.clone()));
        let named =
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"], "resourceNames": ["x"]});
        assert!(covers(right.clone(), named.clone()) && !covers(named, right));
        let url = |url: &str| json!({"verbs": ["get"], "nonResourceURLs": [url]});
        assert!(
            covers(url("/a*"), url("/a/*"))
                && !covers(url("/a/*"), url("/a*"))
                && covers(url("*"), url("/x"))
        );
    }

    #[test]
    fn rights_are_told_apart_and_shown() {
        let rule = rule(
            json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["x"]}),
        );
        let rights = rule.single_rights();
        assert_eq!(rights.len(), rule.count_of_rights());
        assert_eq!(
            rights[1].compact_text(),
            r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["x"], Verbs:["list"]}"#
        );
    }
}
