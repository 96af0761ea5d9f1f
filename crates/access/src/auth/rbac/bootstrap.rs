//! The roles and bindings that exist from the start, as data (`plugin/pkg/auth/authorizer/rbac/bootstrappolicy`).
//!
//! A file lists one role after the other, its rules below it, indented: `get,list pods,pods/log named x in core,apps` is a
//! rule for two resources named `x` in two groups, without a name or a group one for all objects of the core group;
//! `get paths /a,/b` is one for paths. A line of bindings has the role's name, which is the binding's own for the cluster,
//! and its subjects.

use super::GROUP;
use super::rule::PolicyRule;
use crate::tree::{Map, Value, json};

const CLUSTER_ROLES: &str = include_str!("bootstrap/cluster_roles.txt");
/// Each is bound to the account `kube-system/<name behind the prefix>`.
const CONTROLLERS: &str = include_str!("bootstrap/controllers.txt");
const CLUSTER_ROLE_BINDINGS: &str = include_str!("bootstrap/bindings.txt");
const ROLES: &str = include_str!("bootstrap/roles.txt");
const ROLE_BINDINGS: &str = include_str!("bootstrap/role_bindings.txt");

const CONTROLLER_PREFIX: &str = "system:controller:";
const AGGREGATE: &str = "rbac.authorization.k8s.io/aggregate-to-";

/// The annotation by which an object is kept up to date at each start.
pub const AUTOUPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";

/// All objects, roles first. Their order within a kind is that of their names.
pub fn objects() -> Vec<Map> {
    let mut objects = aggregated();
    objects.extend(
        roles(CLUSTER_ROLES).chain(roles(CONTROLLERS)).map(|(name, rules)| cluster_role(name, &rules)),
    );
    objects.extend(roles(ROLES).map(|(name, rules)| {
        let mut role = object("Role", name);
        role.insert("rules", values(&rules));
        role
    }));
    objects.extend(CLUSTER_ROLE_BINDINGS.lines().map(|line| {
        let mut words = line.split(' ');
        let name = words.next().unwrap_or_default();
        binding(object("ClusterRoleBinding", name), "ClusterRole", name, words)
    }));
    objects.extend(roles(CONTROLLERS).map(|(name, _)| {
        let account = format!("account:kube-system/{}", name.trim_start_matches(CONTROLLER_PREFIX));
        binding(object("ClusterRoleBinding", name), "ClusterRole", name, std::iter::once(account.as_str()))
    }));
    objects.extend(ROLE_BINDINGS.lines().map(|line| {
        let mut words = line.split(' ');
        let (name, role) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        binding(object("RoleBinding", name), "Role", role, words)
    }));
    objects
}

/// The rules of a ClusterRole; none if it is not among those that exist from the start.
pub fn rules(name: &str) -> Vec<PolicyRule> {
    let mut roles = roles(CLUSTER_ROLES).chain(roles(CONTROLLERS));
    roles.find(|(own, _)| *own == name).map(|(_, rules)| rules).unwrap_or_default()
}

/// The roles that consist of others. Each but the first is a part of the one before.
fn aggregated() -> Vec<Map> {
    let part_of = [("admin", None), ("edit", Some("admin")), ("view", Some("edit"))];
    let role = |(name, whole): (&str, Option<&str>)| {
        let mut role = object("ClusterRole", name);
        if let Some(whole) = whole {
            aggregate_to(&mut role, whole);
        }
        let label = format!("{AGGREGATE}{name}");
        let selector = json!({"matchLabels": {label: "true"}});
        role.insert("aggregationRule", json!({"clusterRoleSelectors": [selector]}));
        role.insert("rules", Value::Null);
        role
    };
    part_of.map(role).into()
}

fn cluster_role(name: &str, rules: &[PolicyRule]) -> Map {
    let mut role = object("ClusterRole", name);
    if let Some(whole) = name.strip_prefix("system:aggregate-to-") {
        aggregate_to(&mut role, whole);
    }
    role.insert("rules", values(rules));
    role
}

fn aggregate_to(role: &mut Map, whole: &str) {
    if let Some(labels) = role.get_mut("metadata").and_then(|metadata| metadata.get_mut("labels")) {
        labels[&*format!("{AGGREGATE}{whole}")] = "true".into();
    }
}

/// An object without content. `name` may begin with a namespace.
fn object(kind: &str, name: &str) -> Map {
    let mut metadata = Map::new();
    let name = match name.split_once('/') {
        Some((namespace, name)) => {
            metadata.insert("namespace", namespace.into());
            name
        }
        None => name,
    };
    metadata.insert("name", name.into());
    metadata.insert("labels", json!({"kubernetes.io/bootstrapping": "rbac-defaults"}));
    metadata.insert("annotations", json!({AUTOUPDATE: "true"}));
    let mut object = Map::new();
    object.insert("kind", kind.into());
    object.insert("apiVersion", format!("{GROUP}/v1").into());
    object.insert("metadata", Value::Object(metadata));
    object
}

fn binding<'a>(mut binding: Map, kind: &str, role: &str, subjects: impl Iterator<Item = &'a str>) -> Map {
    binding.insert("roleRef", json!({"apiGroup": GROUP, "kind": kind, "name": role}));
    let subjects: Vec<Value> = subjects.map(subject).collect();
    if !subjects.is_empty() {
        binding.insert("subjects", Value::Array(subjects));
    }
    binding
}

fn subject(text: &str) -> Value {
    match text.split_once(':') {
        Some(("user", name)) => json!({"kind": "User", "apiGroup": GROUP, "name": name}),
        Some(("group", name)) => json!({"kind": "Group", "apiGroup": GROUP, "name": name}),
        Some((_, account)) => {
            let (namespace, name) = account.split_once('/').unwrap_or_default();
            json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
        }
        None => Value::Null,
    }
}

fn values(rules: &[PolicyRule]) -> Value {
    Value::Array(rules.iter().map(PolicyRule::to_value).collect())
}

/// The roles of a file: a name, and its rules on indented lines.
fn roles(file: &str) -> impl Iterator<Item = (&str, Vec<PolicyRule>)> {
    let mut lines = file.lines().peekable();
    std::iter::from_fn(move || {
        let name = lines.next()?;
        let mut rules = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with(' ')) {
            rules.push(rule(line.trim()));
        }
        Some((name, rules))
    })
}

fn rule(text: &str) -> PolicyRule {
    let mut words = text.split(' ');
    let mut list = || words.next().unwrap_or_default();
    let (verbs, what) = (sorted(list()), list());
    if what == "paths" {
        return PolicyRule { verbs, urls: sorted(list()), ..PolicyRule::default() };
    }
    let (mut names, mut groups) = (Vec::new(), vec![String::new()]);
    loop {
        match list() {
            "named" => names = sorted(list()),
            "in" => groups = sorted(list()),
            _ => return PolicyRule { verbs, groups, resources: sorted(what), names, urls: Vec::new() },
        }
    }
}

/// The texts of a list, `core` as the name that its group has.
fn sorted(list: &str) -> Vec<String> {
    let mut texts: Vec<String> =
        list.split(',').map(|text| if text == "core" { "" } else { text }.to_owned()).collect();
    texts.sort();
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read() {
        let read = |text| rule(text).to_value();
        assert_eq!(
            read("create,update,patch events in core,events.k8s.io"),
            json!({"verbs": ["create", "patch", "update"], "apiGroups": ["", "events.k8s.io"], "resources": ["events"]})
        );
        assert_eq!(
            read("escalate,get,list,watch,update,patch clusterroles in rbac.authorization.k8s.io"),
            json!({"verbs": ["escalate", "get", "list", "patch", "update", "watch"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"]})
        );
        assert_eq!(
            read("sign signers named kubernetes.io/b,kubernetes.io/a in certificates.k8s.io"),
            json!({"verbs": ["sign"], "apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "resourceNames": ["kubernetes.io/a", "kubernetes.io/b"]})
        );
        assert_eq!(read("* paths *"), json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
        assert_eq!(
            read("proxy nodes"),
            json!({"verbs": ["proxy"], "apiGroups": [""], "resources": ["nodes"]})
        );
    }
}
