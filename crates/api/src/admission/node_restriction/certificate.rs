//! Certificates of Pods: a kubelet asks for those of the Pods that it runs.

use super::pods::is_mirror;
use super::{NODES, PODS, Restricted};
use crate::admission::Operation;
use crate::auth::authorizer::{Attributes, Decision};
use crate::error::Error;
use crate::gotext::quote;
use crate::schema::names::Gvr;
use crate::tree::Value;
use crate::{ObjectMap, fields};

const ACCOUNTS: Gvr = Gvr::fixed("v1", "serviceaccounts");

impl Restricted<'_, '_> {
    pub(super) async fn pod_certificate(&self) -> Result<(), Error> {
        if !self.is(Operation::Create) {
            return self.refuse(format!("unexpected operation {}", self.attempt.operation.as_str()));
        }
        let subresource = self.attempt.request.subresource;
        if !subresource.is_empty() {
            return self.refuse(format!("unexpected subresource {subresource}"));
        }
        let asked = self.object();
        let text = |field: &str| fields::text(asked, &["spec", field]);
        let node = text("nodeName");
        if node != self.node {
            return self.refuse(format!(
                "PodCertificateRequest.Spec.NodeName={}, which is not the requesting node {}",
                quote(node),
                quote(self.node)
            ));
        }
        let namespace = self.attempt.target.namespace;
        let of = |name: &str| quote(&format!("{namespace}/{name}"));
        let found = self.named(&NODES, "", node, &format!("node {}", quote(node)))?;
        let pod_name = of(text("podName"));
        let uid = fields::text(&found, &["metadata", "uid"]);
        if text("nodeUID") != uid {
            let (asked, uid) = (quote(text("nodeUID")), quote(uid));
            return failed(format!(
                "PodCertificateRequest for pod {pod_name} names node UID {asked}, inconsistent with the running node ({uid})"
            ));
        }
        let pod = self.named(&PODS, namespace, text("podName"), &format!("pod {pod_name}"))?;
        let uid = fields::text(&pod, &["metadata", "uid"]);
        if text("podUID") != uid {
            let (asked, uid) = (quote(text("podUID")), quote(uid));
            return failed(format!(
                "PodCertificateRequest for pod {pod_name} contains pod UID ({asked}) which differs from running pod {uid}"
            ));
        }
        if fields::text(&pod, &["spec", "nodeName"]) != node {
            let node = quote(node);
            return self.refuse(format!(
                "pod {pod_name} is not running on node {node} named in the PodCertificateRequest"
            ));
        }
        if is_mirror(&pod) {
            return self.refuse(format!("pod {pod_name} is a mirror pod"));
        }
        let (account, of_pod) =
            (text("serviceAccountName"), fields::text(&pod, &["spec", "serviceAccountName"]));
        if account != of_pod {
            let (account, of_pod) = (quote(account), quote(of_pod));
            return self.refuse(format!(
                "PodCertificateRequest for pod {pod_name} contains serviceAccountName ({account}) that differs from running pod ({of_pod})"
            ));
        }
        let found = self.named(&ACCOUNTS, namespace, account, &format!("service account {}", of(account)))?;
        let uid = fields::text(&found, &["metadata", "uid"]);
        if text("serviceAccountUID") != uid {
            let (asked, uid) = (quote(text("serviceAccountUID")), quote(uid));
            return failed(format!(
                "PodCertificateRequest for pod {pod_name} names service account UID {asked}, which differs from the running service account ({uid})"
            ));
        }
        if mounts_certificate_of(&pod, text("signerName")) {
            return Ok(());
        }
        self.may_ask_signer(text("signerName"), account, &pod_name).await
    }

    /// Whether the node may ask a signer in the name of an account although no volume of the Pod does.
    async fn may_ask_signer(&self, signer: &str, account: &str, pod: &str) -> Result<(), Error> {
        let request = self.attempt.request;
        let definition = &request.target.resource.definition;
        // RBAC cannot name resources with slashes.
        let resource = signer.replace('/', ":");
        let attributes = Attributes {
            group: definition.group(),
            version: definition.version(),
            resource: &resource,
            namespace: self.attempt.target.namespace,
            name: account,
            ..Attributes::of_path(request.user, "request-serviceaccounts-podcertificate-signer", "")
        };
        let reason = match request.authorizer.decide(&attributes).decided().await {
            Decision::Allow(_) => return Ok(()),
            Decision::Deny(reason) | Decision::NoOpinion(reason) => reason,
        };
        let (user, signer) = (&request.user.name, quote(signer));
        self.refuse(match reason.error() {
            Some(error) => {
                format!(
                    "error authorizing {user} to request podcertificaterequests for signer {signer}: {error}"
                )
            }
            None => {
                format!("pod {pod} does not mount a podCertificate projected volume for signer {signer}")
            }
        })
    }

    /// An object that the request names. One that is missing may come soon, so that its absence is no refusal.
    fn named(&self, resource: &Gvr, namespace: &str, name: &str, what: &str) -> Result<ObjectMap, Error> {
        self.find(resource, namespace, name).map_err(|error| {
            Error::Unclassified(format!(
                "while retrieving {what} named in the PodCertificateRequest: {error}"
            ))
        })
    }
}

/// Whether a projected volume of a Pod asks a signer for a certificate.
fn mounts_certificate_of(pod: &ObjectMap, signer: &str) -> bool {
    let volumes = fields::items(pod, &["spec", "volumes"]).iter().filter_map(Value::as_object);
    let mut sources = volumes.flat_map(|volume| fields::items(volume, &["projected", "sources"]));
    sources.any(|source| {
        let named = source.get("podCertificate").and_then(|certificate| certificate.get("signerName"));
        named.and_then(Value::as_str) == Some(signer)
    })
}

/// Not a refusal: the objects may be newer soon.
fn failed(why: String) -> Result<(), Error> {
    Err(Error::Unclassified(why))
}
