//! Why a certificate or a request is refused, in the words of Go's `crypto/x509`.

use rowplane_values::gotext::quote;

/// Verification and parse errors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Bytes that Go does not parse.
    #[error("x509: {0}")]
    Malformed(String),
    #[error("x509: unhandled critical extension")]
    UnhandledCriticalExtension,
    /// The times are RFC 3339.
    #[error("x509: certificate has expired or is not yet valid: {0}")]
    Expired(String),
    #[error("x509: certificate is not authorized to sign other certificates")]
    NotAuthorizedToSign,
    #[error("x509: too many intermediates for path length constraint")]
    TooManyIntermediates,
    #[error("x509: certificate specifies an incompatible key usage")]
    IncompatibleUsage,
    #[error("x509: no valid chains built: {0}")]
    NoValidChains(String),
    #[error("x509: a root or intermediate certificate is not authorized to sign for this name: {0}")]
    NotAuthorizedForName(String),
    /// The candidate that was refused, by its name, and why.
    #[error("x509: certificate signed by unknown authority{}", hint(.0.as_deref()))]
    UnknownAuthority(Option<Box<(Error, String)>>),
    #[error("x509: signature check attempts limit reached while verifying certificate chain")]
    TooManySignatureChecks,
    #[error("x509: {0}")]
    Hostname(String),
    /// An issuer that is no CA, or whose key may not sign certificates.
    #[error("x509: invalid signature: parent certificate cannot sign this kind of certificate")]
    ConstraintViolation,
    #[error("x509: cannot verify signature: insecure algorithm {0}")]
    InsecureAlgorithm(&'static str),
    #[error("x509: cannot verify signature: algorithm unimplemented")]
    UnsupportedAlgorithm,
    /// Keys and signatures that Go verifies, and this crate's libraries do not.
    #[error("x509: cannot verify signature: {0} is not supported")]
    Unsupported(&'static str),
    #[error("{0}")]
    Signature(&'static str),
}

impl Error {
    /// The error with which a handshake was refused by this crate's judgement; `None` if it failed otherwise.
    pub fn of_handshake(error: &std::io::Error) -> Option<&Self> {
        let inner = error.get_ref()?.downcast_ref::<rustls::Error>()?;
        match inner {
            rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) => {
                other.0.downcast_ref()
            }
            _ => None,
        }
    }

    pub(crate) fn malformed(what: impl Into<String>) -> Self {
        Self::Malformed(what.into())
    }
}

fn hint(refused: Option<&(Error, String)>) -> String {
    let Some((why, name)) = refused else { return String::new() };
    let (why, name) = (quote(&why.to_string()), quote(name));
    format!(" (possibly because of {why} while trying to verify candidate authority certificate {name})")
}

impl From<Error> for rustls::Error {
    fn from(error: Error) -> Self {
        let other = rustls::OtherError(std::sync::Arc::new(error));
        Self::InvalidCertificate(rustls::CertificateError::Other(other))
    }
}
