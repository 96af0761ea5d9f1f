//! The certificates by which a conversion webhook is trusted.

use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use crate::fields;
use crate::fields::ObjectMap;
use crate::gotext::decode_base64;
use crate::kinds::certificates::cluster_trust_bundle::blocks;

/// Whether clients could be made to trust what a definition's conversion says, or it says nothing.
pub fn of_conversion_is_valid(object: &ObjectMap) -> bool {
    check(fields::text(object, &["spec", "conversion", "webhook", "clientConfig", "caBundle"])).is_ok()
}

/// client-go's error about a bundle, which is base64; one without a byte is none.
pub fn check(bundle: &str) -> Result<(), String> {
    if bundle.is_empty() {
        return Ok(());
    }
    let bytes = decode_base64(bundle).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut broken = None;
    let mut any = false;
    for block in blocks(&text) {
        any = true;
        if block.tag() != "CERTIFICATE" || block.headers().iter().next().is_some() {
            continue;
        }
        match X509Certificate::from_der(block.contents()) {
            Ok(_) => return Ok(()),
            Err(_) => broken = broken.or(Some("failed to parse certificate: x509: malformed certificate")),
        }
    }
    let none =
        if any { "no valid certificate authority data seen" } else { "unable to parse bytes as PEM block" };
    Err(format!("unable to load root certificates: {}", broken.unwrap_or(none)))
}
