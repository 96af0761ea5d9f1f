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
    x509::check_authorities(&decode_base64(bundle).unwrap_or_default())
}
