//! Authorization: the attributes of a request, who decides, and the text of a refusal.

use crate::gotext::quote;
use crate::schema::names::GroupResource;
use crate::user::{MASTERS, User};

/// The attributes of a request. Outside the resource API, only `user`, `verb` and `path` are used, and `resource` is
/// empty.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    pub user: &'a User,
    /// A verb of the API; outside the resource API, the HTTP method in lower case.
    pub verb: &'a str,
    /// Empty for the core group.
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    /// Empty for the cluster scope.
    pub namespace: &'a str,
    pub name: &'a str,
    pub path: &'a str,
}

impl<'a> Attributes<'a> {
    /// A request outside the resource API, such as `/metrics`.
    pub fn of_path(user: &'a User, verb: &'a str, path: &'a str) -> Self {
        let (group, version, resource) = ("", "", "");
        Self { user, verb, group, version, resource, subresource: "", namespace: "", name: "", path }
    }

    /// The attributes for a namespace. A request for a Namespace object counts as made in that namespace, as in
    /// upstream's request info.
    pub fn within(self, namespace: &'a str) -> Self {
        let is_namespace = self.group.is_empty() && self.resource == "namespaces" && !self.name.is_empty();
        Self { namespace: if is_namespace { self.name } else { namespace }, ..self }
    }

    /// Upstream's `responsewriters.Forbidden`. `reason` comes from the authorizer and is often empty.
    pub fn forbidden(&self, reason: &str) -> Forbidden {
        let what = if self.resource.is_empty() { self.path_denial() } else { self.resource_denial() };
        let what = without_markup(&what);
        let reason = if reason.is_empty() { what } else { format!("{what}: {reason}") };
        if self.resource.is_empty() {
            return Forbidden::Path(format!("forbidden: {reason}"));
        }
        let resource = GroupResource::new(self.group, self.resource);
        Forbidden::Resource { resource, name: self.name.to_owned(), reason }
    }

    fn path_denial(&self) -> String {
        format!("User {} cannot {} path {}", quote(&self.user.name), self.verb, quote(self.path))
    }

    fn resource_denial(&self) -> String {
        let (user, group) = (quote(&self.user.name), quote(self.group));
        let resource = match self.subresource {
            "" => quote(self.resource),
            subresource => quote(&format!("{}/{subresource}", self.resource)),
        };
        let place = match self.namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {}", quote(namespace)),
        };
        format!("User {user} cannot {} resource {resource} in API group {group} {place}", self.verb)
    }
}

/// Escapes text, since upstream's errors never look like HTML to browsers that guess.
fn without_markup(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A request that an [`Authorizer`] has denied, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// `reason` follows `… is forbidden: `.
    #[error("{} is forbidden: {reason}", resource.named(name))]
    Resource { resource: GroupResource, name: String, reason: String },
    /// Outside the resource API, with the complete message.
    #[error("{0}")]
    Path(String),
}

/// The decision of an [`Authorizer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// `reason` is sent to the client, and may be empty.
    Deny {
        reason: String,
    },
}

/// Decides by what it has in memory: it is called for every request and must not wait.
pub trait Authorizer: Send + Sync {
    fn decide(&self, attributes: &Attributes<'_>) -> Decision;

    /// Like [`Self::decide`], with upstream's 403 as the error.
    fn authorize(&self, attributes: &Attributes<'_>) -> Result<(), Forbidden> {
        match self.decide(attributes) {
            Decision::Allow => Ok(()),
            Decision::Deny { reason } => Err(attributes.forbidden(&reason)),
        }
    }
}

/// Paths that everybody may read: upstream's `system:public-info-viewer`. Single checks such as `/readyz/ping` are not
/// among them, since they tell why they fail.
pub const PUBLIC_PATHS: [&str; 5] = ["/healthz", "/livez", "/readyz", "/version", "/version/"];

/// Whether everybody may read the path.
pub fn is_public_path(path: &str) -> bool {
    PUBLIC_PATHS.contains(&path)
}

/// Members of `system:masters` may do everything, all others read the public paths alone.
///
/// RBAC will be an authorizer that is asked if this one has not allowed the request.
#[derive(Clone, Copy, Debug, Default)]
pub struct MastersOnly;

impl Authorizer for MastersOnly {
    fn decide(&self, attributes: &Attributes<'_>) -> Decision {
        let is_public = attributes.resource.is_empty() && is_public_path(attributes.path);
        if is_public || attributes.user.is_in(MASTERS) {
            Decision::Allow
        } else {
            Decision::Deny { reason: String::new() }
        }
    }
}

/// Everybody may do everything; who shows no credential is let in to the public paths alone.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn decide(&self, _: &Attributes<'_>) -> Decision {
        Decision::Allow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, groups: &[&str]) -> User {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        User { name: name.to_owned(), groups, ..User::default() }
    }

    fn get_pod(user: &User) -> Attributes<'_> {
        Attributes {
            version: "v1",
            resource: "pods",
            namespace: "ns",
            name: "x",
            ..Attributes::of_path(user, "get", "/api/v1/namespaces/ns/pods/x")
        }
    }

    #[test]
    fn masters_may_and_others_may_not() {
        let admin = user("root", &[MASTERS]);
        assert_eq!(MastersOnly.authorize(&get_pod(&admin)), Ok(()));
        assert_eq!(MastersOnly.authorize(&Attributes::of_path(&admin, "get", "/metrics")), Ok(()));
        assert!(MastersOnly.authorize(&get_pod(&user("u", &["system:authenticated"]))).is_err());
    }

    #[test]
    fn everybody_reads_the_public_paths() {
        let nobody = User::anonymous();
        for (path, allowed) in [("/readyz", true), ("/version", true), ("/readyz/ping", false), ("/", false)]
        {
            let decision = MastersOnly.decide(&Attributes::of_path(&nobody, "get", path));
            assert_eq!(decision == Decision::Allow, allowed, "{path}");
        }
    }

    #[test]
    fn refusals_read_like_upstream() {
        let u = user("u", &[]);
        let texts = [
            (
                get_pod(&u),
                r#"pods "x" is forbidden: User "u" cannot get resource "pods" in API group "" in the namespace "ns""#,
            ),
            (
                Attributes { name: "", namespace: "", verb: "list", ..get_pod(&u) },
                r#"pods is forbidden: User "u" cannot list resource "pods" in API group "" at the cluster scope"#,
            ),
            (
                Attributes { group: "apps", resource: "deployments", subresource: "status", ..get_pod(&u) },
                r#"deployments.apps "x" is forbidden: User "u" cannot get resource "deployments/status" in API group "apps" in the namespace "ns""#,
            ),
            (Attributes::of_path(&u, "get", "/metrics"), r#"forbidden: User "u" cannot get path "/metrics""#),
        ];
        for (attributes, text) in texts {
            assert_eq!(MastersOnly.authorize(&attributes).unwrap_err().to_string(), text);
        }
    }

    #[test]
    fn hostile_names_are_escaped() {
        let mallory = user("<b>\"\n", &[]);
        assert_eq!(
            Attributes::of_path(&mallory, "get", "/x").forbidden("no").to_string(),
            r#"forbidden: User "&lt;b&gt;\"\n" cannot get path "/x": no"#
        );
    }
}
