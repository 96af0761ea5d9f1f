//! Alerts of TLS in the words of Go's `crypto/tls`.

use std::io;

use rustls::AlertDescription;

/// The alert with which the peer has ended a connection; `None` if the error is another one.
pub fn received(error: &io::Error) -> Option<String> {
    match error.get_ref()?.downcast_ref()? {
        rustls::Error::AlertReceived(alert) => Some(format!("remote error: tls: {}", words(*alert))),
        _ => None,
    }
}

fn words(alert: AlertDescription) -> String {
    let known = match alert {
        AlertDescription::CloseNotify => "close notify",
        AlertDescription::UnexpectedMessage => "unexpected message",
        AlertDescription::BadRecordMac => "bad record MAC",
        AlertDescription::DecryptionFailed => "decryption failed",
        AlertDescription::RecordOverflow => "record overflow",
        AlertDescription::DecompressionFailure => "decompression failure",
        AlertDescription::HandshakeFailure => "handshake failure",
        AlertDescription::BadCertificate => "bad certificate",
        AlertDescription::UnsupportedCertificate => "unsupported certificate",
        AlertDescription::CertificateRevoked => "revoked certificate",
        AlertDescription::CertificateExpired => "expired certificate",
        AlertDescription::CertificateUnknown => "unknown certificate",
        AlertDescription::IllegalParameter => "illegal parameter",
        AlertDescription::UnknownCA => "unknown certificate authority",
        AlertDescription::AccessDenied => "access denied",
        AlertDescription::DecodeError => "error decoding message",
        AlertDescription::DecryptError => "error decrypting message",
        AlertDescription::ExportRestriction => "export restriction",
        AlertDescription::ProtocolVersion => "protocol version not supported",
        AlertDescription::InsufficientSecurity => "insufficient security level",
        AlertDescription::InternalError => "internal error",
        AlertDescription::InappropriateFallback => "inappropriate fallback",
        AlertDescription::UserCanceled => "user canceled",
        AlertDescription::NoRenegotiation => "no renegotiation",
        AlertDescription::MissingExtension => "missing extension",
        AlertDescription::UnsupportedExtension => "unsupported extension",
        AlertDescription::CertificateUnobtainable => "certificate unobtainable",
        AlertDescription::UnrecognisedName => "unrecognized name",
        AlertDescription::BadCertificateStatusResponse => "bad certificate status response",
        AlertDescription::BadCertificateHashValue => "bad certificate hash value",
        AlertDescription::UnknownPSKIdentity => "unknown PSK identity",
        AlertDescription::CertificateRequired => "certificate required",
        AlertDescription::NoApplicationProtocol => "no application protocol",
        AlertDescription::EncryptedClientHelloRequired => "encrypted client hello required",
        other => return format!("alert({})", u8::from(other)),
    };
    known.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_s_alert() {
        let told = |code: u8| {
            let alert = rustls::Error::AlertReceived(AlertDescription::from(code));
            received(&io::Error::new(io::ErrorKind::InvalidData, alert))
        };
        for (code, words) in [
            (0, "close notify"),
            (10, "unexpected message"),
            (42, "bad certificate"),
            (45, "expired certificate"),
            (48, "unknown certificate authority"),
            (51, "error decrypting message"),
            (80, "internal error"),
            (112, "unrecognized name"),
            (116, "certificate required"),
            (121, "encrypted client hello required"),
            (200, "alert(200)"),
        ] {
            assert_eq!(told(code), Some(format!("remote error: tls: {words}")));
        }
        assert_eq!(received(&io::ErrorKind::UnexpectedEof.into()), None);
        let own = rustls::Error::DecryptError;
        assert_eq!(received(&io::Error::new(io::ErrorKind::InvalidData, own)), None);
    }
}
