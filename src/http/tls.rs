//! TLS for the listener: HTTP/2 and HTTP/1.1 by ALPN, with optional client certificates.
//!
//! Like kube-apiserver's, the handshake accepts any client certificate whose key the client has; the CA is checked
//! afterwards. So a certificate of an unknown CA means an unauthenticated client instead of a connection that fails
//! with an obscure alert. The check is repeated when time, or a change of the CAs, may have changed its result
//! ([`ClientCertificates`]).

mod client;
mod settings;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ProducesTickets;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DistinguishedName, ServerConfig};

use self::client::Judges;
pub use self::client::{ClientCertificates, ClientTrust};
use self::settings::Resolver;
pub use self::settings::{Http2, NamedCertificate, Oldest, Settings};
use crate::auth::authn::FrontProxy;
use crate::auth::trust::Trust;
use crate::wall_clock::WallClock;
use crate::x509::{self, Certificate, Pool, Purpose};

/// Why certificates or a key cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the client CA cannot be used: {0}")]
    ClientCa(String),
    #[error("the serving certificate and key cannot be used: {0}")]
    Serving(rustls::Error),
    #[error("TLS cannot be set up: {0}")]
    Setup(rustls::Error),
}

/// The certificate with which the server authenticates itself.
#[derive(Debug)]
pub struct ServingCertificate {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

impl Clone for ServingCertificate {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

impl PartialEq for ServingCertificate {
    fn eq(&self, other: &Self) -> bool {
        self.chain == other.chain && self.key == other.key
    }
}

/// All certificates of a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificates {
    pub default: ServingCertificate,
    /// The certificates for clients that ask for certain names.
    pub named: Vec<NamedCertificate>,
}

impl From<ServingCertificate> for Certificates {
    fn from(default: ServingCertificate) -> Self {
        Self { default, named: Vec::new() }
    }
}

/// The CAs of client certificates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Authorities {
    /// The CAs of users.
    pub users: Vec<CertificateDer<'static>>,
    /// The CAs of front proxies, if there are any.
    pub proxies: Option<Proxies>,
}

/// The front proxies, which may pass on requests of others.
#[derive(Clone, Debug, PartialEq)]
pub struct Proxies {
    pub authorities: Vec<CertificateDer<'static>>,
    /// The common names of proxies; empty for any.
    pub names: Vec<String>,
}

impl Authorities {
    /// The CAs in the form in which other servers read them, with the headers of proxies.
    pub fn trust(&self, front_proxy: FrontProxy) -> Trust {
        let proxies = self.proxies.as_ref().map(|proxies| proxies.authorities.clone());
        Trust { users: self.users.clone(), proxies: proxies.unwrap_or_default(), front_proxy }
    }
}

impl From<Vec<CertificateDer<'static>>> for Authorities {
    fn from(users: Vec<CertificateDer<'static>>) -> Self {
        Self { users, proxies: None }
    }
}

/// The TLS configuration of a listener, shared by all connections. Clones share their state.
#[derive(Clone, Debug)]
pub struct Tls {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    provider: Arc<CryptoProvider>,
    settings: Settings,
    /// Survives a change of the certificate, so that sessions can be resumed after it.
    tickets: Arc<dyn ProducesTickets>,
    current: ArcSwap<Current>,
    trust: ClientTrust,
}

/// The present certificate.
#[derive(Debug)]
struct Current {
    config: Arc<ServerConfig>,
    /// The configurations for connections at addresses that have a certificate of their own.
    by_address: HashMap<IpAddr, Arc<ServerConfig>>,
}

/// Checks whether some CAs have signed a client's certificate.
#[derive(Debug)]
struct Verifier {
    roots: Pool,
}

impl Tls {
    pub fn new(
        certificates: impl Into<Certificates>,
        authorities: impl Into<Authorities>,
        settings: Settings,
        clock: WallClock,
    ) -> Result<Self, Error> {
        let provider = Arc::new(settings.narrow(&aws_lc_rs::default_provider()));
        let tickets = aws_lc_rs::Ticketer::new().map_err(Error::Setup)?;
        let trust = ClientTrust::new(&authorities.into(), clock)?;
        let current = Current::new(&provider, &tickets, &settings, certificates.into(), trust.names())?;
        let current = ArcSwap::from_pointee(current);
        Ok(Self { shared: Arc::new(Shared { provider, settings, tickets, current, trust }) })
    }

    /// Replaces the serving certificates for new connections, and the trusted CAs for all connections. If the new ones
    /// cannot be used, nothing changes.
    pub fn replace(
        &self,
        certificates: impl Into<Certificates>,
        authorities: impl Into<Authorities>,
    ) -> Result<(), Error> {
        let Shared { provider, settings, tickets, current, trust } = &*self.shared;
        let judges = Judges::new(&authorities.into())?;
        let next = Current::new(provider, tickets, settings, certificates.into(), judges.names())?;
        current.store(Arc::new(next));
        trust.install(judges);
        Ok(())
    }

    /// The configuration for the next handshake, at this address of the server.
    pub fn config(&self, local: Option<IpAddr>) -> Arc<ServerConfig> {
        let current = self.shared.current.load();
        let own = local.and_then(|address| current.by_address.get(&address.to_canonical()));
        own.unwrap_or(&current.config).clone()
    }

    /// The client whose handshake has finished; `None` if it showed no certificate.
    pub fn client(&self, chain: &[CertificateDer<'_>]) -> Option<ClientCertificates> {
        let chain: Vec<_> = chain.iter().map(|certificate| certificate.clone().into_owned()).collect();
        (!chain.is_empty()).then(|| ClientCertificates::new(chain))
    }

    /// The CAs that the handshake announces, if the listener has one cluster.
    pub fn trust(&self) -> &ClientTrust {
        &self.shared.trust
    }
}

impl Current {
    fn new(
        provider: &Arc<CryptoProvider>,
        tickets: &Arc<dyn ProducesTickets>,
        settings: &Settings,
        certificates: Certificates,
        hints: Vec<DistinguishedName>,
    ) -> Result<Self, Error> {
        let resolver = Arc::new(Resolver::new(certificates, provider)?);
        let mut config = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(settings.versions())
            .map_err(Error::Setup)?
            .with_client_cert_verifier(Arc::new(Unjudged { hints }))
            .with_cert_resolver(resolver.clone());
        config.alpn_protocols = settings.protocols();
        config.ticketer = tickets.clone();
        let at_address = |(address, resolver): (IpAddr, Resolver)| {
            let mut own = config.clone();
            own.cert_resolver = Arc::new(resolver);
            (address, Arc::new(own))
        };
        let by_address = resolver.by_address().into_iter().map(at_address).collect();
        Ok(Self { config: Arc::new(config), by_address })
    }
}

impl Verifier {
    /// Each certificate has to be one that Go reads. Whether it may sign for clients is asked with each of theirs.
    fn new<'a>(authorities: impl IntoIterator<Item = &'a CertificateDer<'static>>) -> Result<Self, Error> {
        let parsed = authorities.into_iter().map(|authority| Certificate::parse(authority));
        let roots =
            parsed.collect::<Result<Pool, _>>().map_err(|error| Error::ClientCa(error.to_string()))?;
        Ok(Self { roots })
    }

    fn names(&self) -> impl Iterator<Item = DistinguishedName> {
        let subject = |authority: &Certificate| DistinguishedName::from(authority.raw_subject().to_vec());
        self.roots.certificates().iter().map(subject)
    }

    /// `now` is in seconds since the epoch.
    fn verify(&self, leaf: &Certificate, intermediates: &Pool, now: i64) -> Result<(), x509::Error> {
        let (roots, purpose) = (&self.roots, Purpose::Client);
        x509::verify(leaf, &x509::Options { intermediates, roots, purpose, host: None, now })
    }
}

/// Accepts in the handshake every certificate that Go reads and whose key the client has; [`ClientCertificates`] checks
/// the CA later.
#[derive(Debug)]
struct Unjudged {
    /// The names of the CAs, of which clients choose their certificates.
    hints: Vec<DistinguishedName>,
}

impl ClientCertVerifier for Unjudged {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        for certificate in [end_entity].into_iter().chain(intermediates) {
            Certificate::parse(certificate)?;
        }
        Ok(ClientCertVerified::assertion())
    }

    x509::handshake_signatures!();
}
