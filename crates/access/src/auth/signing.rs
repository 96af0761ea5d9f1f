//! Certificates for those who ask: what a request asks for, what kubelets may be given, and an authority that signs
//! (`pkg/controller/certificates` of kube-controller-manager).

mod authority;

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::{FromDer as _, Pem};
use x509_parser::x509::AttributeTypeAndValue;

use crate::gotext::decode_base64;

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
const ALTERNATIVE_NAMES: &str = "2.5.29.17";

/// A PKCS#10 request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SigningRequest {
    pub common_name: String,
    pub organizations: Vec<String>,
    names: Names,
    /// The subject, the public key and the alternative names, in DER.
    subject: Vec<u8>,
    public_key: Vec<u8>,
    alternative_names: Option<Vec<u8>>,
}

/// How many alternative names there are of each sort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Names {
    dns: usize,
    addresses: usize,
    emails: usize,
    uris: usize,
}

impl SigningRequest {
    /// Reads `spec.request` of a CertificateSigningRequest: PEM in base64.
    pub fn of_base64(text: &str) -> Result<Self, String> {
        let bytes = decode_base64(text)?;
        let pem = Pem::iter_from_buffer(&bytes).next().and_then(Result::ok);
        let pem = pem.filter(|pem| pem.label == "CERTIFICATE REQUEST");
        Self::of_der(&pem.ok_or("PEM block type must be CERTIFICATE REQUEST")?.contents)
    }

    fn of_der(der: &[u8]) -> Result<Self, String> {
        let (_, request) =
            X509CertificationRequest::from_der(der).map_err(|_| "asn1: syntax error".to_owned())?;
        let info = &request.certification_request_info;
        let text = |one: &AttributeTypeAndValue<'_>| one.as_str().map(str::to_owned).unwrap_or_default();
        let mut found = Self {
            common_name: info.subject.iter_common_name().last().map(text).unwrap_or_default(),
            organizations: info.subject.iter_organization().map(text).collect(),
            subject: info.subject.as_raw().to_vec(),
            public_key: info.subject_pki.raw.to_vec(),
            ..Self::default()
        };
        for attribute in info.iter_attributes() {
            let ParsedCriAttribute::ExtensionRequest(wanted) = attribute.parsed_attribute() else { continue };
            for extension in &wanted.extensions {
                if extension.oid.to_id_string() == ALTERNATIVE_NAMES {
                    found.alternative_names = Some(extension.value.to_vec());
                }
                if let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() {
                    names.general_names.iter().for_each(|name| found.names.count(name));
                }
            }
        }
        Ok(found)
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
        let Names { dns, addresses, emails, uris } = self.names;
        let wrong = if self.organizations != [NODES] {
            "subject organization is not system:nodes"
        } else if dns > 0 {
            "DNS subjectAltNames are not allowed"
        } else if emails > 0 {
            "Email subjectAltNames are not allowed"
        } else if addresses > 0 {
            "IP subjectAltNames are not allowed"
        } else if uris > 0 {
            "URI subjectAltNames are not allowed"
        } else if !self.common_name.starts_with(NODE_PREFIX) {
            "subject common name does not begin with system:node:"
        } else {
            return only(usages, "client auth");
        };
        Err(wrong.to_owned())
    }

    fn fits_kubelet_server(&self, usages: &[&str]) -> Result<(), String> {
        let Names { dns, addresses, emails, uris } = self.names;
        let wrong = if self.organizations != [NODES] {
            "subject organization is not system:nodes"
        } else if dns + addresses == 0 {
            "DNS or IP subjectAltName is required"
        } else if emails > 0 {
            "Email subjectAltNames are not allowed"
        } else if uris > 0 {
            "URI subjectAltNames are not allowed"
        } else {
            only(usages, "server auth")?;
            if self.common_name.starts_with(NODE_PREFIX) {
                return Ok(());
            }
            "subject common name does not begin with system:node:"
        };
        Err(wrong.to_owned())
    }
}

impl Names {
    fn count(&mut self, name: &GeneralName<'_>) {
        match name {
            GeneralName::DNSName(_) => self.dns += 1,
            GeneralName::IPAddress(_) => self.addresses += 1,
            GeneralName::RFC822Name(_) => self.emails += 1,
            GeneralName::URI(_) => self.uris += 1,
            _ => {}
        }
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

#[cfg(test)]
mod tests;
