//! The flags about the listener: its address, certificates, TLS, and headers for browsers.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use axum::http::HeaderValue;
use clap::{ArgAction, Args};
use rustls::{CipherSuite, NamedGroup};

use crate::auth::pki::{NamedFiles, Overrides};
use crate::http::door::cors::Cors;
use crate::http::server;
use crate::http::tls::{Http2, Oldest, Settings};
use crate::server::config::Https;

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Secure serving flags")]
pub struct TlsArgs {
    /// The IP address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    bind_address: IpAddr,

    /// The port to serve HTTPS on; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 6443)]
    secure_port: u16,

    /// The x509 certificate for HTTPS in PEM, followed by intermediate certificates [default: one issued by the data
    /// directory's CA]
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    tls_cert_file: Option<PathBuf>,

    /// The private key of --tls-cert-file in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    tls_private_key_file: Option<PathBuf>,

    /// The minimum TLS version: VersionTLS12 or VersionTLS13 [default: VersionTLS12]
    #[arg(long, value_name = "VERSION", default_value = "", hide_default_value = true, value_parser = oldest)]
    tls_min_version: Oldest,

    /// The allowed cipher suites of TLS 1.2, by Go's names [default: all that are supported]
    #[arg(long, value_name = "SUITE,…", default_value = "", hide_default_value = true, value_parser = suites)]
    tls_cipher_suites: Suites,

    /// The allowed key exchange mechanisms, by Go's numbers: 23 (P-256), 24 (P-384), 29 (X25519), 4588 (X25519MLKEM768)
    /// [default: all of them]
    #[arg(long, value_name = "NUMBER,…", default_value = "", hide_default_value = true, value_parser = groups)]
    tls_curve_preferences: Groups,

    /// A certificate and its key for clients that ask for the given names, or else for the names in the certificate:
    /// foo.crt,foo.key:*.foo.com,foo.com. Can be given more than once
    #[arg(long, value_name = "CERT,KEY[:NAME,…]", value_parser = named_files)]
    tls_sni_cert_key: Vec<NamedFiles>,

    /// Disables HTTP/2
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    disable_http2_serving: bool,

    /// The directives of the Strict-Transport-Security header: max-age=SECONDS, includeSubDomains, preload [default: no
    /// header]
    #[arg(long, value_name = "DIRECTIVE,…", default_value = "", hide_default_value = true, value_parser = directives, help_heading = "Generic flags")]
    strict_transport_security_directives: Directives,

    /// The origins allowed for CORS, as regular expressions that mark the start and end of the host:
    /// //example\.com(:|$) [default: CORS is disabled]
    #[arg(long, value_name = "REGEX,…", default_value = "", hide_default_value = true, value_parser = origins, help_heading = "Generic flags")]
    cors_allowed_origins: Origins,

    /// Additional host names or IP addresses for the serving certificate that this server issues
    #[arg(long, value_name = "HOST", value_delimiter = ',')]
    tls_san: Vec<String>,

    /// The maximum number of concurrent requests on an HTTP/2 connection, watches included; 0 means the default
    #[arg(long, value_name = "STREAMS", default_value_t = server::Limits::default().streams)]
    http2_max_streams_per_connection: u32,
}

/// Values of flags that are lists.
#[derive(Clone, Debug)]
struct Suites(Vec<CipherSuite>);
#[derive(Clone, Debug)]
struct Groups(Vec<NamedGroup>);
#[derive(Clone, Debug)]
struct Directives(Option<HeaderValue>);
#[derive(Clone, Debug)]
struct Origins(Option<Arc<Cors>>);

impl TlsArgs {
    pub fn into_config(self) -> Https {
        let usual = server::Limits::default();
        let streams = match self.http2_max_streams_per_connection {
            0 => usual.streams,
            streams => streams,
        };
        Https {
            address: SocketAddr::new(self.bind_address, self.secure_port),
            certificates: Overrides {
                serving: self.tls_cert_file.zip(self.tls_private_key_file),
                named: self.tls_sni_cert_key,
                ..Overrides::default()
            },
            tls: Settings {
                oldest: self.tls_min_version,
                cipher_suites: self.tls_cipher_suites.0,
                groups: self.tls_curve_preferences.0,
                http2: if self.disable_http2_serving { Http2::Off } else { Http2::Offered },
            },
            strict_transport_security: self.strict_transport_security_directives.0,
            cors: self.cors_allowed_origins.0,
            extra_names: self.tls_san,
            token_auth_file: None,
            connections: server::Limits { streams, ..usual },
            kubeconfig: None,
        }
    }
}

fn oldest(text: &str) -> Result<Oldest, String> {
    match text {
        "" | "VersionTLS12" => Ok(Oldest::Tls12),
        "VersionTLS13" => Ok(Oldest::Tls13),
        "VersionTLS10" | "VersionTLS11" => Err("TLS 1.0 and 1.1 are not supported".to_owned()),
        other => Err(format!("unknown tls version {}", crate::gotext::quote(other))),
    }
}

/// Go's names of the suites that the TLS library has.
const SUITES: [(&str, CipherSuite); 11] = [
    ("TLS_AES_128_GCM_SHA256", CipherSuite::TLS13_AES_128_GCM_SHA256),
    ("TLS_AES_256_GCM_SHA384", CipherSuite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", CipherSuite::TLS13_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305", CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    (
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        CipherSuite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ),
    ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", CipherSuite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
    ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", CipherSuite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];
/// Go's names of suites that are too weak for the TLS library.
const WEAK: [&str; 16] = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_RSA_WITH_RC4_128_SHA",
];

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|item| !item.is_empty())
}

/// A suite that the TLS library lacks is refused: who names it counts on it.
fn suites(text: &str) -> Result<Suites, String> {
    let suite = |name: &str| match SUITES.iter().find(|(known, _)| *known == name) {
        Some((_, suite)) => Ok(*suite),
        None if WEAK.contains(&name) => Err(format!(
            "Cipher suite {name} cannot be served: rowplane's TLS library has no RSA key exchange and no CBC, 3DES or RC4"
        )),
        None => Err(format!("Cipher suite {name} not supported or doesn't exist")),
    };
    items(text).map(suite).collect::<Result<_, _>>().map(Suites)
}

fn groups(text: &str) -> Result<Groups, String> {
    let mut found = Vec::new();
    for number in items(text) {
        let group = match number {
            "23" => NamedGroup::secp256r1,
            "24" => NamedGroup::secp384r1,
            "29" => NamedGroup::X25519,
            "4588" => NamedGroup::X25519MLKEM768,
            "25" | "4587" | "4589" => {
                return Err(format!(
                    "curve preference {number} cannot be served: rowplane's TLS library has 23, 24, 29 and 4588"
                ));
            }
            other => return Err(format!("curve preference {other} is not supported")),
        };
        if found.contains(&group) {
            return Err(format!("duplicate curve preference {number}"));
        }
        found.push(group);
    }
    Ok(Groups(found))
}

fn named_files(text: &str) -> Result<NamedFiles, String> {
    let (files, names) = match text.split_once(':') {
        None => (text, Vec::new()),
        Some((_, names)) if names.trim().is_empty() => {
            return Err("empty names list is not allowed".to_owned());
        }
        Some((files, names)) => (files, names.split(',').map(|name| name.trim().to_owned()).collect()),
    };
    let files: Vec<&str> = files.split(',').map(str::trim).collect();
    let [certificate, key] = files[..] else {
        return Err("expected comma separated certificate and key file paths".to_owned());
    };
    Ok(NamedFiles { certificate: PathBuf::from(certificate), key: PathBuf::from(key), names })
}

fn directives(text: &str) -> Result<Directives, String> {
    if text.is_empty() {
        return Ok(Directives(None));
    }
    for directive in text.split(',') {
        if directive.trim().is_empty() {
            return Err("empty value in strict-transport-security-directives".to_owned());
        }
        let is_age = matches!(directive.split('=').collect::<Vec<_>>()[..], ["max-age", _]);
        if !is_age && directive != "includeSubDomains" && directive != "preload" {
            return Err("--strict-transport-security-directives invalid, allowed values: max-age=expireTime, \
                        includeSubDomains, preload. see https://tools.ietf.org/html/rfc6797#section-6.1 for more \
                        information"
                .to_owned());
        }
    }
    let value = HeaderValue::from_str(&text.split(',').collect::<Vec<_>>().join("; "));
    value.map(|value| Directives(Some(value))).map_err(|error| error.to_string())
}

fn origins(text: &str) -> Result<Origins, String> {
    if text.is_empty() {
        return Ok(Origins(None));
    }
    Cors::new(text.split(',')).map(|cors| Origins(Some(Arc::new(cors))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_gos() {
        assert_eq!(suites("").expect("none").0, []);
        let found = suites("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256").expect("one").0;
        assert_eq!(found, [CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]);
        let why = suites("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,TLS_RSA_WITH_AES_128_CBC_SHA").map(drop);
        assert!(why.expect_err("refused").contains("TLS_RSA_WITH_AES_128_CBC_SHA cannot be served"));
        assert_eq!(
            suites("TLS_X").map(|_| ()),
            Err("Cipher suite TLS_X not supported or doesn't exist".to_owned())
        );
        assert_eq!(oldest("VersionTLS13"), Ok(Oldest::Tls13));
        assert_eq!(oldest("1.3").err().as_deref(), Some("unknown tls version \"1.3\""));
        assert!(oldest("VersionTLS11").is_err());
        assert_eq!(groups("29, 23").expect("both").0, [NamedGroup::X25519, NamedGroup::secp256r1]);
        assert_eq!(groups("4588").expect("one").0, [NamedGroup::X25519MLKEM768]);
        let why = |text| groups(text).map(drop).expect_err("refused");
        assert!(why("23,25").starts_with("curve preference 25 cannot be served"));
        assert_eq!(why("29,29"), "duplicate curve preference 29");
        assert_eq!(why("1"), "curve preference 1 is not supported");
    }

    #[test]
    fn certificates_by_name() {
        let named = named_files("foo.crt, foo.key: *.foo.com,foo.com").expect("good");
        assert_eq!((named.certificate, named.key), ("foo.crt".into(), "foo.key".into()));
        assert_eq!(named.names, ["*.foo.com", "foo.com"]);
        assert_eq!(named_files("a,b").expect("good").names, [""; 0]);
        assert_eq!(named_files("a,b:").err().as_deref(), Some("empty names list is not allowed"));
        for wrong in ["a", "a,b,c", ""] {
            let why = "expected comma separated certificate and key file paths";
            assert_eq!(named_files(wrong).err().as_deref(), Some(why));
        }
    }

    #[test]
    fn what_browsers_are_told() {
        let value = |text| directives(text).map(|found| found.0);
        assert_eq!(value(""), Ok(None));
        let both = HeaderValue::from_static("max-age=31536000; includeSubDomains");
        assert_eq!(value("max-age=31536000,includeSubDomains"), Ok(Some(both)));
        for wrong in ["max-age", "max-age=1=2", "other", "preload,,"] {
            assert!(value(wrong).is_err(), "{wrong}");
        }
    }
}
