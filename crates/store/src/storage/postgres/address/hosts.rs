//! Lists of hosts by libpq's rules, and which of the hosts is wanted.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::Path;
use std::time::Duration;

use super::password::USUAL_SOCKETS;
use super::{Environment, UrlParts};

const DEFAULT_PORT: u16 = 5432;
/// libpq's smallest limit of time.
const SHORTEST: Duration = Duration::from_secs(2);

/// `target_session_attrs`: which of the hosts is to be connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    #[default]
    Any,
    ReadWrite,
    ReadOnly,
    Primary,
    Standby,
    PreferStandby,
}

impl Wanted {
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "any" => Wanted::Any,
            "read-write" => Wanted::ReadWrite,
            "read-only" => Wanted::ReadOnly,
            "primary" => Wanted::Primary,
            "standby" => Wanted::Standby,
            "prefer-standby" => Wanted::PreferStandby,
            _ => return Err(format!("target_session_attrs {text:?} is none of libpq's")),
        })
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Wanted::Any => "any",
            Wanted::ReadWrite => "read-write",
            Wanted::ReadOnly => "read-only",
            Wanted::Primary => "primary",
            Wanted::Standby => "standby",
            Wanted::PreferStandby => "prefer-standby",
        })
    }
}

/// `load_balance_hosts`.
pub fn is_shuffled(text: &str) -> Result<bool, String> {
    match text {
        "disable" => Ok(false),
        "random" => Ok(true),
        _ => Err(format!("load_balance_hosts {text:?} is none of libpq's")),
    }
}

/// `connect_timeout`, in seconds. Zero and less mean libpq's endless wait, which is not there: the limit is then the
/// usual one.
pub fn limit(text: &str) -> Result<Option<Duration>, String> {
    let seconds: i32 = text.trim().parse().map_err(|error| format!("connect_timeout: {error}"))?;
    let seconds = u64::try_from(seconds).ok().filter(|seconds| *seconds > 0);
    Ok(seconds.map(|seconds| Duration::from_secs(seconds).max(SHORTEST)))
}

/// Takes the hosts out of a URL, since a URL of the web has only one. Another name stands for them in the rest.
pub fn split_off(url: &str) -> (String, &str) {
    let begin = url.find("://").map_or(0, |at| at + "://".len());
    let end = url[begin..].find(['/', '?', '#']).map_or(url.len(), |at| begin + at);
    let begin = url[begin..end].rfind('@').map_or(begin, |at| begin + at + 1);
    (format!("{}hosts{}", &url[..begin], &url[end..]), &url[begin..end])
}

/// Parts `a:1,b,[::1]:2` into lists of names and of ports. A list of one empty port is empty.
pub fn names_and_ports(hosts: &str) -> (String, String) {
    let parted =
        hosts.split(',').map(|host| match host.strip_prefix('[').and_then(|host| host.split_once(']')) {
            Some((address, port)) => (address, port.strip_prefix(':').unwrap_or(port)),
            None => host.split_once(':').unwrap_or((host, "")),
        });
    let (names, ports): (Vec<_>, Vec<_>) = parted.unzip();
    (names.join(","), ports.join(","))
}

/// A host of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The name by which passwords and certificates know it, or the directory of a socket.
    pub name: String,
    pub address: Option<String>,
    pub port: u16,
}

impl Host {
    /// The address or name to connect to.
    pub fn target(&self) -> &str {
        self.address.as_deref().unwrap_or(&self.name)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') && !self.name.starts_with(['/', '[']) {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

impl UrlParts {
    /// Adds what the environment says of hosts, where the URL says nothing.
    pub fn complete(&mut self, environment: &Environment<'_>) -> Result<(), String> {
        let variable = environment.variable;
        if self.hosts.is_none() && self.addresses.is_none() {
            (self.hosts, self.addresses) = (variable("PGHOST"), variable("PGHOSTADDR"));
        }
        self.ports = self.ports.take().or_else(|| variable("PGPORT"));
        if let (None, Some(wanted)) = (self.wanted, variable("PGTARGETSESSIONATTRS")) {
            self.wanted = Some(Wanted::parse(&wanted)?);
        }
        if let (None, Some(seconds)) = (self.limit, variable("PGCONNECT_TIMEOUT")) {
            self.limit = limit(&seconds)?;
        }
        if let (None, Some(text)) = (self.shuffled, variable("PGLOADBALANCEHOSTS")) {
            self.shuffled = Some(is_shuffled(&text)?);
        }
        Ok(())
    }

    /// The hosts with their addresses and ports, one at least.
    pub fn hosts(&self) -> Result<Vec<Host>, String> {
        let list = |text: &Option<String>| {
            text.as_ref().map(|text| text.split(',').map(|part| part.trim().to_owned()).collect::<Vec<_>>())
        };
        let (names, addresses) = (list(&self.hosts), list(&self.addresses));
        let count = names.as_ref().or(addresses.as_ref()).map_or(1, Vec::len);
        if let (Some(names), Some(addresses)) = (&names, &addresses)
            && names.len() != addresses.len()
        {
            return Err(format!("it names {} hosts and {} addresses", names.len(), addresses.len()));
        }
        let ports = list(&self.ports).unwrap_or_default();
        if ports.len() > 1 && ports.len() != count {
            return Err(format!("it names {count} hosts and {} ports", ports.len()));
        }
        (0..count)
            .map(|at| {
                // One port is that of all hosts.
                let port = ports.get(at).or(ports.first()).filter(|port| !port.is_empty());
                let port = port.map_or(Ok(DEFAULT_PORT), |port| {
                    port.parse().map(NonZeroU16::get).map_err(|error| format!("port: {error}"))
                })?;
                let given = |list: &Option<Vec<String>>| {
                    list.as_ref().and_then(|list| list.get(at)).filter(|text| !text.is_empty()).cloned()
                };
                let address = given(&addresses);
                if let Some(address) = &address {
                    address.parse::<IpAddr>().map_err(|error| format!("hostaddr: {error}"))?;
                }
                let name = given(&names).or(address.clone()).unwrap_or_else(|| usual_host(port));
                Ok(Host { name, address, port })
            })
            .collect()
    }
}

/// The host of a database whose URL names none: a socket's directory, or else this host.
fn usual_host(port: u16) -> String {
    let there = |directory: &&str| Path::new(directory).join(format!(".s.PGSQL.{port}")).exists();
    USUAL_SOCKETS.into_iter().find(there).unwrap_or("localhost").to_owned()
}
