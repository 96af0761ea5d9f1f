//! The attributes of a request, by which authorizers decide, and upstream's text of a refusal.

use std::fmt::Debug;

use crate::gotext::quote;
use crate::schema::names::GroupResource;
use crate::user::User;

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
    pub selectors: &'a dyn Selectors,
}

/// The selectors of a list, watch or deletecollection as requirements that all have to be met. Few authorizers look at
/// them, so they are parsed when one does; a selector that cannot be parsed has no requirements.
pub trait Selectors: Debug + Send + Sync {
    fn fields(&self) -> Vec<Requirement>;
    fn labels(&self) -> Vec<Requirement>;
}

/// One requirement of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    pub key: String,
    pub operator: Operator,
    pub values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// The selectors of a request that has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSelectors;

impl Selectors for NoSelectors {
    fn fields(&self) -> Vec<Requirement> {
        Vec::new()
    }

    fn labels(&self) -> Vec<Requirement> {
        Vec::new()
    }
}

impl<'a> Attributes<'a> {
    /// A request outside the resource API, such as `/metrics`.
    pub fn of_path(user: &'a User, verb: &'a str, path: &'a str) -> Self {
        let (group, version, resource) = ("", "", "");
        let (subresource, namespace, name) = ("", "", "");
        let selectors = &NoSelectors;
        Self { user, verb, group, version, resource, subresource, namespace, name, path, selectors }
    }

    /// Whether the request is one of the resource API. A review may ask about a resource without a name.
    pub fn is_resource(&self) -> bool {
        !self.resource.is_empty() || self.path.is_empty()
    }

    /// Whether the field selector demands a value of a field, by `=`.
    pub fn selects_field(&self, key: &str, value: &str) -> bool {
        let demands =
            |one: &Requirement| one.key == key && one.operator == Operator::In && one.values == [value];
        self.selectors.fields().iter().any(demands)
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

/// A request that an [`Authorizer`](super::Authorizer) has denied, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Forbidden {
    /// `reason` follows `… is forbidden: `.
    #[error("{} is forbidden: {reason}", resource.named(name))]
    Resource { resource: GroupResource, name: String, reason: String },
    /// Outside the resource API, with the complete message.
    #[error("{0}")]
    Path(String),
}
