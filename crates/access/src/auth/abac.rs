//! ABAC: a file of policies, one on each line, that say who may do what (`--authorization-policy-file`).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::authorizer::{Answer, Attributes, Authorizer, Decision, Foresight, Grant, Reason, UserRules};
use super::rbac::PolicyRule;
use crate::fields;
use crate::tree::{Map, Value};
use crate::user::{AUTHENTICATED, User};

const GROUP: &str = "abac.authorization.kubernetes.io/";
const VERSION: &str = "abac.authorization.kubernetes.io/v1beta1";
const KIND: &str = "Policy";
const READING: [&str; 3] = ["get", "list", "watch"];

/// A policy: what a user or a group may do. An empty field allows nothing, `*` everything; in `user` and `group` an empty
/// one demands nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Policy {
    user: String,
    group: String,
    readonly: bool,
    api_group: String,
    resource: String,
    namespace: String,
    path: String,
}

/// The policies of a file. Copies share them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Abac {
    policies: Arc<[Policy]>,
}

/// Why a file of policies cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    #[error("open {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("error reading policy file {}, line {line}: {text}: {why}", path.display())]
    Line { path: PathBuf, line: usize, text: String, why: String },
}

impl Abac {
    pub fn load(path: &Path) -> Result<Self, PolicyFileError> {
        let read = |source| PolicyFileError::Read { path: path.to_owned(), source };
        let text = std::fs::read(path).map_err(read)?;
        let text = String::from_utf8_lossy(&text);
        Self::parse(&text).map_err(|(line, text, why)| {
            let text = text.to_owned();
            PolicyFileError::Line { path: path.to_owned(), line, text, why }
        })
    }

    /// Fails with the number of a line, its text, and what is wrong with it.
    fn parse(text: &str) -> Result<Self, (usize, &str, String)> {
        let lines = text.lines().enumerate().filter(|(_, line)| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        });
        let policies = lines.map(|(at, line)| Policy::parse(line).map_err(|why| (at + 1, line, why)));
        Ok(Self { policies: policies.collect::<Result<_, _>>()? })
    }
}

impl Policy {
    fn parse(line: &str) -> Result<Self, String> {
        let object: Map = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let text = |name: &str| fields::text(&object, &[name]);
        match (text("apiVersion"), text("kind")) {
            (VERSION, KIND) => Ok(Self::of_spec(fields::object(&object, "spec").unwrap_or(&Map::new()))),
            (version, kind) if !kind.is_empty() && version.starts_with(GROUP) && version != VERSION => {
                Err(format!("no kind \"{kind}\" is registered for version \"{version}\""))
            }
            _ => Ok(Self::unversioned(&object)),
        }
    }

    fn of_spec(spec: &Map) -> Self {
        let text = |name: &str| fields::text(spec, &[name]).to_owned();
        let mut policy = Self {
            user: text("user"),
            group: text("group"),
            readonly: is_readonly(spec),
            api_group: text("apiGroup"),
            resource: text("resource"),
            namespace: text("namespace"),
            path: text("nonResourcePath"),
        };
        policy.widen_subject();
        policy
    }

    /// The form from before there were versions, in which what is not said is everything.
    fn unversioned(object: &Map) -> Self {
        let text = |name: &str| fields::text(object, &[name]).to_owned();
        let or_all = |text: String| if text.is_empty() { "*".to_owned() } else { text };
        let (namespace, resource) = (text("namespace"), text("resource"));
        let path = if namespace.is_empty() && resource.is_empty() { "*" } else { "" }.to_owned();
        let mut policy = Self {
            user: text("user"),
            group: text("group"),
            readonly: is_readonly(object),
            api_group: "*".to_owned(),
            resource: or_all(resource),
            namespace: or_all(namespace),
            path,
        };
        if policy.user.is_empty() && policy.group.is_empty() {
            policy.group = AUTHENTICATED.to_owned();
        }
        policy.widen_subject();
        policy
    }

    /// `*` means all who are authenticated.
    fn widen_subject(&mut self) {
        if self.user == "*" || self.group == "*" {
            self.user.clear();
            self.group = AUTHENTICATED.to_owned();
        }
    }

    fn is_about(&self, user: &User) -> bool {
        let names_nobody = self.user.is_empty() && self.group.is_empty();
        let is_user = self.user.is_empty() || self.user == user.name;
        let is_in_group = self.group.is_empty() || user.is_in(&self.group);
        !names_nobody && is_user && is_in_group
    }

    fn allows(&self, attributes: &Attributes<'_>) -> bool {
        let verb = !self.readonly || READING.contains(&attributes.verb);
        verb && self.is_about(attributes.user) && self.covers(attributes)
    }

    fn covers(&self, attributes: &Attributes<'_>) -> bool {
        let is = |pattern: &str, text: &str| pattern == "*" || pattern == text;
        if attributes.is_resource() {
            return is(&self.namespace, attributes.namespace)
                && is(&self.resource, attributes.resource)
                && is(&self.api_group, attributes.group);
        }
        let below = self.path.ends_with('*') && attributes.path.starts_with(self.path.trim_end_matches('*'));
        self.path == attributes.path || below
    }

    fn verbs(&self) -> Vec<String> {
        let verbs: &[&str] = if self.readonly { &READING } else { &["*"] };
        verbs.iter().map(|verb| (*verb).to_owned()).collect()
    }

    fn rules(&self) -> impl Iterator<Item = PolicyRule> {
        let verbs = self.verbs();
        let of_resource = (!self.resource.is_empty()).then(|| PolicyRule {
            verbs: verbs.clone(),
            groups: vec![self.api_group.clone()],
            resources: vec![self.resource.clone()],
            ..PolicyRule::default()
        });
        let of_path = (!self.path.is_empty()).then(|| PolicyRule {
            verbs,
            urls: vec![self.path.clone()],
            ..PolicyRule::default()
        });
        of_resource.into_iter().chain(of_path)
    }
}

fn is_readonly(policy: &Map) -> bool {
    policy.get("readonly").and_then(Value::as_bool).unwrap_or_default()
}

impl Authorizer for Abac {
    fn decide<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a> {
        Answer::Now(match self.policies.iter().any(|policy| policy.allows(attributes)) {
            true => Decision::Allow(Reason::None),
            false => Decision::NoOpinion(Reason::Fixed("No policy matched.")),
        })
    }

    fn foresee(&self, attributes: &Attributes<'_>) -> Foresight {
        match self.policies.iter().any(|policy| policy.allows(attributes)) {
            true => Foresight::Allowed(Grant::default()),
            false => Foresight::NoOpinion,
        }
    }

    fn rules(&self, user: &User, namespace: &str) -> UserRules {
        let in_namespace = |policy: &&Policy| policy.namespace == "*" || policy.namespace == namespace;
        let policies = self.policies.iter().filter(|policy| policy.is_about(user)).filter(in_namespace);
        UserRules { rules: policies.flat_map(Policy::rules).collect(), ..UserRules::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r##"
# Who may do what.
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "alice", "namespace": "*", "resource": "*", "apiGroup": "*"}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"group": "readers", "readonly": true, "namespace": "a", "resource": "pods"}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "*", "nonResourcePath": "/api*"}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "eve", "group": "readers", "nonResourcePath": "/eve"}}
{"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"nonResourcePath": "*"}}
{"user": "old", "resource": "pods"}
"##;

    fn user(name: &str, groups: &[&str]) -> User {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        User { name: name.to_owned(), groups, ..User::default() }
    }

    #[test]
    fn a_policy_that_matches_allows() {
        let abac = Abac::parse(FILE).expect("policies");
        let (alice, reader) = (user("alice", &[]), user("r", &["readers"]));
        let (eve, old) = (user("eve", &["readers", AUTHENTICATED]), user("old", &[]));
        let pods = |user, verb, group, namespace| {
            let attributes = Attributes::of_path(user, verb, "/x");
            let attributes = Attributes { resource: "pods", group, namespace, ..attributes };
            matches!(abac.decide(&attributes), Answer::Now(Decision::Allow(_)))
        };
        assert!(pods(&alice, "delete", "apps", "a"));
        assert!(pods(&reader, "watch", "", "a") && !pods(&reader, "create", "", "a"));
        assert!(!pods(&reader, "get", "", "b") && !pods(&reader, "get", "apps", "a"));
        assert!(pods(&old, "create", "x", "b"));
        let path = |user, path| {
            let attributes = Attributes::of_path(user, "get", path);
            matches!(abac.decide(&attributes), Answer::Now(Decision::Allow(_)))
        };
        assert!(!path(&alice, "/metrics"), "a policy about resources is about no path");
        assert!(path(&eve, "/apis/x") && path(&eve, "/eve") && !path(&eve, "/metrics"));
        assert!(!path(&user("eve", &[]), "/eve"), "both user and group have to fit");
        let attributes = Attributes::of_path(&alice, "get", "/x");
        let Answer::Now(Decision::NoOpinion(reason)) = abac.decide(&attributes) else { panic!() };
        assert_eq!(reason.text(&attributes), "No policy matched.");
        let rules = abac.rules(&reader, "a").rules;
        assert_eq!(rules.len(), 1);
        assert_eq!(
            (&*rules[0].verbs, &*rules[0].resources),
            (&READING.map(str::to_owned)[..], &["pods".to_owned()][..])
        );
        assert!(abac.rules(&reader, "b").rules.is_empty());
    }

    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        let (line, text, why) = Abac::parse("# x\n{\"user\": ").expect_err("no JSON");
        assert_eq!((line, text), (2, "{\"user\": "));
        assert!(!why.is_empty());
    }
}
