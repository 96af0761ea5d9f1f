//! Labels that a kubelet may not set on its own Node: those by which workloads are steered.

use crate::{ObjectMap, fields};

/// The domain of labels that only administrators set.
const RESTRICTED: &str = "node-restriction.kubernetes.io";
const KUBERNETES: [&str; 2] = ["kubernetes.io", "k8s.io"];
/// The labels that kubelets may set.
const OF_KUBELETS: [&str; 11] = [
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];
const DOMAINS_OF_KUBELETS: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// The forbidden ones of the labels that differ, sorted; `None` if there are none.
pub(super) fn forbidden(new: &ObjectMap, old: Option<&ObjectMap>) -> Option<String> {
    let empty = ObjectMap::new();
    let labels = |object: Option<&ObjectMap>| {
        let labels = object.and_then(|object| fields::at(object, &["metadata", "labels"]));
        labels.and_then(|labels| labels.as_object()).cloned().unwrap_or_else(|| empty.clone())
    };
    let (new, old) = (labels(Some(new)), labels(old));
    let differ = new.keys().chain(old.keys()).filter(|key| new.get(key) != old.get(key));
    let mut wrong: Vec<&str> = differ.map(|key| key.as_str()).filter(|key| is_forbidden(key)).collect();
    wrong.sort_unstable();
    wrong.dedup();
    (!wrong.is_empty()).then(|| wrong.join(", "))
}

fn is_forbidden(label: &str) -> bool {
    let domain = label.split_once('/').map_or("", |(domain, _)| domain);
    let is_of_kubelets =
        OF_KUBELETS.contains(&label) || DOMAINS_OF_KUBELETS.iter().any(|known| is_below(domain, known));
    is_below(domain, RESTRICTED) || KUBERNETES.iter().any(|known| is_below(domain, known)) && !is_of_kubelets
}

fn is_below(domain: &str, above: &str) -> bool {
    domain.strip_suffix(above).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    #[test]
    fn labels_that_steer_are_forbidden() {
        for (label, wrong) in [
            ("kubernetes.io/hostname", false),
            ("topology.kubernetes.io/zone", false),
            ("a.node.kubernetes.io/x", false),
            ("kubelet.kubernetes.io/x", false),
            ("example.com/x", false),
            ("mykubernetes.io/x", false),
            ("plain", false),
            ("kubernetes.io/x", true),
            ("x.k8s.io/y", true),
            ("node-restriction.kubernetes.io/x", true),
            ("a.node-restriction.kubernetes.io/x", true),
            ("node-role.kubernetes.io/control-plane", true),
        ] {
            assert_eq!(is_forbidden(label), wrong, "{label}");
        }
        let node = |labels| json!({"metadata": {"labels": labels}});
        let (old, new) = (
            node(json!({"k8s.io/b": "1", "k8s.io/c": "1"})),
            node(json!({"k8s.io/a": "1", "k8s.io/c": "1"})),
        );
        let (old, new) = (old.as_object().expect("an object"), new.as_object().expect("an object"));
        assert_eq!(forbidden(new, Some(old)).as_deref(), Some("k8s.io/a, k8s.io/b"));
        assert_eq!(forbidden(new, Some(new)), None);
    }
}
