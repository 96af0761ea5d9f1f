//! What is wrong with a hook's certificate, in the words of Go's `crypto/x509`.

use jiff::Timestamp;
use rustls::CertificateError;
use rustls::pki_types::{ServerName, UnixTime};

pub fn words(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::ExpiredContext { time, not_after } => {
            format!("{EXPIRED}: current time {} is after {}", shown(*time), shown(*not_after))
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            format!("{EXPIRED}: current time {} is before {}", shown(*time), shown(*not_before))
        }
        CertificateError::Expired | CertificateError::NotValidYet => EXPIRED.to_owned(),
        CertificateError::NotValidForNameContext { expected, presented } => name(expected, presented),
        // A certificate of an authority that is none of those that are trusted.
        CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
            "certificate signed by unknown authority".to_owned()
        }
        other => other.to_string(),
    }
}

const EXPIRED: &str = "certificate has expired or is not yet valid";

fn shown(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).map(|time| time.to_string()).unwrap_or_default()
}

/// `presented` has names as rustls shows them: `DnsName("a")`, `IpAddress(127.0.0.1)`.
fn name(expected: &ServerName<'_>, presented: &[String]) -> String {
    let of = |kind: &str| {
        let names = presented.iter().filter_map(move |name| name.strip_prefix(kind)?.strip_suffix(')'));
        names.map(|name| name.trim_matches('"').to_owned()).collect::<Vec<_>>()
    };
    let host = expected.to_str();
    let names = match expected {
        ServerName::IpAddress(_) => {
            let addresses = of("IpAddress(");
            if addresses.is_empty() {
                return format!(
                    "cannot validate certificate for {host} because it doesn't contain any IP SANs"
                );
            }
            addresses
        }
        _ => of("DnsName("),
    };
    match names.is_empty() {
        true => format!("certificate is not valid for any names, but wanted to match {host}"),
        false => format!("certificate is valid for {}, not {host}", names.join(", ")),
    }
}
