//! The certificates by which a conversion webhook is trusted.

use crate::fields;
use crate::fields::ObjectMap;
use crate::gotext::decode_base64;
use crate::x509;

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
    let (blocks, _) = x509::blocks(&bytes);
    let is_certificate = |block: &&x509::Block| block.label == "CERTIFICATE" && !block.has_headers;
    let mut broken = None;
    for block in blocks.iter().filter(is_certificate) {
        match x509::Certificate::parse(&block.bytes) {
            Ok(_) => return Ok(()),
            Err(error) => broken = broken.or(Some(format!("failed to parse certificate: {error}"))),
        }
    }
    let none = match blocks.is_empty() {
        true => "unable to parse bytes as PEM block",
        false => "no valid certificate authority data seen",
    };
    Err(format!("unable to load root certificates: {}", broken.as_deref().unwrap_or(none)))
}
