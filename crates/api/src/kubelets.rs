//! How kubelets are reached: at which address of their Nodes, and with which certificates.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::egress::Egress;
use crate::error::Error;
use crate::relay::Address;
use crate::server_trust::{Identity, Trusted, client_config};
use crate::tree::Value;
use crate::{ObjectMap, fields};

/// The settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The certificate that the server shows to kubelets, and its key.
    pub client_certificate: Option<(PathBuf, PathBuf)>,
    /// The authorities of kubelets' certificates; `None` believes all of them.
    pub authorities: Option<PathBuf>,
    /// The types of a Node's addresses, the best first.
    pub address_types: Vec<String>,
    /// The port of Nodes that tell none.
    pub port: u16,
    /// The limit of an upgraded connection for each direction, in bytes per second.
    pub most_bytes: Option<NonZeroU64>,
}

impl Default for Config {
    fn default() -> Self {
        let address_types = ["Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP"];
        Self {
            client_certificate: None,
            authorities: None,
            address_types: address_types.map(str::to_owned).into(),
            port: 10250,
            most_bytes: None,
        }
    }
}

/// Finds kubelets. Files are read again for each connection, since there are few, and used if they have changed.
#[derive(Debug)]
pub struct Kubelets {
    config: Config,
    loaded: Mutex<Loaded>,
    /// The configuration for Pods and Services, which are believed, and shown no certificate.
    anonymous: Arc<ClientConfig>,
    /// The way to the cluster's network.
    egress: Egress,
}

/// The settings of TLS towards kubelets.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The configuration by the flags.
    pub usual: Arc<ClientConfig>,
    /// The configuration that believes every kubelet.
    pub unverified: Arc<ClientConfig>,
}

#[derive(Debug)]
struct Loaded {
    files: Files,
    tls: Tls,
}

/// The content of the files of certificate, key and authorities.
#[derive(Debug, Default, PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authorities: Option<Vec<u8>>,
}

impl Kubelets {
    /// Reads the files for the first time. `egress` leads to the cluster's network. Blocks.
    pub fn new(config: Config, egress: Egress) -> Result<Self, String> {
        let files = Files::read(&config)?;
        let loaded = Mutex::new(Loaded { tls: files.tls()?, files });
        Ok(Self { loaded, config, anonymous: client_config(None, None)?, egress })
    }

    pub fn config(&self) -> &Config {
        &self.config
    }

    /// See [`Kubelets::anonymous`].
    pub fn anonymous(&self) -> Arc<ClientConfig> {
        self.anonymous.clone()
    }

    /// The way to the cluster's network.
    pub fn egress(&self) -> Egress {
        self.egress.clone()
    }

    /// The settings by the files as they are now. Files that cannot be used change nothing.
    pub async fn tls(&self) -> Tls {
        if self.config.client_certificate.is_some() || self.config.authorities.is_some() {
            let config = self.config.clone();
            match tokio::task::spawn_blocking(move || Files::read(&config)).await {
                Ok(Ok(files)) => self.take(files),
                Ok(Err(error)) => tracing::warn!(%error, "certificates for kubelets cannot be read"),
                Err(error) => tracing::error!(%error, "reading certificates for kubelets has failed"),
            }
        }
        self.loaded().tls.clone()
    }

    fn take(&self, files: Files) {
        let mut loaded = self.loaded();
        if loaded.files == files {
            return;
        }
        match files.tls() {
            Ok(tls) => *loaded = Loaded { files, tls },
            Err(error) => tracing::warn!(%error, "certificates for kubelets cannot be used"),
        }
    }

    fn loaded(&self) -> std::sync::MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The address of a Node's kubelet.
    pub async fn address(&self, node: &ObjectMap) -> Result<Address, Error> {
        let host = self.host(node)?;
        let tls = Some(self.tls().await.usual);
        Ok(Address {
            host,
            port: self.port(node).to_string(),
            tls,
            checked: Vec::new(),
            egress: self.egress(),
        })
    }

    /// The first address of the best type that the Node has.
    fn host(&self, node: &ObjectMap) -> Result<String, Error> {
        let addresses = fields::items(node, &["status", "addresses"]);
        let text = |address: &Value, field: &str| {
            address.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let of_type = |wanted: &String| addresses.iter().find(|address| text(address, "type") == *wanted);
        if let Some(found) = self.config.address_types.iter().find_map(of_type) {
            return Ok(text(found, "address"));
        }
        let known = addresses.iter().map(|one| format!("{{{} {}}}", text(one, "type"), text(one, "address")));
        let known = known.collect::<Vec<_>>().join(" ");
        Err(Error::Unclassified(format!("no preferred addresses found; known addresses: [{known}]")))
    }

    fn port(&self, node: &ObjectMap) -> u64 {
        let told = fields::at(node, &["status", "daemonEndpoints", "kubeletEndpoint", "Port"]);
        told.and_then(Value::as_u64).filter(|port| *port > 0).unwrap_or(u64::from(self.config.port))
    }
}

/// The command that makes the certificate and key for kubelets, where `--data-dir` has its default.
const ISSUED_BY: &str = "`rowplane certs issue apiserver-kubelet-client`";

impl Files {
    fn read(config: &Config) -> Result<Self, String> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        let (certificate, key) = match &config.client_certificate {
            Some((certificate, key)) => {
                let both = read(certificate).and_then(|chain| Ok((chain, read(key)?)));
                both.map_err(|error| match certificate.exists() && key.exists() {
                    true => error,
                    false => format!("{error}; {ISSUED_BY} makes the two"),
                })?
            }
            None => Default::default(),
        };
        let authorities = config.authorities.as_deref().map(read).transpose()?;
        Ok(Self { certificate, key, authorities })
    }

    fn tls(&self) -> Result<Tls, String> {
        let trusted = self.authorities.as_deref().map(Trusted::of_bundle).transpose()?;
        Ok(Tls {
            usual: client_config(trusted, self.identity()?)?,
            unverified: client_config(None, self.identity()?)?,
        })
    }

    fn identity(&self) -> Result<Option<Identity>, String> {
        if self.certificate.is_empty() {
            return Ok(None);
        }
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        Ok(Some((chain, key.map_err(|error| format!("the key for kubelets cannot be read: {error}"))?)))
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err("a file for kubelets holds no certificate".to_owned()),
        found => found.map_err(|error| format!("a certificate for kubelets cannot be read: {error}")),
    }
}
