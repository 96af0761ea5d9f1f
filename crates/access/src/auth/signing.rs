//! Certificates for those who ask: what a request asks for, what kubelets may be given, and an authority that signs
//! (`pkg/controller/certificates` of kube-controller-manager).

mod authority;

use crate::gotext::decode_base64;
use crate::x509::{AlternativeNames, CertificateRequest, Name};

pub use self::authority::{Authority, FollowedAuthority};

/// The signer of certificates by which this server knows users.
pub const API_CLIENTS: &str = "kubernetes.io/kube-apiserver-client";
pub const KUBELET_CLIENTS: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub const KUBELET_SERVERS: &str = "kubernetes.io/kubelet-serving";
pub const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// The signers that a CA of the cluster may sign for.
pub const SIGNERS: [&str; 4] = [API_CLIENTS, KUBELET_CLIENTS, KUBELET_SERVERS, LEGACY];

const NODES: &str = "system:nodes";
const NODE_PREFIX: &str = "system:node:";

/// A PKCS#10 request: what it asks for is checked and signed from one reading of it.
#[derive(Clone, Debug)]
pub struct SigningRequest {
    request: CertificateRequest,
}

impl SigningRequest {
    /// Reads `spec.request` of a CertificateSigningRequest: PEM in base64.
    pub fn of_base64(text: &str) -> Result<Self, String> {
        let request = CertificateRequest::of_pem(&decode_base64(text)?).map_err(|error| error.to_string())?;
        Ok(Self { request })
    }

    pub fn subject(&self) -> &Name {
        &self.request.subject
    }

    /// Whether a signer of the cluster may sign this, in upstream's words if not.
    pub fn fits(&self, signer: &str, usages: &[&str]) -> Result<(), String> {
        match signer {
            KUBELET_CLIENTS => self.fits_kubelet_client(usages),
            KUBELET_SERVERS => self.fits_kubelet_server(usages),
            API_CLIENTS => {
                let known = ["client auth", "digital signature", "key encipherment"];
                if let Some(usage) = usages.iter().find(|usage| !known.contains(usage)) {
                    return Err(format!("invalid usage for client certificate: {usage}"));
                }
                match usages.contains(&"client auth") {
                    true => Ok(()),
                    false => Err("missing required usage for client certificate: client auth".to_owned()),
                }
            }
            _ => Ok(()),
        }
    }

    fn fits_kubelet_client(&self, usages: &[&str]) -> Result<(), String> {
        let AlternativeNames { dns, addresses, emails, uris } = &self.request.names;
        let wrong = if !self.subject().organizations().eq([NODES]) {
            "subject organization is not system:nodes"
        } else if !dns.is_empty() {
            "DNS subjectAltNames are not allowed"
        } else if !emails.is_empty() {
            "Email subjectAltNames are not allowed"
        } else if !addresses.is_empty() {
            "IP subjectAltNames are not allowed"
        } else if !uris.is_empty() {
            "URI subjectAltNames are not allowed"
        } else if !self.subject().common_name().starts_with(NODE_PREFIX) {
            "subject common name does not begin with system:node:"
        } else {
            return only(usages, "client auth");
        };
        Err(wrong.to_owned())
    }

    fn fits_kubelet_server(&self, usages: &[&str]) -> Result<(), String> {
        let AlternativeNames { dns, addresses, emails, uris } = &self.request.names;
        let wrong = if !self.subject().organizations().eq([NODES]) {
            "subject organization is not system:nodes"
        } else if dns.is_empty() && addresses.is_empty() {
            "DNS or IP subjectAltName is required"
        } else if !emails.is_empty() {
            "Email subjectAltNames are not allowed"
        } else if !uris.is_empty() {
            "URI subjectAltNames are not allowed"
        } else {
            only(usages, "server auth")?;
            if self.subject().common_name().starts_with(NODE_PREFIX) {
                return Ok(());
            }
            "subject common name does not begin with system:node:"
        };
        Err(wrong.to_owned())
    }
}

/// The usages of a kubelet's certificate: of a key of RSA one more.
fn only(usages: &[&str], purpose: &str) -> Result<(), String> {
    let mut found = usages.to_vec();
    found.sort_unstable();
    found.dedup();
    let mut wanted = [purpose, "digital signature", "key encipherment"];
    wanted.sort_unstable();
    let without_rsa: Vec<&str> = wanted.into_iter().filter(|usage| *usage != "key encipherment").collect();
    match found == wanted || found == without_rsa {
        true => Ok(()),
        false => Err(format!("usages did not match [{}]", wanted.join(" "))),
    }
}
