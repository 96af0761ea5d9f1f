//! The compound names of the protocol: group + version + kind or plural.

use std::fmt;
use std::sync::Arc;

/// A group-qualified plural such as `pods` or `deployments.apps`, as it stands in error messages.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupResource {
    /// Empty for the core group.
    pub group: Arc<str>,
    pub plural: Arc<str>,
}

impl GroupResource {
    pub fn new(group: &str, plural: &str) -> Self {
        Self { group: group.into(), plural: plural.into() }
    }

    /// As errors about one object name it; the resource alone where the object has no name.
    pub fn named(&self, name: &str) -> String {
        if name.is_empty() { self.to_string() } else { format!("{self} \"{name}\"") }
    }
}

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        qualified(f, &self.plural, &self.group)
    }
}

/// A group-qualified kind such as `Pod` or `Deployment.apps`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GroupKind {
    /// Empty for the core group.
    pub group: Arc<str>,
    pub kind: Arc<str>,
}

impl GroupKind {
    pub fn new(group: &str, kind: &str) -> Self {
        Self { group: group.into(), kind: kind.into() }
    }
}

impl fmt::Display for GroupKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        qualified(f, &self.kind, &self.group)
    }
}

fn qualified(f: &mut fmt::Formatter<'_>, name: &str, group: &str) -> fmt::Result {
    if group.is_empty() { f.write_str(name) } else { write!(f, "{name}.{group}") }
}

/// `v1` or `apps/v1`: what an object's `apiVersion` says.
pub fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The Go package of upstream's own types of a group, as error messages show it.
pub fn internal_package(group: &str) -> &str {
    match group {
        "" | "events.k8s.io" => "core",
        "internal.apiserver.k8s.io" => "apiserverinternal",
        group => group.split('.').next().unwrap_or(group),
    }
}
