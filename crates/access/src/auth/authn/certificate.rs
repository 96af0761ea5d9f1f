//! The user that a client certificate names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::user::User;
use crate::x509::{Certificate, Name};

/// The extra field that names the credential that was used.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// The attribute of a subject that is the user's uid, 1.3.6.1.4.1.57683.2.
const UID: &[u8] = &[0x2b, 6, 1, 4, 1, 0x83, 0xc2, 0x53, 2];

/// The user of a connection's client certificate at present, and whether it is a front proxy's.
#[derive(Clone, Debug)]
pub struct Certified {
    /// The user that a certificate of a trusted CA names; `None` for a certificate without a name.
    pub user: Result<Option<Arc<User>>, Arc<str>>,
    /// Whether the certificate is that of a front proxy; `None` if there are no front proxies.
    pub proxy: Option<Result<(), Arc<str>>>,
}

/// The user that a certificate names by its common name and organizations. The caller has verified the certificate.
/// `None` if it names nobody.
pub fn user_of_certificate(certificate: &Certificate) -> Result<Option<User>, &'static str> {
    let subject = &certificate.subject_name;
    let name = subject.common_name();
    if name.is_empty() {
        return Ok(None);
    }
    let groups = subject.organizations().map(str::to_owned).collect();
    let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![credential_id(certificate.raw())])]);
    let user = User { name: name.to_owned(), uid: uid(subject)?, groups, extra };
    Ok(Some(user.authenticated()))
}

fn uid(subject: &Name) -> Result<String, &'static str> {
    let mut all = subject.values(UID);
    match (all.next(), all.next()) {
        (None, _) => Ok(String::new()),
        (Some(""), None) => Err("UID cannot be an empty string"),
        (Some(uid), None) => Ok(uid.to_owned()),
        (Some(_), Some(_)) => Err("expected 1 UID, but found several"),
    }
}

/// How logs name a certificate that is refused.
pub fn certificate_identifier(certificate: &Certificate) -> String {
    let extensions = &certificate.extensions;
    let mut text = format!("SN={}", certificate.serial_text());
    for (label, id) in [("SKID", &extensions.subject_key), ("AKID", &extensions.authority_key)] {
        if !id.is_empty() {
            text.push_str(&format!(", {label}={}", colons(id)));
        }
    }
    text
}

fn colons(bytes: &[u8]) -> String {
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
    hex.join(":")
}

fn credential_id(der: &[u8]) -> String {
    let mut id = String::from("X509SHA256=");
    for byte in Sha256::digest(der) {
        let _ = write!(id, "{byte:02x}");
    }
    id
}
