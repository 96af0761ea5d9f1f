//! How connections are made: versions, cipher suites, key exchanges, and certificates by the name that a client asks for.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{CipherSuite, NamedGroup, SupportedProtocolVersion};

use super::{Certificates, Error, ServingCertificate};
use crate::x509::Certificate;

/// The settings of flags. The defaults are those of the TLS library.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    pub oldest: Oldest,
    /// The cipher suites of TLS 1.2 that may be used; all if empty. TLS 1.3 has its own, which are not chosen.
    pub cipher_suites: Vec<CipherSuite>,
    /// The key exchanges that may be used; all if empty.
    pub groups: Vec<NamedGroup>,
    pub http2: Http2,
}

/// The oldest version of TLS that is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Oldest {
    #[default]
    Tls12,
    Tls13,
}

/// Whether HTTP/2 is offered beside HTTP/1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Http2 {
    #[default]
    Offered,
    Off,
}

/// A certificate for clients that ask for certain names.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedCertificate {
    pub certificate: ServingCertificate,
    /// Domains, also with `*` for their first label. If there are none, the certificate's own.
    pub names: Vec<String>,
}

impl Settings {
    pub(super) fn versions(&self) -> &'static [&'static SupportedProtocolVersion] {
        const BOTH: &[&SupportedProtocolVersion] = &[&TLS13, &TLS12];
        match self.oldest {
            Oldest::Tls12 => BOTH,
            Oldest::Tls13 => &BOTH[..1],
        }
    }

    pub(super) fn protocols(&self) -> Vec<Vec<u8>> {
        match self.http2 {
            Http2::Offered => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Http2::Off => vec![b"http/1.1".to_vec()],
        }
    }

    /// The provider with what the settings permit.
    pub(super) fn narrow(&self, provider: &CryptoProvider) -> CryptoProvider {
        let mut provider = provider.clone();
        let (suites, groups) = (&self.cipher_suites, &self.groups);
        provider
            .cipher_suites
            .retain(|suite| suite.tls13().is_some() || suites.is_empty() || suites.contains(&suite.suite()));
        provider.kx_groups.retain(|group| groups.is_empty() || groups.contains(&group.name()));
        provider
    }
}

/// Chooses the certificate by the name that a client asks for, as Go does. Whoever asks for an address names nothing in
/// the handshake, and gets the certificate of the address at which it has connected.
#[derive(Clone, Debug)]
pub(super) struct Resolver {
    default: Arc<CertifiedKey>,
    /// The certificate for clients that name nothing.
    nameless: Arc<CertifiedKey>,
    by_name: Arc<HashMap<String, Arc<CertifiedKey>>>,
}

impl Resolver {
    pub fn new(certificates: Certificates, provider: &CryptoProvider) -> Result<Self, Error> {
        let Certificates { default, named } = certificates;
        let mut by_name = HashMap::new();
        let mut explicit = HashMap::new();
        // Of several certificates for a name, the first one counts; names that were given count more than those in
        // certificates.
        for NamedCertificate { certificate, names } in named.into_iter().rev() {
            let own = certificate.chain.first().map(own_names).unwrap_or_default();
            let key = certified(certificate, provider)?;
            let (map, names) = if names.is_empty() { (&mut by_name, own) } else { (&mut explicit, names) };
            map.extend(names.iter().map(|name| (name.to_ascii_lowercase(), key.clone())));
        }
        by_name.extend(explicit);
        let default = certified(default, provider)?;
        Ok(Self { nameless: default.clone(), default, by_name: Arc::new(by_name) })
    }

    /// The resolvers for connections at addresses that have a certificate of their own.
    pub fn by_address(&self) -> HashMap<IpAddr, Self> {
        let addresses = self.by_name.iter().filter_map(|(name, key)| Some((name.parse().ok()?, key)));
        addresses.map(|(address, key)| (address, Self { nameless: key.clone(), ..self.clone() })).collect()
    }

    fn find(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        let name = name.to_ascii_lowercase();
        let wildcard = || {
            let (_, rest) = name.split_once('.')?;
            self.by_name.get(&format!("*.{rest}"))
        };
        self.by_name.get(&name).or_else(wildcard)
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(match hello.server_name() {
            Some(name) => self.find(name).unwrap_or(&self.default).clone(),
            None => self.nameless.clone(),
        })
    }
}

fn certified(serving: ServingCertificate, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, Error> {
    let certified = CertifiedKey::from_der(serving.chain, serving.key, provider);
    certified.map(Arc::new).map_err(Error::Serving)
}

/// The names of a certificate: its common name, unless that is an address, and its domains.
fn own_names(certificate: &CertificateDer<'static>) -> Vec<String> {
    let Ok(certificate) = Certificate::parse(certificate) else { return Vec::new() };
    let common = certificate.subject_name.common_name();
    let common = (!common.is_empty() && common.parse::<IpAddr>().is_err()).then(|| common.to_owned());
    let domains = certificate.extensions.names.map(|names| names.dns).unwrap_or_default();
    common.into_iter().chain(domains).collect()
}

#[cfg(test)]
mod tests {
    use rustls::crypto::aws_lc_rs;
    use rustls::pki_types::PrivateKeyDer;

    use super::*;

    fn certificate(name: &str) -> ServingCertificate {
        let key = rcgen::KeyPair::generate().expect("a key");
        let params = rcgen::CertificateParams::new([name.to_owned()]).expect("a name");
        let chain = vec![params.self_signed(&key).expect("a certificate").der().clone()];
        ServingCertificate { chain, key: PrivateKeyDer::Pkcs8(key.serialize_der().into()) }
    }

    fn named(certificate: ServingCertificate, names: &[&str]) -> NamedCertificate {
        NamedCertificate { certificate, names: names.iter().map(|name| (*name).to_owned()).collect() }
    }

    #[test]
    fn auth_111_addresses_have_certificates_only_if_they_are_named() {
        let [default, given, own] = ["kubernetes", "10.0.0.1", "10.0.0.2"].map(certificate);
        let first = given.chain.clone();
        let named = vec![named(given, &["10.0.0.1", "fd00::1", "a.example.com"]), named(own, &[])];
        let certificates = Certificates { default: default.clone(), named };
        let resolver = Resolver::new(certificates, &aws_lc_rs::default_provider()).expect("a resolver");
        assert_eq!(resolver.nameless.cert, default.chain);
        let by_address = resolver.by_address();
        let mut addresses: Vec<IpAddr> = by_address.keys().copied().collect();
        addresses.sort();
        assert_eq!(
            addresses,
            ["10.0.0.1", "fd00::1"].map(|text| text.parse::<IpAddr>().expect("an address"))
        );
        for own in by_address.values() {
            assert_eq!((&own.nameless.cert, &own.default.cert), (&first, &default.chain));
            assert_eq!(own.find("A.example.com").map(|key| &key.cert), Some(&first));
        }
    }
}
