//! Ways out: how this server's connections reach a network, directly or through the proxies that
//! `--egress-selector-config-file` names for it (apiserver's `pkg/server/egressselector`).

pub mod config;
mod http_connect;
mod konnectivity;
pub mod words;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use self::config::{Configuration, Connection, TlsFiles, Transport};
use crate::metrics::Metrics;
use crate::server_trust::{Identity, Trusted, client_config};

/// A network that a server connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    ControlPlane,
    Etcd,
    Cluster,
}

impl Network {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ControlPlane => "controlplane",
            Self::Etcd => "etcd",
            Self::Cluster => "cluster",
        }
    }
}

/// A connection that bytes go through.
pub trait Connected: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connected for T {}

/// A connection to a server, by whatever way.
pub type Stream = Box<dyn Connected>;

/// The ways to the networks of one server. Clones share them; by default all are direct.
#[derive(Clone, Debug, Default)]
pub struct Egresses(Option<Arc<[(Network, Egress)]>>);

/// The way to a network. Clones share it; the default is direct.
#[derive(Clone, Debug, Default)]
pub struct Egress(Way);

#[derive(Clone, Debug, Default)]
enum Way {
    #[default]
    Direct,
    Proxy(Arc<Proxy>),
    /// No connection is made.
    Closed,
}

/// The error of a connection that a branch would have made.
pub const CLOSED: &str = "nothing leaves a branch of a cluster";

/// The addresses of a server (`host:port`) in the order in which they are tried, and the way there.
#[derive(Clone, Debug, Default)]
pub struct Route {
    pub addresses: Vec<String>,
    pub egress: Egress,
}

/// A proxy that makes connections for others.
struct Proxy {
    protocol: Protocol,
    place: Place,
    metrics: Arc<Metrics>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    HttpConnect,
    Grpc,
}

enum Place {
    /// An address, and how TLS is spoken there, to which name.
    Tcp(String, Option<(Arc<ClientConfig>, ServerName<'static>)>),
    Unix(String),
}

impl Egresses {
    /// Reads the files that the configuration names. Blocks.
    pub fn open(configuration: &Configuration, metrics: &Arc<Metrics>) -> Result<Self, String> {
        let open = |(network, connection): &(Network, Connection)| {
            let egress = Egress::open(connection, metrics);
            let egress = egress.map_err(|why| {
                let name = network.as_str();
                format!("failed to create dialer for egressSelection \"{name}\": {why}")
            });
            Ok((*network, egress?))
        };
        Ok(Self(Some(configuration.selections.iter().map(open).collect::<Result<_, String>>()?)))
    }

    /// The egresses of a server that connects to nothing.
    pub fn closed() -> Self {
        let networks = [Network::ControlPlane, Network::Etcd, Network::Cluster];
        Self(Some(networks.map(|network| (network, Egress(Way::Closed))).into()))
    }

    /// The way to a network; direct unless one is configured.
    pub fn to(&self, network: Network) -> Egress {
        self.configured(network).cloned().unwrap_or_default()
    }

    /// The way to a network that somebody relies upon.
    pub fn demanded(&self, network: Network) -> Result<Egress, String> {
        let name = network.as_str();
        if self.0.is_none() {
            return Err(format!("egress lookup required with egress selector type \"{name}\""));
        }
        let found = self.configured(network).cloned();
        found.ok_or_else(|| format!("egress lookup for \"{name}\" is not configured"))
    }

    fn configured(&self, network: Network) -> Option<&Egress> {
        self.0.iter().flat_map(|all| all.iter()).find(|(name, _)| *name == network).map(|(_, egress)| egress)
    }
}

impl Route {
    pub fn of(address: String, egress: Egress) -> Self {
        Self { addresses: vec![address], egress }
    }
}

impl Egress {
    fn open(connection: &Connection, metrics: &Arc<Metrics>) -> Result<Self, String> {
        let (protocol, place) = match connection {
            Connection::Direct => return Ok(Self::default()),
            Connection::HttpConnect(Transport::Unix(path)) => {
                (Protocol::HttpConnect, Place::Unix(path.clone()))
            }
            Connection::HttpConnect(Transport::Tcp { address, tls }) => {
                let tls = tls.as_ref().map(|files| files.open(address)).transpose()?;
                (Protocol::HttpConnect, Place::Tcp(address.clone(), tls))
            }
            Connection::Grpc(path) => (Protocol::Grpc, Place::Unix(path.clone())),
        };
        Ok(Self(Way::Proxy(Arc::new(Proxy { protocol, place, metrics: metrics.clone() }))))
    }

    /// Whether no connection is made.
    pub fn is_closed(&self) -> bool {
        matches!(self.0, Way::Closed)
    }

    /// Connects to `host:port`. Where addresses of the host were checked, only these are connected to, one after the other:
    /// whoever looks the host up again may be told another one. The error is that of the first.
    pub async fn connect(&self, server: &str, checked: &[IpAddr]) -> Result<Stream, String> {
        match &self.0 {
            Way::Closed => Err(format!("dial tcp {server}: {CLOSED}")),
            Way::Direct => {
                let stream = direct(server, checked).await.map_err(|error| words::dial(server, &error))?;
                // What is written has to arrive at once.
                let _ = stream.set_nodelay(true);
                Ok(Box::new(stream))
            }
            Way::Proxy(proxy) if checked.is_empty() => proxy.connect(server).await,
            Way::Proxy(proxy) => {
                let checked = sockets(server, checked).map_err(|error| words::dial(server, &error))?;
                let mut first = None;
                for socket in checked {
                    match proxy.connect(&socket.to_string()).await {
                        Ok(stream) => return Ok(stream),
                        Err(why) => first = first.or(Some(why)),
                    }
                }
                Err(first.unwrap_or_default())
            }
        }
    }
}

async fn direct(server: &str, checked: &[IpAddr]) -> io::Result<TcpStream> {
    if checked.is_empty() {
        return TcpStream::connect(server).await;
    }
    TcpStream::connect(&*sockets(server, checked)?).await
}

/// These addresses with the port of `host:port`.
fn sockets(server: &str, addresses: &[IpAddr]) -> io::Result<Vec<SocketAddr>> {
    let port = server.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
    let port: u16 = port.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "invalid port value"))?;
    Ok(addresses.iter().map(|ip| SocketAddr::new(*ip, port)).collect())
}

impl Proxy {
    async fn connect(&self, server: &str) -> Result<Stream, String> {
        let (protocol, transport) = (self.protocol.as_str(), self.place.transport());
        let began = Instant::now();
        self.metrics.egress_dial_started(protocol, transport);
        let failed_at = |stage| self.metrics.egress_dial_failed(protocol, transport, stage);
        let proxy = self.place.connect().await.inspect_err(|_| failed_at("connect"))?;
        let tunnel = match self.protocol {
            Protocol::HttpConnect => http_connect::tunnel(proxy, self.place.name(), server).await,
            Protocol::Grpc => konnectivity::tunnel(proxy, server).await,
        };
        let stream = tunnel.inspect_err(|_| failed_at("proxy"))?;
        self.metrics.egress_dialled(protocol, transport, began.elapsed());
        Ok(stream)
    }
}

impl Protocol {
    /// The name in metrics.
    const fn as_str(self) -> &'static str {
        match self {
            Self::HttpConnect => "http_connect",
            Self::Grpc => "grpc",
        }
    }
}

impl Place {
    /// The name in metrics.
    const fn transport(&self) -> &'static str {
        match self {
            Self::Tcp(..) => "tcp",
            Self::Unix(_) => "uds",
        }
    }

    fn name(&self) -> &str {
        match self {
            Self::Tcp(name, _) | Self::Unix(name) => name,
        }
    }

    async fn connect(&self) -> Result<Stream, String> {
        match self {
            Self::Unix(path) => match UnixStream::connect(path).await {
                Ok(stream) => Ok(Box::new(stream)),
                Err(error) => Err(format!("dial unix {path}: connect: {}", words::system(&error))),
            },
            Self::Tcp(address, tls) => {
                let stream =
                    TcpStream::connect(address).await.map_err(|error| words::dial(address, &error))?;
                let _ = stream.set_nodelay(true);
                let Some((tls, name)) = tls else { return Ok(Box::new(stream)) };
                let stream = TlsConnector::from(tls.clone()).connect(name.clone(), stream).await;
                Ok(Box::new(stream.map_err(|error| words::handshake(&error))?))
            }
        }
    }
}

impl TlsFiles {
    /// The settings of TLS, and the name of the proxy at `host:port`.
    fn open(&self, address: &str) -> Result<(Arc<ClientConfig>, ServerName<'static>), String> {
        let (certificate, key) = (self.client_certificate.display(), self.client_key.display());
        let identity = identity(&self.client_certificate, &self.client_key)
            .map_err(|why| format!("failed to read key pair {certificate} & {key}, got {why}"))?;
        let trusted = match &self.authorities {
            None => Trusted::system(),
            Some(path) => {
                let failed =
                    |error: io::Error| format!("failed to read cert file {}, got {error}", path.display());
                let bundle = std::fs::read(path).map_err(failed)?;
                Trusted::of_bundle(&bundle).map_err(|_| "failed to append CA cert to the cert pool")?
            }
        };
        let mut tls = client_config(Some(trusted), Some(identity))?;
        Arc::make_mut(&mut tls).alpn_protocols.clear();
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = if self.server_name.is_empty() { host } else { &self.server_name };
        let name = ServerName::try_from(name.to_owned()).map_err(|error| error.to_string())?;
        Ok((tls, name))
    }
}

fn identity(certificate: &Path, key: &Path) -> Result<Identity, String> {
    let chain = std::fs::read(certificate).map_err(|error| error.to_string())?;
    let chain = CertificateDer::pem_slice_iter(&chain).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| error.to_string())?;
    if chain.is_empty() {
        return Err("tls: failed to find any PEM data in certificate input".to_owned());
    }
    let key = std::fs::read(key).map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(&key);
    Ok((chain, key.map_err(|_| "tls: failed to find any PEM data in key input")?))
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, place, .. } = self;
        f.debug_struct("Proxy").field("protocol", protocol).field("at", &place.name()).finish()
    }
}
