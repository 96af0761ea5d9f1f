//! Certificates of the first version of X.509, which webpki does not read. They have no extensions: `openssl x509 -req`
//! makes such ones of a request for a user unless it is given extensions, and Go accepts them from clients.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct};
use x509_parser::oid_registry::OID_PKCS1_SHA1WITHRSA;
use x509_parser::prelude::{FromDer as _, X509Certificate, X509Version};

fn parse<'a>(certificate: &'a CertificateDer<'_>) -> Option<X509Certificate<'a>> {
    let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
    (parsed.version() == X509Version::V1).then_some(parsed)
}

/// Whether one of `authorities` has signed this certificate itself, and it is valid; `None` if it is of a later version.
/// With no extension it cannot limit what it is used for.
pub fn verify(
    certificate: &CertificateDer<'_>,
    authorities: &[CertificateDer<'_>],
    time: UnixTime,
) -> Option<Result<(), rustls::Error>> {
    let parsed = parse(certificate)?;
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let validity = parsed.validity();
    let problem = if !authorities.iter().any(|authority| has_signed(authority, &parsed)) {
        CertificateError::UnknownIssuer
    } else if seconds < validity.not_before.timestamp() {
        CertificateError::NotValidYet
    } else if seconds > validity.not_after.timestamp() {
        CertificateError::Expired
    } else {
        return Some(Ok(()));
    };
    Some(Err(problem.into()))
}

fn has_signed(authority: &CertificateDer<'_>, certificate: &X509Certificate<'_>) -> bool {
    X509Certificate::from_der(authority).is_ok_and(|(_, authority)| {
        // Go and webpki believe no signature over SHA-1.
        certificate.signature_algorithm.algorithm != OID_PKCS1_SHA1WITHRSA
            && authority.subject().as_raw() == certificate.issuer().as_raw()
            && certificate.verify_signature(Some(authority.public_key())).is_ok()
    })
}

/// Whether the handshake was signed with the certificate's key; `None` if the certificate is of a later version.
///
/// This uses the signature schemes of TLS 1.3 in TLS 1.2 as well, where clients have others besides.
pub fn verify_handshake(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Option<Result<HandshakeSignatureValid, rustls::Error>> {
    let parsed = parse(certificate)?;
    let key = SubjectPublicKeyInfoDer::from(parsed.public_key().raw);
    Some(verify_tls13_signature_with_raw_key(message, &key, signature, algorithms))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    const CA: &[u8] = include_bytes!("../../../tests/fixtures/first-version/ca.crt");
    const CLIENT: &[u8] = include_bytes!("../../../tests/fixtures/first-version/client.crt");
    /// Signed with RSA over SHA-1.
    const BY_SHA1: &[u8] = include_bytes!("../../../tests/fixtures/first-version/sha1.crt");
    const CA_OF_SHA1: &[u8] = include_bytes!("../../../tests/fixtures/first-version/sha1-ca.crt");
    const IN_2050: u64 = 2_524_608_000;
    /// 2020-01-01 and 2120-01-01, between which the fixtures are valid.
    const VALID: (u64, u64) = (1_577_836_800, 4_733_510_400);

    fn outcome(leaf: &[u8], authorities: &[&[u8]], seconds: u64) -> Option<Result<(), String>> {
        let read = |pem: &[u8]| CertificateDer::from_pem_slice(pem).expect("a certificate");
        let authorities: Vec<_> = authorities.iter().map(|pem| read(pem)).collect();
        let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let verified = verify(&read(leaf), &authorities, time)?;
        Some(verified.map_err(|error| error.to_string()))
    }

    #[test]
    fn a_ca_has_to_have_signed_it_and_it_has_to_be_valid() {
        let refused = |reason: &str| Some(Err(format!("invalid peer certificate: {reason}")));
        let (first, last) = VALID;
        assert_eq!(outcome(CLIENT, &[CA], first), Some(Ok(())));
        assert_eq!(outcome(CLIENT, &[CA], last), Some(Ok(())));
        assert_eq!(outcome(CLIENT, &[CA], first - 1), refused("NotValidYet"));
        assert_eq!(outcome(CLIENT, &[CA], last + 1), refused("Expired"));
        assert_eq!(outcome(CLIENT, &[], first), refused("UnknownIssuer"));
        // The certificate did not sign itself, whatever it is trusted as.
        assert_eq!(outcome(CLIENT, &[CLIENT], first), refused("UnknownIssuer"));
        assert_eq!(outcome(BY_SHA1, &[CA_OF_SHA1], IN_2050), refused("UnknownIssuer"));
        // Later versions are left to webpki.
        assert_eq!(outcome(CA, &[CA], first), None);
    }
}
