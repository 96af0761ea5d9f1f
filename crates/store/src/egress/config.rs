//! The file of `--egress-selector-config-file` (`EgressSelectorConfiguration`), checked as upstream's
//! `ValidateEgressSelectorConfiguration` does.

use std::path::{Path, PathBuf};

use super::Network;
use crate::causes::{Cause, aggregate};
use crate::config_file::{self, Reader};
use crate::gotext::{json, quote};
use crate::tree::{Map, Value, json};

const KIND: &str = "EgressSelectorConfiguration";
const TYPES: [(&str, &str); 2] = [("apiserver.k8s.io/v1beta1", KIND), ("apiserver.k8s.io/v1alpha1", KIND)];
/// The path of a connection in errors, which names no element.
const CONNECTION: &str = "service.connection";

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The ways to networks, at most one for each.
    pub selections: Vec<(Network, Connection)>,
}

/// The way to a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connection {
    Direct,
    HttpConnect(Transport),
    /// Konnectivity's protocol, at a Unix socket.
    Grpc(String),
}

/// The place of a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// `host:port`, and the files of TLS if that is spoken.
    Tcp { address: String, tls: Option<TlsFiles> },
    /// The path of a Unix socket.
    Unix(String),
}

/// Files that a proxy is spoken to with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The file of the CAs of the proxy's certificate; `None` for those of the system.
    pub authorities: Option<PathBuf>,
    pub client_certificate: PathBuf,
    pub client_key: PathBuf,
    /// The name that the proxy's certificate has to be of; empty for its host.
    pub server_name: String,
}

/// Reads the file. The error is upstream's.
pub fn load(path: &Path) -> Result<Configuration, String> {
    let text = std::fs::read(path).map_err(|error| {
        let why = super::words::system(&error);
        let shown = path.display();
        format!(
            "failed to read egress selector config: unable to read egress selector configuration from {} [open {shown}: {why}]",
            quote(&shown.to_string()),
        )
    })?;
    parse(&text)
}

/// Reads the text of the file.
pub fn parse(text: &[u8]) -> Result<Configuration, String> {
    let read = config_file::read(text, &TYPES, |reader, root| {
        reader.known(root, "", &["apiVersion", "kind", "egressSelections"]);
        let go = (KIND, "[]v1beta1.EgressSelection");
        reader.list(root, "egressSelections", "egressSelections", go, selection)
    });
    let read = read.map_err(|why| format!("failed to read egress selector config: {why}"))?;
    let mut causes = Vec::new();
    let connections: Vec<Option<Connection>> = read.iter().map(|one| one.connection(&mut causes)).collect();
    let networks = networks(&read, &mut causes);
    if !causes.is_empty() {
        return Err(format!("failed to validate egress selector configuration: {}", aggregate(&causes)));
    }
    let selections = networks.into_iter().zip(connections).filter_map(|(name, way)| Some((name?, way?)));
    Ok(Configuration { selections: selections.collect() })
}

fn networks(read: &[Selection], causes: &mut Vec<Cause>) -> Vec<Option<Network>> {
    let mut seen: Vec<String> = Vec::new();
    let network = |(index, selection): (usize, &Selection)| {
        let name = selection.name.to_lowercase();
        if seen.contains(&name) {
            causes.push(Cause::duplicate(format!("{CONNECTION}[{index}]"), quote(&name)));
            return None;
        }
        let all = [Network::Cluster, Network::ControlPlane, Network::Etcd];
        let found = all.into_iter().find(|network| network.as_str() == name);
        if found.is_none() {
            causes.push(Cause::not_supported(CONNECTION, quote(&name), &all.map(Network::as_str)));
        }
        seen.push(name);
        found
    };
    read.iter().enumerate().map(network).collect()
}

/// A selection as its type has it, before its rules.
#[derive(Default)]
struct Selection {
    name: String,
    protocol: String,
    transport: Option<Raw>,
}

/// A transport as its type has it.
#[derive(Default)]
struct Raw {
    tcp: Option<RawTcp>,
    unix: Option<String>,
}

struct RawTcp {
    url: String,
    tls: Option<RawTls>,
}

struct RawTls {
    authorities: String,
    key: String,
    certificate: String,
    server_name: String,
}

fn selection(reader: &mut Reader, value: &Value, at: &str) -> Selection {
    let Some(object) = reader.object(value, at, (KIND, "v1beta1.EgressSelection")) else {
        return Selection::default();
    };
    reader.known(object, at, &["name", "connection"]);
    let mut name = reader.text(object.get("name"), &format!("{at}.name"), "EgressSelection");
    if name == "master" {
        name = Network::ControlPlane.as_str().to_owned();
    }
    let at = format!("{at}.connection");
    let connection = object.get("connection").unwrap_or(&Value::Null);
    let Some(connection) = reader.object(connection, &at, ("EgressSelection", "v1beta1.Connection")) else {
        return Selection { name, ..Selection::default() };
    };
    reader.known(connection, &at, &["proxyProtocol", "transport"]);
    let protocol = reader.text(connection.get("proxyProtocol"), &format!("{at}.proxyProtocol"), "Connection");
    let transport = member(reader, (connection, &at), "transport", ("Connection", "v1beta1.Transport"));
    let transport = transport.map(|(transport, at)| raw(reader, transport, &at));
    Selection { name, protocol, transport }
}

fn raw(reader: &mut Reader, transport: &Map, at: &str) -> Raw {
    reader.known(transport, at, &["tcp", "uds"]);
    let tcp = member(reader, (transport, at), "tcp", ("Transport", "v1beta1.TCPTransport"));
    let tcp = tcp.map(|(tcp, at)| {
        reader.known(tcp, &at, &["url", "tlsConfig"]);
        let url = reader.text(tcp.get("url"), &format!("{at}.url"), "TCPTransport");
        let tls = member(reader, (tcp, &at), "tlsConfig", ("TCPTransport", "v1beta1.TLSConfig"));
        RawTcp { url, tls: tls.map(|(tls, at)| raw_tls(reader, tls, &at)) }
    });
    let unix = member(reader, (transport, at), "uds", ("Transport", "v1beta1.UDSTransport"));
    let unix = unix.map(|(unix, at)| {
        reader.known(unix, &at, &["udsName"]);
        reader.text(unix.get("udsName"), &format!("{at}.udsName"), "UDSTransport")
    });
    Raw { tcp, unix }
}

fn raw_tls(reader: &mut Reader, tls: &Map, at: &str) -> RawTls {
    reader.known(tls, at, &["caBundle", "clientKey", "clientCert", "tlsServerName"]);
    let mut text = |name: &str| reader.text(tls.get(name), &format!("{at}.{name}"), "TLSConfig");
    RawTls {
        authorities: text("caBundle"),
        key: text("clientKey"),
        certificate: text("clientCert"),
        server_name: text("tlsServerName"),
    }
}

/// An object within another one, and its path.
fn member<'v>(
    reader: &mut Reader,
    (parent, at): (&'v Map, &str),
    name: &str,
    go: (&str, &str),
) -> Option<(&'v Map, String)> {
    let at = format!("{at}.{name}");
    Some((reader.object(parent.get(name)?, &at, go)?, at))
}

fn field(name: &str) -> String {
    format!("{CONNECTION}.{name}")
}

impl Selection {
    /// The way, unless something is wrong with it.
    fn connection(&self, causes: &mut Vec<Cause>) -> Option<Connection> {
        match (&*self.protocol, &self.transport) {
            ("Direct", None) => Some(Connection::Direct),
            ("Direct", Some(_)) => {
                let why = "config must be absent for direct connect";
                causes.push(Cause::invalid(field("transport"), quote("direct"), why));
                None
            }
            ("HTTPConnect", None) => {
                causes.push(Cause::required(field("transport"), "transport must be set for HTTPConnect"));
                None
            }
            ("HTTPConnect", Some(transport)) => transport.of_http(causes).map(Connection::HttpConnect),
            ("GRPC", None) => {
                causes.push(Cause::required(field("transport"), "transport must be set for GRPC"));
                None
            }
            ("GRPC", Some(Raw { unix: None, .. })) => {
                causes.push(Cause::required(field("uds"), "UDS must be set with GRPC"));
                None
            }
            ("GRPC", Some(Raw { unix: Some(path), .. })) => unix(path, causes).map(Connection::Grpc),
            (other, _) => {
                let supported = ["Direct", "HTTPConnect", "GRPC"];
                causes.push(Cause::not_supported(field("protocol"), quote(other), &supported));
                None
            }
        }
    }
}

fn unix(path: &str, causes: &mut Vec<Cause>) -> Option<String> {
    if path.is_empty() {
        let why = "must be present for UDS connections";
        causes.push(Cause::invalid(field("udsName"), quote("nil"), why));
        return None;
    }
    Some(path.to_owned())
}

impl Raw {
    fn of_http(&self, causes: &mut Vec<Cause>) -> Option<Transport> {
        match (&self.tcp, &self.unix) {
            (Some(tcp), Some(_)) => {
                let why = "TCP and UDS cannot both be set";
                causes.push(Cause::invalid(field("tcp"), tcp.printed(), why));
                None
            }
            (None, None) => {
                causes.push(Cause::required(field("tcp"), "One of TCP or UDS must be set"));
                None
            }
            (Some(tcp), None) => tcp.transport(causes),
            (None, Some(path)) => unix(path, causes).map(Transport::Unix),
        }
    }
}

impl RawTcp {
    /// The value in errors: Go's fields.
    fn printed(&self) -> String {
        let tls = self.tls.as_ref().map(|tls| {
            json!({"CABundle": tls.authorities, "ClientKey": tls.key, "ClientCert": tls.certificate,
                "TLSServerName": tls.server_name})
        });
        json(&json!({"URL": self.url, "TLSConfig": tls}))
    }

    fn transport(&self, causes: &mut Vec<Cause>) -> Option<Transport> {
        if let Some(rest) = self.url.strip_prefix("http://") {
            if self.tls.is_some() {
                let why = "config must not be present when using HTTP";
                causes.push(Cause::invalid(field("tlsConfig"), quote("nil"), why));
                return None;
            }
            return Some(Transport::Tcp { address: address(rest, 80), tls: None });
        }
        let Some(rest) = self.url.strip_prefix("https://") else {
            let why = "supported connection protocols are http:// and https://";
            causes.push(Cause::invalid(field("url"), quote(&self.url), why));
            return None;
        };
        let Some(tls) = &self.tls else {
            causes.push(Cause::required(field("tlsConfig"), "TLSConfig must be present when using HTTPS"));
            return None;
        };
        Some(Transport::Tcp { address: address(rest, 443), tls: Some(tls.files(causes)?) })
    }
}

/// The host and the port of a URL without its scheme.
fn address(rest: &str, port: u16) -> String {
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
    if has_port { host.to_owned() } else { format!("{host}:{port}") }
}

impl RawTls {
    fn files(&self, causes: &mut Vec<Cause>) -> Option<TlsFiles> {
        let before = causes.len();
        let mut check = |name: &str, path: &str, absent: Option<&str>, lost: &str| match (path, absent) {
            ("", None) => {}
            ("", Some(why)) => {
                causes.push(Cause::invalid(field(&format!("tlsConfig.{name}")), quote("nil"), why));
            }
            (path, _) if Path::new(path).exists() => {}
            (path, _) => {
                causes.push(Cause::invalid(field(&format!("tlsConfig.{name}")), quote(path), lost));
            }
        };
        check("caBundle", &self.authorities, None, "TLS config ca bundle does not exist");
        let absent = Some("Using TLS requires clientCert");
        check("clientCert", &self.certificate, absent, "TLS client cert does not exist");
        // The word that stands twice is upstream's.
        let absent = Some("Using TLS requires requires clientKey");
        check("clientKey", &self.key, absent, "TLS client key does not exist");
        (causes.len() == before).then(|| TlsFiles {
            authorities: Some(&self.authorities).filter(|path| !path.is_empty()).map(PathBuf::from),
            client_certificate: PathBuf::from(&self.certificate),
            client_key: PathBuf::from(&self.key),
            server_name: self.server_name.clone(),
        })
    }
}
