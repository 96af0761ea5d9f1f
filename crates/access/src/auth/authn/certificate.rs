//! The user that a client certificate names.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::{FromDer, X509Certificate, X509Name};

use crate::user::User;

/// The extra field that names the credential that was used.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
/// The attribute of a subject that is the user's uid.
const UID: &str = "1.3.6.1.4.1.57683.2";

/// What a connection's certificates say at present.
#[derive(Clone, Debug)]
pub struct Certified {
    /// The user that a certificate of a trusted CA names; `None` for a certificate without a name.
    pub user: Result<Option<Arc<User>>, Arc<str>>,
    /// Whether the certificate is that of a front proxy; `None` if there are no front proxies.
    pub proxy: Option<Result<(), Arc<str>>>,
}

/// The user that a certificate names by its common name and organizations. The caller has verified the certificate.
/// `None` if it names nobody.
pub fn user_of_certificate(der: &[u8]) -> Result<Option<User>, &'static str> {
    let (_, certificate) = X509Certificate::from_der(der).map_err(|_| "x509: malformed certificate")?;
    let subject = certificate.subject();
    let Some(name) = common_name(subject).filter(|name| !name.is_empty()) else { return Ok(None) };
    let groups = subject.iter_organization().filter_map(|o| o.as_str().ok()).map(str::to_owned).collect();
    let extra = BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![credential_id(der)])]);
    let user = User { name: name.to_owned(), uid: uid(subject)?, groups, extra };
    Ok(Some(user.authenticated()))
}

/// Of several common names, Go uses the last one.
fn common_name<'a>(subject: &'a X509Name<'_>) -> Option<&'a str> {
    subject.iter_common_name().last()?.as_str().ok()
}

fn uid(subject: &X509Name<'_>) -> Result<String, &'static str> {
    let mut all = subject.iter_attributes().filter(|part| part.attr_type().to_id_string() == UID);
    match (all.next(), all.next()) {
        (None, _) => Ok(String::new()),
        (Some(one), None) => match one.as_str() {
            Ok(uid) if !uid.is_empty() => Ok(uid.to_owned()),
            _ => Err("UID cannot be an empty string"),
        },
        (Some(_), Some(_)) => Err("expected 1 UID, but found several"),
    }
}

/// The common name of a certificate; empty if it has none.
pub fn common_name_of(der: &[u8]) -> String {
    let parsed = X509Certificate::from_der(der).ok();
    parsed
        .and_then(|(_, certificate)| common_name(certificate.subject()).map(str::to_owned))
        .unwrap_or_default()
}

/// How logs name a certificate that is refused.
pub fn certificate_identifier(der: &[u8]) -> String {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return "SN=?".to_owned() };
    let mut text = format!("SN={}", certificate.tbs_certificate.serial);
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => text.push_str(&format!(", SKID={}", colons(id.0))),
            ParsedExtension::AuthorityKeyIdentifier(id) => {
                if let Some(id) = &id.key_identifier {
                    text.push_str(&format!(", AKID={}", colons(id.0)));
                }
            }
            _ => {}
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
