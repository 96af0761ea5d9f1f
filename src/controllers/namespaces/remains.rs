//! The remains of a namespace, and the conditions that report them, in upstream's words.

use std::collections::BTreeMap;

use crate::api::error::Error;
use crate::api::{ObjectMap, fields};
use crate::codec::object::Object;
use crate::schema::names::GroupResource;
use crate::tree::{Value, json};

/// Type, reason and message of each condition if nothing is left.
const CONDITIONS: [[&str; 3]; 5] = [
    [DISCOVERY_FAILURE, "ResourcesDiscovered", "All resources successfully discovered"],
    [
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ],
    [CONTENT_FAILURE, "ContentDeleted", "All content successfully deleted, may be waiting on finalization"],
    [CONTENT_REMAINING, "ContentRemoved", "All content successfully removed"],
    [FINALIZERS_REMAINING, "ContentHasNoFinalizers", "All content-preserving finalizers finished"],
];
const DISCOVERY_FAILURE: &str = "NamespaceDeletionDiscoveryFailure";
const CONTENT_FAILURE: &str = "NamespaceDeletionContentFailure";
const CONTENT_REMAINING: &str = "NamespaceContentRemaining";
const FINALIZERS_REMAINING: &str = "NamespaceFinalizersRemaining";

#[derive(Default)]
pub struct Remains {
    /// Number of objects by `<resource>.<group>`.
    objects: BTreeMap<String, usize>,
    /// Number of objects by finalizer.
    finalizers: BTreeMap<String, usize>,
    failures: Vec<String>,
    /// The group versions of extension servers whose resources are not known.
    undiscovered: Vec<String>,
}

impl Remains {
    pub fn add(&mut self, resource: &GroupResource, object: &Object) {
        *self.objects.entry(format!("{}.{}", resource.plural, resource.group)).or_default() += 1;
        if object.json().is_ok() && !object.mentions("finalizers") {
            return;
        }
        let map = match object.to_map() {
            Ok(map) => map,
            Err(error) => return self.failures.push(error.to_string()),
        };
        for finalizer in fields::items(&map, &["metadata", "finalizers"]).iter().filter_map(Value::as_str) {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    /// Adds an object of an extension server.
    pub fn add_remote(&mut self, what: &str, finalizers: &[Value]) {
        *self.objects.entry(what.to_owned()).or_default() += 1;
        for finalizer in finalizers.iter().filter_map(Value::as_str) {
            *self.finalizers.entry(finalizer.to_owned()).or_default() += 1;
        }
    }

    /// Notes that the resources of a group version are not known.
    pub fn undiscovered(&mut self, version: &str) {
        self.undiscovered.push(version.to_owned());
    }

    /// Notes an error at an extension server.
    pub fn failed_with(&mut self, why: String) {
        self.failures.push(why);
    }

    /// Notes an error of a deletion.
    pub fn failed(&mut self, error: &Error) {
        self.failures.push(error.to_string());
    }

    /// Whether objects of a resource are left.
    pub fn holds(&self, resource: &GroupResource) -> bool {
        self.objects.contains_key(&format!("{}.{}", resource.plural, resource.group))
    }

    /// The number of objects.
    pub fn count(&self) -> usize {
        self.objects.values().sum()
    }

    /// Whether a deletion has failed, or an object could not be read.
    pub fn has_failed(&self) -> bool {
        !self.failures.is_empty() || !self.undiscovered.is_empty()
    }

    pub fn is_nothing(&self) -> bool {
        self.objects.is_empty() && !self.has_failed()
    }

    /// The conditions that the namespace should have; `None` if it has them already.
    pub fn conditions(&self, namespace: &ObjectMap, now: &str) -> Option<Vec<Value>> {
        let found = fields::items(namespace, &["status", "conditions"]);
        let mut conditions = found.to_vec();
        for [kind, reason, message] in CONDITIONS {
            let (status, reason, message) = match self.told(kind) {
                Some((reason, message)) => ("True", reason, message),
                None => ("False", reason, message.to_owned()),
            };
            let old = conditions.iter_mut().find(|condition| condition["type"] == kind);
            let since = match &old {
                Some(old) if old["status"] == status => old["lastTransitionTime"].clone(),
                _ => now.into(),
            };
            let new = json!({
                "type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message
            });
            match old {
                Some(old) => *old = new,
                None => conditions.push(new),
            }
        }
        (conditions != found).then_some(conditions)
    }

    fn told(&self, kind: &str) -> Option<(&'static str, String)> {
        let counted = |counts: &BTreeMap<String, usize>, verb: &str| {
            let each = counts.iter().map(|(what, count)| format!("{what} {verb} {count} resource instances"));
            each.collect::<Vec<_>>().join(", ")
        };
        match kind {
            DISCOVERY_FAILURE if !self.undiscovered.is_empty() => {
                let each = self.undiscovered.iter();
                let each = each.map(|version| format!("{version}: stale GroupVersion discovery: {version}"));
                let (count, all) = (self.undiscovered.len(), each.collect::<Vec<_>>().join(", "));
                let message = format!(
                    "Discovery failed for some groups, {count} failing: unable to retrieve the complete list of server APIs: {all}"
                );
                Some(("DiscoveryFailed", message))
            }
            CONTENT_FAILURE if !self.failures.is_empty() => {
                let (count, all) = (self.failures.len(), self.failures.join(", "));
                let message = format!("Failed to delete all resource types, {count} remaining: {all}");
                Some(("ContentDeletionFailed", message))
            }
            CONTENT_REMAINING if !self.objects.is_empty() => {
                let message = format!("Some resources are remaining: {}", counted(&self.objects, "has"));
                Some(("SomeResourcesRemain", message))
            }
            FINALIZERS_REMAINING if !self.finalizers.is_empty() => {
                let all = counted(&self.finalizers, "in");
                let message = format!("Some content in the namespace has finalizers remaining: {all}");
                Some(("SomeFinalizersRemain", message))
            }
            _ => None,
        }
    }
}
