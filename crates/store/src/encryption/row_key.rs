//! The key that upstream's etcd would have for a row. It is authenticated with the row's value, so that a value which is
//! copied to another row cannot be opened there.

use crate::schema::names::GroupResource;

/// Upstream's `--etcd-prefix`.
const ROOT: &str = "/registry/";
/// Built-in groups whose resources are stored under their group, like custom resources.
const UNDER_GROUP: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// A resource as the store has it.
pub struct StoredResource {
    name: GroupResource,
    /// In metrics.
    label: String,
    /// The key of its rows, up to namespace and name.
    prefix: String,
}

impl StoredResource {
    pub fn new(name: &GroupResource, is_built_in: bool) -> Self {
        let GroupResource { group, plural } = name;
        let prefix = match (group.as_str(), plural.as_str()) {
            ("", "replicationcontrollers") => format!("{ROOT}controllers/"),
            ("", "endpoints") => format!("{ROOT}services/endpoints/"),
            ("", "nodes") => format!("{ROOT}minions/"),
            ("", "services") => format!("{ROOT}services/specs/"),
            ("networking.k8s.io", "ingresses") => format!("{ROOT}ingress/"),
            (group, plural) if is_built_in && !UNDER_GROUP.contains(&group) => format!("{ROOT}{plural}/"),
            (group, plural) => format!("{ROOT}{group}/{plural}/"),
        };
        Self { name: name.clone(), label: name.to_string(), prefix }
    }

    pub fn name(&self) -> &GroupResource {
        &self.name
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    /// The key of one row.
    pub fn key(&self, namespace: &str, name: &str) -> String {
        match namespace {
            "" => format!("{}{name}", self.prefix),
            namespace => format!("{}{namespace}/{name}", self.prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_upstreams_etcd() {
        let key = |group, plural, is_built_in, namespace| {
            StoredResource::new(&GroupResource::new(group, plural), is_built_in).key(namespace, "a")
        };
        assert_eq!(key("", "secrets", true, "ns"), "/registry/secrets/ns/a");
        assert_eq!(key("", "nodes", true, ""), "/registry/minions/a");
        assert_eq!(key("", "services", true, "ns"), "/registry/services/specs/ns/a");
        assert_eq!(key("apps", "deployments", true, "ns"), "/registry/deployments/ns/a");
        assert_eq!(key("networking.k8s.io", "ingresses", true, "ns"), "/registry/ingress/ns/a");
        assert_eq!(
            key("apiextensions.k8s.io", "customresourcedefinitions", true, ""),
            "/registry/apiextensions.k8s.io/customresourcedefinitions/a"
        );
        assert_eq!(key("ex.io", "widgets", false, "ns"), "/registry/ex.io/widgets/ns/a");
    }
}
