//! Addresses, files and flags of a cluster on this machine.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::components::{CONTROLLER_MANAGER, Components, SCHEDULER};
use super::supervisor::Program;
use crate::api::services::Network;
use crate::auth::pki::{ClusterFiles, ServingNames, client_url, cluster_certificate, token_key_file};
use crate::cli::args::up::{DEFAULTS, UpConfig, data_dir, server_arguments, server_environment};
use crate::cli::error::Error;
use crate::controllers::servers::kubernetes_service;
use crate::server;
use crate::server::config::Config;

/// The port of each program's own HTTPS server.
const CONTROLLER_MANAGER_PORT: u16 = 10257;
const SCHEDULER_PORT: u16 = 10259;
/// How long a component may take to end.
const GRACE: Duration = Duration::from_secs(10);
const KUBELET_CLIENT: &str = "apiserver-kubelet-client";

pub struct Cluster {
    pub config: UpConfig,
    components: Components,
    /// The version that nodes are told.
    pub version: String,
    /// Absolute.
    pub data_dir: PathBuf,
    files: ClusterFiles,
    listening: SocketAddr,
    /// The address at which nodes reach the server.
    host: IpAddr,
}

impl Cluster {
    pub fn new(config: UpConfig, components: Components) -> Result<Self, Error> {
        let dir = data_dir(&config.serve);
        let failed = |source| Error::Server(server::Error::DataDir { path: dir.to_owned(), source });
        let data_dir = std::path::absolute(dir).map_err(failed)?;
        let pki = data_dir.join("pki");
        let files = ClusterFiles {
            ca: None,
            dir: pki.clone(),
            kubeconfig_dir: data_dir.clone(),
            own_ca_dir: pki,
            names: ServingNames::local(),
        };
        let listening = config.serve.server.https.clone().unwrap_or_default().address;
        let host = host(&config.serve.server, listening);
        let version = components.version.clone();
        Ok(Self { config, components, version, data_dir, files, listening, host })
    }

    /// The address and port at which nodes reach the server.
    pub fn endpoint(&self) -> String {
        SocketAddr::new(self.host, self.listening.port()).to_string()
    }

    pub fn admin_kubeconfig(&self) -> PathBuf {
        self.data_dir.join("admin.kubeconfig")
    }

    pub fn log_dir(&self) -> PathBuf {
        self.data_dir.join("logs")
    }

    /// The networks of Services as a flag has them.
    pub fn service_subnet(&self) -> String {
        let networks = self.config.serve.server.services.networks.iter().map(Network::to_string);
        networks.collect::<Vec<_>>().join(",")
    }

    /// The network of Pods; empty if there is none.
    pub fn pod_subnet(&self) -> String {
        self.config.pod_network.map(|network| network.to_string()).unwrap_or_default()
    }

    /// The tenth address of Services, which kubeadm's CoreDNS takes.
    pub fn dns_address(&self) -> String {
        match self.config.serve.server.services.networks.first().map(Network::base) {
            Some(IpAddr::V4(base)) => Ipv4Addr::from_bits(base.to_bits() + 10).to_string(),
            Some(IpAddr::V6(base)) => Ipv6Addr::from_bits(base.to_bits() + 10).to_string(),
            None => String::new(),
        }
    }

    /// Refuses ports that other programs have, before anything is started.
    pub fn check_ports(&self) -> Result<(), Error> {
        if is_taken(self.listening) {
            return Err(Error::PortTaken(self.listening));
        }
        let config = &self.config;
        for (name, flags, usual, flag) in [
            (
                CONTROLLER_MANAGER,
                &config.controller_manager_flags,
                CONTROLLER_MANAGER_PORT,
                "controller-manager",
            ),
            (SCHEDULER, &config.scheduler_flags, SCHEDULER_PORT, "scheduler"),
        ] {
            let given = flags.iter().rev().find_map(|flag| flag.strip_prefix("secure-port="));
            let port = given.and_then(|port| port.parse().ok()).unwrap_or(usual);
            let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
            if port > 0 && is_taken(address) {
                return Err(Error::Refused(format!(
                    "{address} is already in use, which is {name}'s; end the program there, or choose another port \
                     with --kube-{flag}-arg=secure-port=PORT"
                )));
            }
        }
        Ok(())
    }

    /// The server, whose arguments are those of this process.
    pub fn server(&self, arguments: &[OsString]) -> Result<Program, Error> {
        let program = std::env::current_exe();
        let program = program.map_err(|source| Error::Command { name: "rowplane".into(), source })?;
        let config = &self.config.serve.server;
        let mut defaults: Vec<(&str, OsString)> =
            DEFAULTS.iter().map(|(flag, value)| (*flag, OsString::from(value))).collect();
        if config.kubelets.client_certificate.is_none() {
            let file = |suffix: &str| self.files.dir.join(format!("{KUBELET_CLIENT}.{suffix}")).into();
            defaults
                .extend([("kubelet-client-certificate", file("crt")), ("kubelet-client-key", file("key"))]);
        }
        if !self.host.is_loopback() {
            defaults.push(("advertise-address", self.host.to_string().into()));
        }
        let serve = std::iter::once(OsString::from("serve"));
        Ok(Program {
            name: "rowplane",
            path: program,
            arguments: serve.chain(server_arguments(arguments)).collect(),
            environment: server_environment(defaults.iter().map(|(flag, value)| (*flag, value.as_os_str()))),
            log: self.log_dir().join("rowplane.log"),
            grace: config.shutdown_delay + config.shutdown_grace + GRACE,
        })
    }

    pub fn controller_manager(&self) -> Program {
        let kubeconfig = self.data_dir.join("controller-manager.conf");
        let mut arguments = common_flags(&kubeconfig);
        let pki = |name: &str| self.files.own_ca_dir.join(name);
        for (flag, file) in [
            ("client-ca-file", pki("ca.crt")),
            ("root-ca-file", pki("ca.crt")),
            ("cluster-signing-cert-file", pki("ca.crt")),
            ("cluster-signing-key-file", pki("ca.key")),
        ] {
            arguments.push(flag_of(flag, &file));
        }
        let tokens = &self.config.serve.server.authentication.service_accounts;
        if tokens.signing_endpoint.is_none() {
            let own = || token_key_file(&self.files.own_ca_dir);
            let key = tokens.signing_key_file.clone().unwrap_or_else(own);
            arguments.push(flag_of("service-account-private-key-file", &key));
        }
        arguments.push("--controllers=*,bootstrapsigner,tokencleaner".into());
        arguments.push("--use-service-account-credentials=true".into());
        if let Some(network) = self.config.pod_network {
            arguments.push("--allocate-node-cidrs=true".into());
            arguments.push(format!("--cluster-cidr={network}").into());
            arguments.push(format!("--service-cluster-ip-range={}", self.service_subnet()).into());
        }
        let (path, flags) = (&self.components.controller_manager, &self.config.controller_manager_flags);
        self.component(CONTROLLER_MANAGER, path, arguments, flags)
    }

    pub fn scheduler(&self) -> Program {
        let arguments = common_flags(&self.data_dir.join("scheduler.conf"));
        self.component(SCHEDULER, &self.components.scheduler, arguments, &self.config.scheduler_flags)
    }

    fn component(
        &self,
        name: &'static str,
        path: &Path,
        mut arguments: Vec<OsString>,
        flags: &[String],
    ) -> Program {
        arguments.extend(flags.iter().map(|flag| OsString::from(format!("--{flag}"))));
        let (log, environment) = (self.log_dir().join(format!("{name}.log")), Vec::new());
        Program { name, path: path.to_owned(), arguments, environment, log, grace: GRACE }
    }

    /// Makes a certificate that is missing, and renews one that ends soon.
    pub fn ensure_certificate(&self, name: &str) -> Result<(), Error> {
        let Some(one) = cluster_certificate(name) else { return Ok(()) };
        let ensured = self.files.ensure(one, &client_url(self.listening), SystemTime::now());
        ensured.map(drop).map_err(|error| Error::Server(server::Error::Pki(error)))
    }

    /// Makes the certificate that the server shows to kubelets, unless its flags name another.
    pub fn ensure_server_certificates(&self) -> Result<(), Error> {
        let [certificate, key] = ["ca.crt", "ca.key"].map(|name| self.files.own_ca_dir.join(name));
        if certificate.exists() && !key.exists() {
            return Err(Error::Refused(format!(
                "{} is not here, with which kube-controller-manager signs the certificates of nodes",
                key.display()
            )));
        }
        match self.config.serve.server.kubelets.client_certificate {
            Some(_) => Ok(()),
            None => self.ensure_certificate(KUBELET_CLIENT),
        }
    }
}

/// The address of the flag, or the one by which the host reaches others; for a server that is bound to a loopback address,
/// which nodes elsewhere do not reach, that one.
fn host(server: &Config, listening: SocketAddr) -> IpAddr {
    let own = if listening.ip().is_loopback() { Some(listening.ip()) } else { None };
    let found =
        server.advertise_address.or(own).or_else(|| kubernetes_service::address(None, listening.ip()));
    found.unwrap_or(match listening.ip() {
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    })
}

fn is_taken(address: SocketAddr) -> bool {
    TcpListener::bind(address).is_err_and(|error| error.kind() == ErrorKind::AddrInUse)
}

/// The flags that both components have.
fn common_flags(kubeconfig: &Path) -> Vec<OsString> {
    let named = ["kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"];
    let files = named.iter().map(|flag| flag_of(flag, kubeconfig));
    files.chain(["--bind-address=127.0.0.1".into()]).collect()
}

fn flag_of(flag: &str, file: &Path) -> OsString {
    let mut text = OsString::from(format!("--{flag}="));
    text.push(file);
    text
}
