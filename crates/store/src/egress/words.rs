//! Errors of connections, in the words of Go's `net` and `crypto/tls`.

use std::io;

use crate::x509::{self, alerts};

/// A connection that could not be made.
pub fn dial(address: &str, error: &io::Error) -> String {
    // Go names the name server, too.
    if error.to_string().starts_with("failed to lookup address information") {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        return format!("dial tcp: lookup {host}: no such host");
    }
    let why = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::TimedOut => "i/o timeout".to_owned(),
        _ => error.to_string(),
    };
    format!("dial tcp {address}: {why}")
}

/// An error of the operating system.
pub fn system(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// A handshake that failed.
pub fn handshake(error: &io::Error) -> String {
    match x509::Error::of_handshake(error) {
        Some(refused @ x509::Error::Malformed(_)) => {
            return format!("tls: failed to parse certificate from server: {refused}");
        }
        Some(refused) => return format!("tls: failed to verify certificate: {refused}"),
        None => {}
    }
    if let Some(alert) = alerts::received(error) {
        return alert;
    }
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(why)) => {
            format!("tls: invalid signature by the server certificate: {why}")
        }
        _ if error.kind() == io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        _ => error.to_string(),
    }
}
