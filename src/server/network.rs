//! The side of a server that faces the network: its listener, or that of its process, and the credentials of clients.

use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::announcement::Announcement;
use super::authentication::settings;
use super::commons::Commons;
use super::config::{Config, Https};
use super::credentials::{Credentials, Loaded, OwnCertificate, Served, authorities};
use super::data_dir::Temporary;
use super::error::Error;
use super::hostname::hostname;
use super::proxy_client::ProxyClient;
use super::{Listening, open_files};
use crate::api::followers::api_services::ProxyIdentity;
use crate::auth::authn::{Authenticator, FrontProxy};
use crate::auth::pki::{Admin, ServingNames, Sources};
use crate::auth::revocation::Revocations;
use crate::auth::token_file::Tokens;
use crate::auth::trust::Trust;
use crate::http::router::Router;
use crate::http::server::{self as listener, Ending, Routes};
use crate::http::tls::{Authorities, ClientTrust, Tls};
use crate::runtime::Runtime;

/// The name of the admin's kubeconfig in a data directory.
pub const KUBECONFIG: &str = "admin.kubeconfig";

/// The parts of start-up that concern the network.
pub struct Network {
    https: Https,
    sources: Sources,
    /// The certificates of the listener, if it is the server's own.
    served: Option<Served>,
    /// The certificates in PEM by which clients verify the listener.
    pub server_authority: String,
    /// The path of the first of them.
    ca: PathBuf,
    authorities: Authorities,
    pub trust: watch::Sender<Trust>,
    pub client_trust: ClientTrust,
    admin: Option<Admin>,
    pub authenticator: Authenticator,
    temporary: Option<Temporary>,
    proxy_client: ProxyClient,
    /// The headers of front proxies whose CAs the flags name.
    front_proxy: FrontProxy,
}

impl Network {
    /// A listener of the server's own.
    pub fn prepare(https: &Https, config: &Config, runtime: &Runtime) -> Result<Self, Error> {
        let (dir, temporary) = pki_dir(config)?;
        let https = with_kubeconfig(https.clone(), temporary.as_ref());
        let sources = sources(&https, config, dir);
        let admin = sources.ensure(runtime.clock.now())?.admin;
        let authorities = client_authorities(&sources, config, runtime)?;
        let served = Served::ensure(&sources, &authorities, https.tls.clone(), &runtime.clock)?;
        let proxy_client = proxy_client(&sources, config, runtime)?;
        Ok(Self {
            server_authority: sources.server_authority(&served.serving)?,
            client_trust: served.tls.trust().clone(),
            served: Some(served),
            trust: watch::Sender::new(told(&proxy_client, &authorities, config)),
            proxy_client,
            front_proxy: config.authentication.front_proxy.clone(),
            authenticator: Authenticator::new(settings(config), tokens(&https)?),
            ca: sources.server_ca(),
            https,
            sources,
            authorities,
            admin,
            temporary,
        })
    }

    /// The listener of a process, with clients of the server's own. They verify it by the certificates `server_authority`, in PEM,
    /// of which the first is in the file `ca`.
    pub fn shared(
        (server_authority, ca): (String, PathBuf),
        config: &Config,
        runtime: &Runtime,
    ) -> Result<Self, Error> {
        let (dir, temporary) = pki_dir(config)?;
        let https = with_kubeconfig(config.https.clone().unwrap_or_default(), temporary.as_ref());
        let sources = sources(&https, config, dir);
        sources.ensure_clients(runtime.clock.now())?;
        let authorities = client_authorities(&sources, config, runtime)?;
        let proxy_client = proxy_client(&sources, config, runtime)?;
        Ok(Self {
            served: None,
            admin: sources.admin(server_authority.clone(), runtime.clock.now())?,
            client_trust: ClientTrust::new(&authorities, runtime.clock.clone())?,
            trust: watch::Sender::new(told(&proxy_client, &authorities, config)),
            proxy_client,
            front_proxy: config.authentication.front_proxy.clone(),
            authenticator: Authenticator::new(settings(config), tokens(&https)?),
            https,
            sources,
            server_authority,
            ca,
            authorities,
            temporary,
        })
    }

    /// The certificate that is shown to extension servers.
    pub fn proxy_identity(&self) -> ProxyIdentity {
        self.proxy_client.identity.clone()
    }

    pub fn own_certificate(&self) -> Option<OwnCertificate> {
        self.served.as_ref().map(|served| served.own.clone())
    }

    /// Starts to serve the routes, which change later.
    pub async fn listen(
        &self,
        routes: &Routes,
        ending: &Ending,
        commons: &Commons,
        runtime: &Runtime,
    ) -> Result<SocketAddr, Error> {
        let Some(served) = &self.served else { return Ok(self.https.address) };
        let clusters = Router::alone(routes.clone());
        serve(&self.https, &served.tls, clusters, ending, commons, runtime).await
    }

    pub fn announcement(&self, url: &str) -> Announcement {
        Announcement::new(self.https.kubeconfig.clone(), self.admin.as_ref(), url.to_owned())
    }

    /// Starts the regular check of the credentials.
    pub fn refresh(
        self,
        (address, url): (SocketAddr, String),
        announcement: Announcement,
        revocations: Revocations,
        runtime: &Runtime,
    ) -> Listening {
        let Self { https, sources, served, server_authority, authorities, trust, client_trust, .. } = self;
        let Self { admin, authenticator, temporary, ca, proxy_client, front_proxy, .. } = self;
        let loaded = Loaded {
            proxy_client,
            front_proxy,
            served,
            sources,
            token_file: https.token_auth_file,
            authorities,
            trust,
            client_trust,
            admin,
            server_authority,
            authenticator,
            revocations,
            announcement,
        };
        let credentials = Credentials::new(loaded, runtime.clock.clone());
        runtime.tasks.run("credentials", credentials.clone().run());
        Listening { address, url, ca, credentials, _data_dir: temporary }
    }
}

/// Binds the address, and serves clusters there.
pub async fn serve(
    https: &Https,
    tls: &Tls,
    clusters: Router,
    ending: &Ending,
    commons: &Commons,
    runtime: &Runtime,
) -> Result<SocketAddr, Error> {
    let wanted = https.address;
    let bound = TcpListener::bind(wanted).await.map_err(|source| Error::of_bind(wanted, source))?;
    let address = bound.local_addr().map_err(|source| Error::of_bind(wanted, source))?;
    let serving = listener::Serving {
        tls: tls.clone(),
        clusters,
        limits: open_files::fit(https.connections, open_files::limit()),
        ending: ending.clone(),
        metrics: runtime.metrics.clone(),
        scheduling: commons.scheduling.clone(),
    };
    runtime.tasks.run_to_end("connections", listener::serve(bound, serving));
    Ok(address)
}

/// The directory of the certificates, and the temporary one that it is in if the settings name none.
fn pki_dir(config: &Config) -> Result<(PathBuf, Option<Temporary>), Error> {
    let temporary = config.data_dir.is_none().then(Temporary::create).transpose()?;
    let dir = config.data_dir.as_deref().or(temporary.as_ref().map(Temporary::path));
    Ok((dir.map(|dir| dir.join("pki")).unwrap_or_default(), temporary))
}

/// Settings that name a kubeconfig, if only in the temporary directory.
fn with_kubeconfig(mut https: Https, temporary: Option<&Temporary>) -> Https {
    https.kubeconfig = https.kubeconfig.or(temporary.map(|dir| dir.path().join(KUBECONFIG)));
    https
}

fn client_authorities(sources: &Sources, config: &Config, runtime: &Runtime) -> Result<Authorities, Error> {
    let proxy_names = &config.authentication.front_proxy.allowed_names;
    Ok(authorities(sources, proxy_names, runtime.clock.now())?)
}

fn proxy_client(sources: &Sources, config: &Config, runtime: &Runtime) -> Result<ProxyClient, Error> {
    Ok(ProxyClient::load(&config.aggregation.client, sources, runtime.clock.now())?)
}

/// The CAs of clients and of front proxies as other servers are told of them.
fn told(proxy_client: &ProxyClient, authorities: &Authorities, config: &Config) -> Trust {
    proxy_client.told(authorities.trust(config.authentication.front_proxy.clone()))
}

fn sources(https: &Https, config: &Config, dir: PathBuf) -> Sources {
    // Not the address that is found without the flag: replicas that share a directory share the names.
    let addresses = config.services.first_address().into_iter().chain(config.advertise_address);
    let mut sources = listener_sources(https, dir);
    sources.names.extra.extend(addresses.map(|address| address.to_string()));
    sources
}

/// The sources of a listener's certificates.
pub fn listener_sources(https: &Https, dir: PathBuf) -> Sources {
    let names = ServingNames {
        bind_address: https.address.ip(),
        hostname: hostname(),
        extra: https.extra_names.clone(),
    };
    Sources { dir, names, overrides: https.certificates.clone() }
}

fn tokens(https: &Https) -> Result<Tokens, Error> {
    Ok(https.token_auth_file.as_deref().map(Tokens::load).transpose()?.unwrap_or_default())
}
