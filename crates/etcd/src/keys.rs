//! Keys of etcd and the objects that they stand for (docs/spec/etcd.md, section 7.1).

use std::collections::{HashMap, HashSet};

use rowplane_store::storage::transfer::StoredObject;

use crate::encryption::stored_key;
use crate::kinds::built_in;
use crate::schema::names::GroupResource;

/// kube-apiserver's default of `--etcd-prefix`.
pub const PREFIX: &str = "/registry";

/// The object that a key stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectKey {
    pub resource: GroupResource,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    pub name: String,
}

/// The keys of the built-in resources, and the rule for those of custom resources.
pub struct KeyMap {
    /// The keys' beginning, without a slash at its end.
    prefix: String,
    /// By what follows the prefix, such as `services/specs`: the resource and whether it has namespaces.
    built_in: HashMap<String, (GroupResource, bool)>,
    resources: HashSet<GroupResource>,
}

impl KeyMap {
    /// The keys of a kube-apiserver with this `--etcd-prefix`.
    pub fn new(prefix: &str) -> Self {
        let mut built_in = HashMap::new();
        for definition in built_in::definitions() {
            let resource = definition.group_resource();
            let key = stored_key(&resource, true, "", "");
            let key = key.trim_start_matches(PREFIX).trim_matches('/').to_owned();
            // Events of both groups are the same objects, of the core group in the store.
            let is_core = resource.group.is_empty();
            if is_core || !built_in.contains_key(&key) {
                built_in.insert(key, (resource, definition.namespaced()));
            }
        }
        let resources = built_in.values().map(|(resource, _)| resource.clone()).collect();
        Self { prefix: format!("/{}", prefix.trim_matches('/')), built_in, resources }
    }

    /// The beginning of all keys, with a slash at its end.
    pub fn prefix(&self) -> String {
        format!("{}/", self.prefix)
    }

    /// The key of an object.
    pub fn key(&self, object: &StoredObject) -> String {
        let is_built_in = self.resources.contains(&object.resource);
        let key = stored_key(&object.resource, is_built_in, &object.namespace, &object.name);
        format!("{}{}", self.prefix, key.trim_start_matches(PREFIX))
    }

    /// The object of a key. Keys that stand for none have the text by which they are counted.
    pub fn object(&self, key: &[u8]) -> Result<ObjectKey, String> {
        let other = || Err(String::from_utf8_lossy(key).into_owned());
        let text = std::str::from_utf8(key).ok().filter(|key| !key.contains('\0'));
        let Some(path) = text.and_then(|key| key.strip_prefix(&*self.prefix)?.strip_prefix('/')) else {
            return other();
        };
        let segments: Vec<&str> = path.split('/').collect();
        if segments.iter().any(|segment| segment.is_empty()) {
            return other();
        }
        for length in [2, 1] {
            let Some((head, rest)) = segments.split_at_checked(length) else { continue };
            if let Some((resource, namespaced)) = self.built_in.get(&head.join("/")) {
                return named(resource.clone(), rest, Some(*namespaced)).ok_or_else(|| self.group(head));
            }
        }
        match &*segments {
            [group, plural, rest @ ..] if group.contains('.') => {
                let resource = GroupResource::new(group, plural);
                named(resource, rest, None).ok_or_else(|| self.group(&[*group, *plural]))
            }
            [first, _, ..] => Err(self.group(&[*first])),
            _ => other(),
        }
    }

    /// The text for all keys below these segments.
    fn group(&self, segments: &[&str]) -> String {
        format!("{}/{}/", self.prefix, segments.join("/"))
    }
}

/// The object of the last segments of its key, of which there are two if the resource has namespaces.
fn named(resource: GroupResource, rest: &[&str], namespaced: Option<bool>) -> Option<ObjectKey> {
    let (namespace, name) = match rest {
        [name] if namespaced != Some(true) => ("", name),
        [namespace, name] if namespaced != Some(false) => (*namespace, name),
        _ => return None,
    };
    Some(ObjectKey { resource, namespace: namespace.to_owned(), name: (*name).to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(key: &str) -> Result<(String, String, String), String> {
        let object = KeyMap::new(PREFIX).object(key.as_bytes())?;
        Ok((object.resource.to_string(), object.namespace, object.name))
    }

    #[test]
    fn keys_of_objects() {
        let object = |key: &str, resource: &str, namespace: &str, name: &str| {
            assert_eq!(found(key), Ok((resource.to_owned(), namespace.to_owned(), name.to_owned())));
        };
        object("/registry/pods/ns/a", "pods", "ns", "a");
        object("/registry/services/specs/ns/a", "services", "ns", "a");
        object("/registry/services/endpoints/ns/a", "endpoints", "ns", "a");
        object("/registry/minions/n", "nodes", "", "n");
        object("/registry/controllers/ns/a", "replicationcontrollers", "ns", "a");
        object("/registry/ingress/ns/a", "ingresses.networking.k8s.io", "ns", "a");
        object("/registry/deployments/ns/a", "deployments.apps", "ns", "a");
        object("/registry/events/ns/a", "events", "ns", "a");
        object(
            "/registry/clusterroles/system:node",
            "clusterroles.rbac.authorization.k8s.io",
            "",
            "system:node",
        );
        object("/registry/leases/ns/a", "leases.coordination.k8s.io", "ns", "a");
        object(
            "/registry/apiregistration.k8s.io/apiservices/v1.",
            "apiservices.apiregistration.k8s.io",
            "",
            "v1.",
        );
        let definitions = "customresourcedefinitions.apiextensions.k8s.io";
        object(
            "/registry/apiextensions.k8s.io/customresourcedefinitions/a.ex.io",
            definitions,
            "",
            "a.ex.io",
        );
        object("/registry/ex.io/widgets/ns/a", "widgets.ex.io", "ns", "a");
        object("/registry/ex.io/widgets/a", "widgets.ex.io", "", "a");
    }

    #[test]
    fn keys_that_stand_for_no_object() {
        let other = |key: &str, counted: &str| assert_eq!(found(key), Err(counted.to_owned()));
        other("/registry/masterleases/10.0.0.1", "/registry/masterleases/");
        other("/registry/ranges/servicenodeports", "/registry/ranges/");
        other("/registry/pods/a", "/registry/pods/");
        other("/registry/minions/ns/a", "/registry/minions/");
        other("/registry/ex.io/widgets/cluster/ns/a", "/registry/ex.io/widgets/");
        other("/registry/health", "/registry/health");
        other("compact_rev_key", "compact_rev_key");
        other("/registry/pods//a", "/registry/pods//a");
        other("/registryless/pods/ns/a", "/registryless/pods/ns/a");
        assert_eq!(
            KeyMap::new(PREFIX).object(b"/registry/pods/ns/\xff"),
            Err("/registry/pods/ns/\u{fffd}".into())
        );
    }

    #[test]
    fn another_prefix() {
        for prefix in ["/k/v", "k/v/", "/k/v/"] {
            let object = KeyMap::new(prefix).object(b"/k/v/pods/ns/a").expect(prefix);
            assert_eq!(object.resource, GroupResource::new("", "pods"));
        }
    }
}
