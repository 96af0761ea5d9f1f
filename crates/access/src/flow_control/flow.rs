//! FlowSchemas as they are asked: which requests a flow has, and what tells its flows apart.

use std::sync::Arc;

use crate::auth::authorizer::Attributes;
use crate::fields;
use crate::tree::{Map, Value};
use crate::user::User;

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// A FlowSchema.
#[derive(Debug)]
pub struct Flow {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    /// The priority level that it refers to.
    pub level: String,
    pub precedence: i64,
    pub distinguisher: Distinguisher,
    rules: Vec<Rule>,
}

/// The attribute that tells requests of one FlowSchema apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distinguisher {
    None,
    User,
    Namespace,
}

#[derive(Debug)]
struct Rule {
    subjects: Vec<Subject>,
    resources: Vec<ResourceRule>,
    paths: Vec<PathRule>,
}

#[derive(Debug)]
enum Subject {
    /// `*` is everybody.
    User(String),
    /// `*` is everybody.
    Group(String),
    /// The name `*` is every account of the namespace.
    ServiceAccount { namespace: String, name: String },
}

#[derive(Debug)]
struct ResourceRule {
    verbs: Names,
    groups: Names,
    resources: Names,
    namespaces: Names,
    cluster_scope: bool,
}

#[derive(Debug)]
struct PathRule {
    verbs: Names,
    paths: Vec<String>,
}

/// A list of names, or all names.
#[derive(Debug)]
enum Names {
    All,
    These(Vec<String>),
}

impl Flow {
    /// Reads a stored FlowSchema, which validation has seen.
    pub fn read(object: &Map) -> Self {
        let rules = fields::items(object, &["spec", "rules"]).iter().filter_map(Value::as_object);
        let distinguisher = match fields::text(object, &["spec", "distinguisherMethod", "type"]) {
            "ByUser" => Distinguisher::User,
            "ByNamespace" => Distinguisher::Namespace,
            _ => Distinguisher::None,
        };
        Self {
            name: fields::text(object, &["metadata", "name"]).into(),
            uid: fields::text(object, &["metadata", "uid"]).into(),
            level: fields::text(object, &["spec", "priorityLevelConfiguration", "name"]).to_owned(),
            precedence: fields::at(object, &["spec", "matchingPrecedence"])
                .and_then(Value::as_i64)
                .unwrap_or_default(),
            distinguisher,
            rules: rules.map(Rule::read).collect(),
        }
    }

    pub fn matches(&self, request: &Attributes<'_>) -> bool {
        self.rules.iter().any(|rule| rule.matches(request))
    }

    /// The value that tells the request's flow apart from others of the FlowSchema.
    pub fn distinguished_by<'a>(&self, request: &Attributes<'a>) -> &'a str {
        match self.distinguisher {
            Distinguisher::None => "",
            Distinguisher::User => &request.user.name,
            Distinguisher::Namespace => request.namespace,
        }
    }
}

impl Rule {
    fn read(rule: &Map) -> Self {
        let objects = |name: &str| fields::items(rule, &[name]).iter().filter_map(Value::as_object);
        Self {
            subjects: objects("subjects").filter_map(Subject::read).collect(),
            resources: objects("resourceRules").map(ResourceRule::read).collect(),
            paths: objects("nonResourceRules").map(PathRule::read).collect(),
        }
    }

    fn matches(&self, request: &Attributes<'_>) -> bool {
        // Some rules are about paths alone or resources alone, which is seen sooner than who asks.
        let (is_path, subjects) = (request.resource.is_empty(), &self.subjects);
        let is_about = if is_path { !self.paths.is_empty() } else { !self.resources.is_empty() };
        is_about
            && subjects.iter().any(|subject| subject.matches(request.user))
            && match is_path {
                true => self.paths.iter().any(|rule| rule.matches(request)),
                false => self.resources.iter().any(|rule| rule.matches(request)),
            }
    }
}

impl Subject {
    fn read(subject: &Map) -> Option<Self> {
        let text = |member: &str, field: &str| fields::text(subject, &[member, field]).to_owned();
        match fields::text(subject, &["kind"]) {
            "User" => Some(Self::User(text("user", "name"))),
            "Group" => Some(Self::Group(text("group", "name"))),
            "ServiceAccount" => Some(Self::ServiceAccount {
                namespace: text("serviceAccount", "namespace"),
                name: text("serviceAccount", "name"),
            }),
            _ => None,
        }
    }

    fn matches(&self, user: &User) -> bool {
        match self {
            Self::User(name) => name == "*" || *name == user.name,
            Self::Group(name) => name == "*" || user.is_in(name),
            Self::ServiceAccount { namespace, name } => {
                let account = user.name.strip_prefix(SERVICE_ACCOUNT);
                let account =
                    account.and_then(|rest| rest.strip_prefix(namespace.as_str())?.strip_prefix(':'));
                account.is_some_and(|account| name == "*" || account == name)
            }
        }
    }
}

impl ResourceRule {
    fn read(rule: &Map) -> Self {
        let names = |field: &str| Names::read(rule, field);
        Self {
            verbs: names("verbs"),
            groups: names("apiGroups"),
            resources: names("resources"),
            namespaces: names("namespaces"),
            cluster_scope: fields::at(rule, &["clusterScope"]).and_then(Value::as_bool).unwrap_or_default(),
        }
    }

    fn matches(&self, request: &Attributes<'_>) -> bool {
        self.verbs.have(request.verb)
            && self.resources.have_resource(request.resource, request.subresource)
            && self.groups.have(request.group)
            && match request.namespace {
                "" => self.cluster_scope,
                namespace => self.namespaces.have(namespace),
            }
    }
}

impl PathRule {
    fn read(rule: &Map) -> Self {
        let paths = fields::items(rule, &["nonResourceURLs"]).iter().filter_map(Value::as_str);
        Self { verbs: Names::read(rule, "verbs"), paths: paths.map(str::to_owned).collect() }
    }

    fn matches(&self, request: &Attributes<'_>) -> bool {
        self.verbs.have(request.verb) && self.paths.iter().any(|rule| path_matches(rule, request.path))
    }
}

/// Whether `*`, an exact path, or a prefix that ends at a slash covers a path.
fn path_matches(rule: &str, path: &str) -> bool {
    if rule == "*" || rule == path {
        return true;
    }
    let prefix = rule.strip_suffix('*').unwrap_or(rule);
    match path.strip_prefix(prefix) {
        Some(rest) => prefix.ends_with('/') || rest.starts_with('/'),
        None => false,
    }
}

impl Names {
    fn read(rule: &Map, field: &str) -> Self {
        let names: Vec<String> =
            fields::items(rule, &[field]).iter().filter_map(Value::as_str).map(str::to_owned).collect();
        if names == ["*"] { Self::All } else { Self::These(names) }
    }

    fn have(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.iter().any(|own| own == name),
        }
    }

    fn have_resource(&self, resource: &str, subresource: &str) -> bool {
        let Self::These(names) = self else { return true };
        if subresource.is_empty() {
            return names.iter().any(|own| own == resource);
        }
        names.iter().any(|own| own.split_once('/') == Some((resource, subresource)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    fn flow(rule: Value) -> Flow {
        let object = json!({"metadata": {"name": "f"}, "spec": {"rules": [rule]}});
        let Value::Object(object) = object else { unreachable!("an object") };
        Flow::read(&object)
    }

    fn user(name: &str, groups: &[&str]) -> User {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        User { name: name.to_owned(), groups, ..User::default() }
    }

    #[test]
    fn subjects() {
        let accounts = |namespace: &str, name: &str| json!({"kind": "ServiceAccount", "serviceAccount": {"namespace": namespace, "name": name}});
        for (subject, who, want) in [
            (json!({"kind": "User", "user": {"name": "u"}}), user("u", &[]), true),
            (json!({"kind": "User", "user": {"name": "u"}}), user("v", &["u"]), false),
            (json!({"kind": "User", "user": {"name": "*"}}), user("v", &[]), true),
            (json!({"kind": "Group", "group": {"name": "g"}}), user("u", &["f", "g"]), true),
            (json!({"kind": "Group", "group": {"name": "*"}}), user("u", &[]), true),
            (accounts("n", "a"), user("system:serviceaccount:n:a", &[]), true),
            (accounts("n", "a"), user("system:serviceaccount:n:ab", &[]), false),
            (accounts("n", "*"), user("system:serviceaccount:n:ab", &[]), true),
            (accounts("n", "*"), user("system:serviceaccount:nn:ab", &[]), false),
        ] {
            let flow = flow(json!({
                "subjects": [subject],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
            }));
            assert_eq!(flow.matches(&Attributes::of_path(&who, "get", "/x")), want, "{flow:?} {who:?}");
        }
    }

    #[test]
    fn paths() {
        let who = user("u", &[]);
        for (rule, path, want) in [
            ("/a/*", "/a/b", true),
            ("/a/*", "/a", false),
            ("/a", "/a/b", true),
            ("/a", "/ab", false),
            ("/a", "/a", true),
            ("*", "/x", true),
        ] {
            let flow = flow(json!({
                "subjects": [{"kind": "User", "user": {"name": "*"}}],
                "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": [rule]}]
            }));
            assert_eq!(flow.matches(&Attributes::of_path(&who, "get", path)), want, "{rule} {path}");
            assert!(!flow.matches(&Attributes::of_path(&who, "post", path)));
        }
    }

    #[test]
    fn resources() {
        let who = user("u", &[]);
        let request = Attributes {
            group: "apps",
            resource: "deployments",
            subresource: "status",
            namespace: "n",
            ..Attributes::of_path(&who, "get", "")
        };
        let cluster = Attributes { namespace: "", ..request };
        for (resources, namespaces, scope, want) in [
            (json!(["deployments/status"]), json!(["n"]), false, (true, false)),
            (json!(["deployments"]), json!(["*"]), true, (false, false)),
            (json!(["*"]), json!(["*"]), false, (true, false)),
            (json!(["*"]), json!(["m"]), true, (false, true)),
        ] {
            let flow = flow(json!({
                "subjects": [{"kind": "User", "user": {"name": "*"}}],
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["apps"], "resources": resources,
                    "namespaces": namespaces, "clusterScope": scope}]
            }));
            assert_eq!((flow.matches(&request), flow.matches(&cluster)), want, "{flow:?}");
        }
    }
}
