//! Tokens of service accounts: a kubelet gets those of its Pods, for the audiences that they name.

use super::{PODS, Restricted};
use crate::auth::authorizer::{Attributes, Decision, aggregate};
use crate::error::Error;
use crate::gotext::quote;
use crate::schema::names::Gvr;
use crate::tree::{Map, Value};
use crate::{ObjectMap, fields};

const CLAIMS: Gvr = Gvr::fixed("v1", "persistentvolumeclaims");
const VOLUMES: Gvr = Gvr::fixed("v1", "persistentvolumes");
const DRIVERS: Gvr = Gvr::fixed("storage.k8s.io/v1", "csidrivers");

/// The drivers that serve volumes which were once built in.
const MIGRATED: [(&str, &str); 7] = [
    ("awsElasticBlockStore", "ebs.csi.aws.com"),
    ("azureDisk", "disk.csi.azure.com"),
    ("azureFile", "file.csi.azure.com"),
    ("cinder", "cinder.csi.openstack.org"),
    ("gcePersistentDisk", "pd.csi.storage.gke.io"),
    ("portworxVolume", "pxd.portworx.com"),
    ("vsphereVolume", "csi.vsphere.vmware.com"),
];

impl Restricted<'_, '_> {
    pub(super) async fn token(&self) -> Result<(), Error> {
        let asked = self.object();
        let bound = |field: &str| fields::text(asked, &["spec", "boundObjectRef", field]);
        if (bound("apiVersion"), bound("kind")) != ("v1", "Pod") || bound("name").is_empty() {
            return self.refuse("node requested token not bound to a pod");
        }
        let uid = bound("uid");
        if uid.is_empty() {
            return self.refuse("node requested token with a pod binding without a uid");
        }
        let pod = self.find(&PODS, self.attempt.target.namespace, bound("name"))?;
        if uid != fields::text(&pod, &["metadata", "uid"]) {
            return self.refuse(format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
            ));
        }
        if fields::text(&pod, &["spec", "nodeName"]) != self.node {
            return self.refuse("node requested token bound to a pod scheduled on a different node");
        }
        let audience = match fields::items(asked, &["spec", "audiences"]) {
            [] => "",
            [one] => one.as_str().unwrap_or_default(),
            _ => return self.refuse("node may only request 0 or 1 audiences"),
        };
        match self.names_audience(&pod, audience) {
            Ok(true) => Ok(()),
            Ok(false) => self.may_request(audience).await,
            Err(why) => self.refuse(format!("error validating audience {}: {why}", quote(audience))),
        }
    }

    async fn may_request(&self, audience: &str) -> Result<(), Error> {
        let request = self.attempt.request;
        let path = Attributes::of_path(request.user, "request-serviceaccounts-token-audience", "");
        let attributes = Attributes {
            version: "v1",
            resource: audience,
            namespace: request.target.namespace,
            name: request.target.name,
            ..path
        };
        let (name, audience) = (&request.user.name, quote(audience));
        let reason = match request.authorizer.decide(&attributes).decided().await {
            Decision::Allow(_) => return Ok(()),
            Decision::Deny(reason) | Decision::NoOpinion(reason) => reason,
        };
        self.refuse(match reason.error() {
            Some(error) => {
                format!("error authorizing {name} to request tokens for audience {audience}: {error}")
            }
            None => format!("{name} is not authorized to request tokens for audience {audience}"),
        })
    }

    /// Whether a volume of the Pod needs tokens for an audience.
    fn names_audience(&self, pod: &ObjectMap, audience: &str) -> Result<bool, String> {
        let mut errors = Vec::new();
        for volume in fields::items(pod, &["spec", "volumes"]).iter().filter_map(Value::as_object) {
            let sources = fields::items(volume, &["projected", "sources"]).iter();
            let mut tokens = sources.filter_map(|source| source.get("serviceAccountToken"));
            let names =
                |token: &Value| token.get("audience").and_then(Value::as_str).unwrap_or_default() == audience;
            if tokens.any(names) {
                return Ok(true);
            }
            match self.driver_names_audience(pod, volume, audience) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(error) => errors.push(error.to_string()),
            }
        }
        aggregate(errors).map_or(Ok(false), Err)
    }

    fn driver_names_audience(&self, pod: &ObjectMap, volume: &Map, audience: &str) -> Result<bool, Error> {
        let namespace = fields::text(pod, &["metadata", "namespace"]);
        let claim = if fields::at(volume, &["ephemeral", "volumeClaimTemplate"]).is_some() {
            let (pod, volume) = (fields::text(pod, &["metadata", "name"]), fields::text(volume, &["name"]));
            Some(format!("{pod}-{volume}"))
        } else {
            let claim = fields::at(volume, &["persistentVolumeClaim", "claimName"]);
            claim.and_then(Value::as_str).map(str::to_owned)
        };
        let driver = match claim {
            Some(claim) => {
                let claim = self.find(&CLAIMS, namespace, &claim)?;
                let volume = self.find(&VOLUMES, "", fields::text(&claim, &["spec", "volumeName"]))?;
                fields::object(&volume, "spec").map(driver_of).unwrap_or_default()
            }
            None => driver_of(volume),
        };
        if driver.is_empty() {
            return Ok(false);
        }
        let driver = self.find(&DRIVERS, "", &driver)?;
        let mut requests = fields::items(&driver, &["spec", "tokenRequests"]).iter();
        Ok(requests.any(|one| one.get("audience").and_then(Value::as_str).unwrap_or_default() == audience))
    }
}

/// The driver of a volume of a Pod, or of the spec of a PersistentVolume; empty if it has none.
fn driver_of(volume: &Map) -> String {
    let driver = fields::text(volume, &["csi", "driver"]);
    if !driver.is_empty() {
        return driver.to_owned();
    }
    let is_set = |field: &str| volume.get(field).is_some_and(|value| !value.is_null());
    let migrated = MIGRATED.iter().find(|(field, _)| is_set(field));
    migrated.map_or("", |(_, driver)| driver).to_owned()
}
