//! The signature by which the other side of a TLS handshake proves that it has the key of its certificate.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::CertificateDer;
use rustls::{CertificateError, DigitallySignedStruct, ProtocolVersion, SignatureScheme};

use crate::certificate::Certificate;
use crate::key::{Curve, PublicKey};
use crate::signature::{Algorithm, Hash, Sha1};

/// The schemes that are asked for, in Go's order.
pub const SCHEMES: [SignatureScheme; 10] = [
    SignatureScheme::RSA_PSS_SHA256,
    SignatureScheme::ECDSA_NISTP256_SHA256,
    SignatureScheme::ED25519,
    SignatureScheme::RSA_PSS_SHA384,
    SignatureScheme::RSA_PSS_SHA512,
    SignatureScheme::RSA_PKCS1_SHA256,
    SignatureScheme::RSA_PKCS1_SHA384,
    SignatureScheme::RSA_PKCS1_SHA512,
    SignatureScheme::ECDSA_NISTP384_SHA384,
    SignatureScheme::ECDSA_NISTP521_SHA512,
];

/// How a scheme signs, and the curve that it is bound to in TLS 1.3; `None` for schemes that were not asked for, and for
/// those that the version does not have.
fn algorithm(scheme: SignatureScheme, version: ProtocolVersion) -> Option<(Algorithm, Option<Curve>)> {
    let is_newest = version == ProtocolVersion::TLSv1_3;
    Some(match scheme {
        SignatureScheme::RSA_PSS_SHA256 => (Algorithm::Pss(Hash::Sha256), None),
        SignatureScheme::RSA_PSS_SHA384 => (Algorithm::Pss(Hash::Sha384), None),
        SignatureScheme::RSA_PSS_SHA512 => (Algorithm::Pss(Hash::Sha512), None),
        SignatureScheme::ED25519 => (Algorithm::Ed25519, None),
        SignatureScheme::ECDSA_NISTP256_SHA256 => (Algorithm::Ecdsa(Hash::Sha256), Some(Curve::P256)),
        SignatureScheme::ECDSA_NISTP384_SHA384 => (Algorithm::Ecdsa(Hash::Sha384), Some(Curve::P384)),
        SignatureScheme::ECDSA_NISTP521_SHA512 => (Algorithm::Ecdsa(Hash::Sha512), Some(Curve::P521)),
        SignatureScheme::RSA_PKCS1_SHA256 if !is_newest => (Algorithm::Pkcs1(Hash::Sha256), None),
        SignatureScheme::RSA_PKCS1_SHA384 if !is_newest => (Algorithm::Pkcs1(Hash::Sha384), None),
        SignatureScheme::RSA_PKCS1_SHA512 if !is_newest => (Algorithm::Pkcs1(Hash::Sha512), None),
        _ => return None,
    })
    .map(|(algorithm, curve)| (algorithm, curve.filter(|_| is_newest)))
}

/// The methods of rustls' verifiers of certificates that judge signatures of handshakes, each by [`verify_handshake`].
#[macro_export]
macro_rules! handshake_signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &::rustls::pki_types::CertificateDer<'_>,
            signature: &::rustls::DigitallySignedStruct,
        ) -> Result<::rustls::client::danger::HandshakeSignatureValid, ::rustls::Error> {
            let version = ::rustls::ProtocolVersion::TLSv1_2;
            $crate::verify_handshake(message, certificate, signature, version)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &::rustls::pki_types::CertificateDer<'_>,
            signature: &::rustls::DigitallySignedStruct,
        ) -> Result<::rustls::client::danger::HandshakeSignatureValid, ::rustls::Error> {
            let version = ::rustls::ProtocolVersion::TLSv1_3;
            $crate::verify_handshake(message, certificate, signature, version)
        }

        fn supported_verify_schemes(&self) -> Vec<::rustls::SignatureScheme> {
            $crate::SCHEMES.to_vec()
        }
    };
}

/// Verifies the signature of a handshake with the key of the certificate.
pub fn verify_handshake(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    version: ProtocolVersion,
) -> Result<HandshakeSignatureValid, rustls::Error> {
    let parsed = Certificate::parse(certificate)?;
    let wrong = || rustls::Error::from(CertificateError::BadSignature);
    let (algorithm, curve) = algorithm(signed.scheme, version).ok_or_else(wrong)?;
    match (&parsed.key, curve) {
        (PublicKey::Ec(found, _), Some(curve)) if *found != curve => return Err(wrong()),
        _ => {}
    }
    algorithm.verify(&parsed.key, message, signed.signature(), Sha1::Refused).map_err(|_| wrong())?;
    Ok(HandshakeSignatureValid::assertion())
}
