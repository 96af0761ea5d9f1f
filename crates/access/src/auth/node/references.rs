//! The references of a Pod or a volume to other objects (`pkg/api/v1/pod`, `pkg/api/v1/persistentvolume`).

use crate::fields::{self, objects};
use crate::tree::{Map, Value};

/// The sort of an object that a Pod refers to by its name, in its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    Secret,
    ConfigMap,
    /// A PersistentVolumeClaim.
    Claim,
    ResourceClaim,
    Account,
}

/// Everything that a Pod refers to, sorted, each once. A mirror Pod, which its node writes itself, gives no access to
/// anything.
pub fn of_pod(pod: &Map) -> Box<[(Sort, Box<str>)]> {
    match fields::at(pod, &["metadata", "annotations", "kubernetes.io/config.mirror"]) {
        None => references_of(pod),
        Some(_) => Box::default(),
    }
}

/// Everything that a Pod refers to, whoever has written it.
pub fn references_of(pod: &Map) -> Box<[(Sort, Box<str>)]> {
    let mut found = References::default();
    found.add_pod(pod);
    let mut found = found.0;
    found.sort_unstable();
    found.dedup();
    found.into()
}

#[derive(Default)]
struct References(Vec<(Sort, Box<str>)>);

impl References {
    fn add(&mut self, sort: Sort, name: Option<&Value>) {
        let name = name.and_then(Value::as_str).filter(|name| !name.is_empty());
        self.0.extend(name.map(|name| (sort, name.into())));
    }

    /// Adds the name at a path.
    fn add_at(&mut self, sort: Sort, object: &Map, path: &[&str]) {
        self.add(sort, fields::at(object, path));
    }

    fn add_pod(&mut self, pod: &Map) {
        self.add_at(Sort::Account, pod, &["spec", "serviceAccountName"]);
        for secret in objects(pod, &["spec", "imagePullSecrets"]) {
            self.add_at(Sort::Secret, secret, &["name"]);
        }
        for list in ["initContainers", "containers", "ephemeralContainers"] {
            objects(pod, &["spec", list]).for_each(|container| self.add_container(container));
        }
        let name = fields::text(pod, &["metadata", "name"]);
        objects(pod, &["spec", "volumes"]).for_each(|volume| self.add_volume(volume, name));
        objects(pod, &["spec", "resourceClaims"]).for_each(|claim| self.add_resource_claim(claim, pod));
        self.add_at(
            Sort::ResourceClaim,
            pod,
            &["status", "extendedResourceClaimStatus", "resourceClaimName"],
        );
    }

    fn add_container(&mut self, container: &Map) {
        for source in objects(container, &["envFrom"]) {
            self.add_at(Sort::Secret, source, &["secretRef", "name"]);
            self.add_at(Sort::ConfigMap, source, &["configMapRef", "name"]);
        }
        for variable in objects(container, &["env"]) {
            self.add_at(Sort::Secret, variable, &["valueFrom", "secretKeyRef", "name"]);
            self.add_at(Sort::ConfigMap, variable, &["valueFrom", "configMapKeyRef", "name"]);
        }
    }

    fn add_volume(&mut self, volume: &Map, pod: &str) {
        const SECRETS: [&[&str]; 10] = [
            &["azureFile", "secretName"],
            &["cephfs", "secretRef", "name"],
            &["cinder", "secretRef", "name"],
            &["flexVolume", "secretRef", "name"],
            &["rbd", "secretRef", "name"],
            &["secret", "secretName"],
            &["scaleIO", "secretRef", "name"],
            &["iscsi", "secretRef", "name"],
            &["storageos", "secretRef", "name"],
            &["csi", "nodePublishSecretRef", "name"],
        ];
        for path in SECRETS {
            self.add_at(Sort::Secret, volume, path);
        }
        self.add_at(Sort::ConfigMap, volume, &["configMap", "name"]);
        for source in objects(volume, &["projected", "sources"]) {
            self.add_at(Sort::Secret, source, &["secret", "name"]);
            self.add_at(Sort::ConfigMap, source, &["configMap", "name"]);
        }
        self.add_at(Sort::Claim, volume, &["persistentVolumeClaim", "claimName"]);
        if fields::object(volume, "ephemeral").is_some() {
            let claim = format!("{pod}-{}", fields::text(volume, &["name"]));
            self.0.push((Sort::Claim, claim.into()));
        }
    }

    /// A claim that is made from a template has the name that the status tells.
    fn add_resource_claim(&mut self, claim: &Map, pod: &Map) {
        if claim.get("resourceClaimName").is_some() {
            return self.add_at(Sort::ResourceClaim, claim, &["resourceClaimName"]);
        }
        let name = fields::text(claim, &["name"]);
        let mut statuses = objects(pod, &["status", "resourceClaimStatuses"]);
        if let Some(status) = statuses.find(|status| fields::text(status, &["name"]) == name) {
            self.add_at(Sort::ResourceClaim, status, &["resourceClaimName"]);
        }
    }
}

/// The Secrets that a kubelet needs for a volume, with their namespaces.
pub fn secrets_of_volume(volume: &Map) -> Vec<(&str, &str)> {
    let Some(spec) = fields::object(volume, "spec") else { return Vec::new() };
    let claim_namespace = fields::text(spec, &["claimRef", "namespace"]);
    let text = |path: &[&str]| fields::text(spec, path);
    let or_claims = |path: &[&str]| Some(text(path)).filter(|own| !own.is_empty()).unwrap_or(claim_namespace);
    let mut secrets = Vec::new();
    if fields::object(spec, "azureFile").is_some() {
        let namespace = or_claims(&["azureFile", "secretNamespace"]);
        secrets.push((namespace, text(&["azureFile", "secretName"])));
    }
    for source in ["cephfs", "flexVolume", "rbd", "scaleIO", "iscsi"] {
        let namespace = or_claims(&[source, "secretRef", "namespace"]);
        secrets.push((namespace, text(&[source, "secretRef", "name"])));
    }
    for source in ["cinder", "storageos"] {
        secrets.push((text(&[source, "secretRef", "namespace"]), text(&[source, "secretRef", "name"])));
    }
    for secret in ["nodePublishSecretRef", "nodeStageSecretRef", "nodeExpandSecretRef"] {
        secrets.push((text(&["csi", secret, "namespace"]), text(&["csi", secret, "name"])));
    }
    secrets.retain(|(_, name)| !name.is_empty());
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    #[test]
    fn auth_66_what_a_pod_refers_to() {
        let pod = json!({
            "metadata": {"name": "p"},
            "spec": {
                "serviceAccountName": "a", "imagePullSecrets": [{"name": "s1"}, {}],
                "initContainers": [{"envFrom": [{"secretRef": {"name": "s2"}}, {"configMapRef": {"name": "c1"}}]}],
                "containers": [{"env": [{"valueFrom": {"secretKeyRef": {"name": "s1"}}},
                    {"valueFrom": {"configMapKeyRef": {"name": "c2"}}}]}],
                "volumes": [{"name": "v", "ephemeral": {}}, {"persistentVolumeClaim": {"claimName": "d"}},
                    {"projected": {"sources": [{"secret": {"name": "s3"}}, {"configMap": {"name": "c3"}}]}},
                    {"csi": {"nodePublishSecretRef": {"name": "s4"}}}],
                "resourceClaims": [{"name": "x", "resourceClaimName": "r1"},
                    {"name": "y", "resourceClaimTemplateName": "t"}]
            },
            "status": {"resourceClaimStatuses": [{"name": "y", "resourceClaimName": "r2"}],
                "extendedResourceClaimStatus": {"resourceClaimName": "r3"}}
        });
        let mut mirror = pod.clone();
        let names = |sort: Sort, pod: &Value| -> Vec<String> {
            let found = of_pod(pod.as_object().expect("a Pod"));
            found.iter().filter(|(own, _)| *own == sort).map(|(_, name)| name.to_string()).collect()
        };
        assert_eq!(names(Sort::Secret, &pod), ["s1", "s2", "s3", "s4"]);
        assert_eq!(names(Sort::ConfigMap, &pod), ["c1", "c2", "c3"]);
        assert_eq!(names(Sort::Claim, &pod), ["d", "p-v"]);
        assert_eq!(names(Sort::ResourceClaim, &pod), ["r1", "r2", "r3"]);
        assert_eq!(names(Sort::Account, &pod), ["a"]);
        mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": ""});
        assert!(names(Sort::Secret, &mirror).is_empty());
    }

    #[test]
    fn auth_66_secrets_that_a_kubelet_needs_for_a_volume() {
        let secrets = |spec: Value| {
            let volume = json!({"spec": spec});
            let found = secrets_of_volume(volume.as_object().expect("a volume"));
            found.iter().map(|(namespace, name)| format!("{namespace}/{name}")).collect::<Vec<_>>()
        };
        let claim = json!({"namespace": "n", "name": "c"});
        assert_eq!(secrets(json!({"claimRef": claim, "azureFile": {"secretName": "s"}})), ["n/s"]);
        assert_eq!(
            secrets(json!({"claimRef": claim, "rbd": {"secretRef": {"name": "s", "namespace": "m"}}})),
            ["m/s"]
        );
        let csi = json!({"nodeStageSecretRef": {"name": "s", "namespace": "m"}, "controllerPublishSecretRef": {"name": "x", "namespace": "m"}});
        assert_eq!(secrets(json!({"csi": csi})), ["m/s"]);
    }
}
