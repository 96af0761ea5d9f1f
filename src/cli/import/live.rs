//! A running etcd or kine as a source: how it is reached, and until when it is followed.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures_util::FutureExt as _;
use rowplane_etcd::live::{CutOver, Endpoint};
use url::Url;

use crate::cli::args::positive_duration;
use crate::cli::config::Lifetime;
use crate::cli::error::Error;
use crate::cli::kube_apiserver::etcd_servers::EtcdServers;
use crate::cli::signals::Ends;
use crate::egress::Egress;
use crate::relay::Address;
use crate::server_trust::client_config;

/// How a running etcd is read.
#[derive(Clone, Debug, Default, Args)]
pub struct LiveArgs {
    /// Follow the changes of a running source until Ctrl-C (SIGINT) or SIGTERM; stop what writes to it before that
    #[arg(long, conflicts_with = "check")]
    pub follow: bool,
    /// Follow until nothing has changed for so long, or until Ctrl-C
    #[arg(long, value_name = "DURATION", value_parser = positive_duration, requires = "follow")]
    pub until_quiet: Option<Duration>,
    /// The CAs of a running etcd, as for kube-apiserver; without them, https takes those of the system
    #[arg(long, value_name = "FILE")]
    pub etcd_cafile: Option<PathBuf>,
    /// The certificate that is shown to a running etcd
    #[arg(long, value_name = "FILE", requires = "etcd_keyfile")]
    pub etcd_certfile: Option<PathBuf>,
    /// Its key
    #[arg(long, value_name = "FILE", requires = "etcd_certfile")]
    pub etcd_keyfile: Option<PathBuf>,
}

/// The port of etcd's clients.
const PORT: u16 = 2379;

impl LiveArgs {
    /// The servers that a source names; `None` if it is something else.
    pub fn endpoints(&self, from: &str) -> Result<Option<Vec<Endpoint>>, Error> {
        let Some((scheme, _)) = from.split_once("://") else { return Ok(None) };
        let with_scheme = |part: &str| match part.contains("://") {
            true => part.to_owned(),
            false => format!("{scheme}://{part}"),
        };
        let endpoints = from.split(',').map(|part| self.endpoint(&with_scheme(part)));
        endpoints.collect::<Result<_, _>>().map(Some).map_err(Error::Refused)
    }

    fn endpoint(&self, url: &str) -> Result<Endpoint, String> {
        let url = Url::parse(url).map_err(|why| format!("{url:?}: {why}"))?;
        let secured = match url.scheme() {
            "unix" => return Ok(Endpoint::Unix(url.path().to_owned())),
            "http" => false,
            "https" => true,
            "etcd" => self.etcd_cafile.is_some() || self.etcd_certfile.is_some(),
            _ => return Err(format!("{url} is no URL of etcd, https, http or unix")),
        };
        let host =
            url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| format!("{url} names no host"))?;
        let tls = match secured {
            true => {
                let identity = self.etcd_certfile.clone().zip(self.etcd_keyfile.clone());
                let files = EtcdServers { urls: Vec::new(), authorities: self.etcd_cafile.clone(), identity };
                let mut tls = client_config(Some(files.trusted()?), files.identity()?)?;
                Arc::make_mut(&mut tls).alpn_protocols = vec![b"h2".to_vec()];
                Some(tls)
            }
            false => None,
        };
        let host = host.trim_matches(['[', ']']).to_owned();
        let port = url.port().unwrap_or(PORT).to_string();
        Ok(Endpoint::Tcp(Address { host, port, tls, checked: Vec::new(), egress: Egress::default() }))
    }

    /// The end of following, if changes are to be followed.
    pub fn cut_over(&self) -> Option<CutOver> {
        // Until then, Ctrl-C ends the program, and so the import.
        let asked = || {
            let mut ends = Ends::catch(Lifetime::UntilSignal)?;
            let next = async move {
                let _: &str = ends.next().await;
            };
            Ok(next.boxed())
        };
        self.follow.then(|| CutOver { asked: Box::new(asked), quiet: self.until_quiet })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_are_servers() {
        let args = LiveArgs::default();
        let found = |from: &str| args.endpoints(from).map_err(|error| error.to_string());
        assert!(matches!(found("snapshot.db"), Ok(None)));
        let endpoints = found("etcd://a:1,b").expect("endpoints").expect("servers");
        let hosts = endpoints.iter().map(|endpoint| match endpoint {
            Endpoint::Tcp(address) => (address.host.as_str(), address.port.as_str(), address.tls.is_some()),
            Endpoint::Unix(_) => panic!("{endpoint:?}"),
        });
        assert_eq!(hosts.collect::<Vec<_>>(), [("a", "1", false), ("b", "2379", false)]);
        let socket = found("unix:///run/kine.sock").expect("an endpoint").expect("a server");
        assert!(matches!(&socket[..], [Endpoint::Unix(path)] if path == "/run/kine.sock"));
        assert!(found("mysql://h").expect_err("no etcd").contains("is no URL of etcd"));
    }
}
