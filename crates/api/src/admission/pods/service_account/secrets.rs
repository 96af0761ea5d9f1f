//! The Secrets that a Pod names, and whether its account may use them.

use crate::ObjectMap;
use crate::fields::{self, objects};
use crate::tree::Value;

/// The paths at which a volume names its Secret.
const VOLUMES: [&[&str]; 10] = [
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

/// Whether a Pod names a Secret anywhere.
pub fn names_any(pod: &ObjectMap) -> bool {
    let is_name = |value: Option<&Value>| value.and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    let of_volume = |volume: &ObjectMap| {
        let mut sources = objects(volume, &["projected", "sources"]);
        VOLUMES.iter().any(|path| is_name(fields::at(volume, path)))
            || sources.any(|source| is_name(fields::at(source, &["secret", "name"])))
    };
    let of_container = |container: &ObjectMap| {
        objects(container, &["envFrom"]).any(|source| is_name(fields::at(source, &["secretRef", "name"])))
            || objects(container, &["env"])
                .any(|variable| is_name(fields::at(variable, &["valueFrom", "secretKeyRef", "name"])))
    };
    let mut lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
    objects(pod, &["spec", "imagePullSecrets"]).any(|secret| is_name(secret.get("name")))
        || lists.any(|list| objects(pod, &["spec", list]).any(of_container))
        || objects(pod, &["spec", "volumes"]).any(of_volume)
}

/// Refuses a new Pod that names a Secret which its account does not list.
pub fn check_pod(account: &ObjectMap, pod: &ObjectMap) -> Result<(), String> {
    let listed = Listed { account, list: "secrets" };
    for volume in objects(pod, &["spec", "volumes"]) {
        if let Some(secret) = fields::object(volume, "secret") {
            let name = fields::text(secret, &["secretName"]);
            listed.check(name, || format!("volume with secret.secretName=\"{name}\""))?;
        }
    }
    listed.check_containers(pod, "initContainers", "init container")?;
    listed.check_containers(pod, "containers", "container")?;
    let pull = Listed { account, list: "imagePullSecrets" };
    for (index, secret) in objects(pod, &["spec", "imagePullSecrets"]).enumerate() {
        let name = fields::text(secret, &["name"]);
        pull.check(name, || format!("imagePullSecrets[{index}].name=\"{name}\""))?;
    }
    Ok(())
}

/// Refuses ephemeral containers that name a Secret which the Pod's account does not list.
pub fn check_ephemeral(account: &ObjectMap, pod: &ObjectMap) -> Result<(), String> {
    let listed = Listed { account, list: "secrets" };
    listed.check_containers(pod, "ephemeralContainers", "ephemeral container")
}

/// One of the two lists of an account.
struct Listed<'a> {
    account: &'a ObjectMap,
    list: &'static str,
}

impl Listed<'_> {
    fn check(&self, secret: &str, what: impl Fn() -> String) -> Result<(), String> {
        let mut listed = objects(self.account, &[self.list]);
        if listed.any(|own| fields::text(own, &["name"]) == secret) {
            return Ok(());
        }
        let account = fields::text(self.account, &["metadata", "name"]);
        let kind = if self.list == "secrets" { "secret" } else { "imagePullSecret" };
        let what = what();
        Err(format!("{what} is not allowed because service account {account} does not reference that {kind}"))
    }

    fn check_containers(&self, pod: &ObjectMap, list: &str, what: &str) -> Result<(), String> {
        for container in objects(pod, &["spec", list]) {
            let owner = fields::text(container, &["name"]);
            for variable in objects(container, &["env"]) {
                if let Some(Value::Object(key)) = fields::at(variable, &["valueFrom", "secretKeyRef"]) {
                    let (name, secret) = (fields::text(variable, &["name"]), fields::text(key, &["name"]));
                    self.check(secret, || {
                        format!(
                            "{what} {owner} with envVar {name} referencing secret.secretName=\"{secret}\""
                        )
                    })?;
                }
            }
            for source in objects(container, &["envFrom"]) {
                if let Some(source) = fields::object(source, "secretRef") {
                    let secret = fields::text(source, &["name"]);
                    self.check(secret, || {
                        format!("{what} {owner} with envFrom referencing secret.secretName=\"{secret}\"")
                    })?;
                }
            }
        }
        Ok(())
    }
}
