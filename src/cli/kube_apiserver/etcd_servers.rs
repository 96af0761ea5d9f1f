//! Servers at the URLs of `--etcd-servers`: rowplane's stand-in for etcd, which tells where state is to be kept,
//! or an etcd, which this server does not use (`docs/spec/cluster.md`, 3.3).

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::StatusCode;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;
use tokio::time::Instant;

use crate::cli::client::{Answer, Client};
use crate::cli::error::Error;
use crate::cli::etcd::datastore::{PATH, Place};
use crate::server_trust::{Identity, Trusted, certificates};

/// How long an answer is waited for. In static Pods etcd and this server start together.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long one question may take, and the pause before the next one.
const ONE_TRY: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// URLs of etcd, and the files for those with https.
#[derive(Debug, Default)]
pub struct EtcdServers {
    pub urls: Vec<String>,
    /// The CAs of the servers; without them, those of the system.
    pub authorities: Option<PathBuf>,
    /// The certificate and the key that are shown to the servers.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl EtcdServers {
    /// Asks all of them in turn until one answers.
    pub async fn ask(&self) -> Result<Place, Error> {
        self.ask_for(PATIENCE).await.map_err(Error::Refused)
    }

    async fn ask_for(&self, patience: Duration) -> Result<Place, String> {
        let clients = self.urls.iter().map(|url| Ok((url.as_str(), self.client(url)?)));
        let clients = clients.collect::<Result<Vec<_>, String>>()?;
        let started = Instant::now();
        loop {
            let mut failed = String::new();
            for (url, client) in &clients {
                match client.get(PATH, ONE_TRY).await {
                    Ok(answer) => return read(url, &answer),
                    Err(why) => failed = format!("--etcd-servers: {url} does not answer: {why}"),
                }
            }
            if started.elapsed() >= patience {
                return Err(failed);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    fn client(&self, url: &str) -> Result<Client, String> {
        match url.split_once("://") {
            Some(("http", _)) => Client::new(url, None, None),
            Some(("https", _)) => Client::new(url, Some(self.trusted()?), self.identity()?),
            // The stand-in has no such address.
            Some(("unix" | "unixs", _)) => return Err(refusal(url)),
            _ => Err(format!("{url:?} is no URL of https or http")),
        }
        .map_err(|why| format!("--etcd-servers: {why}"))
    }

    /// The authorities of servers with https.
    pub fn trusted(&self) -> Result<Trusted, String> {
        let bundle = |path: &Path| {
            let text = std::fs::read(path).map_err(|error| error.to_string());
            let trusted = text.and_then(|text| Trusted::of_bundle(&text));
            trusted.map_err(|why| format!("--etcd-cafile: {}: {why}", path.display()))
        };
        self.authorities.as_deref().map_or_else(|| Ok(Trusted::system()), bundle)
    }

    pub fn identity(&self) -> Result<Option<Identity>, String> {
        let Some((certificate, key)) = &self.identity else { return Ok(None) };
        let chain = certificates(certificate).map_err(|why| format!("--etcd-certfile: {why}"))?;
        let text =
            std::fs::read(key).map_err(|error| format!("--etcd-keyfile: {}: {error}", key.display()))?;
        let read = PrivateKeyDer::from_pem_slice(&text);
        let key = read.map_err(|_| format!("--etcd-keyfile: {} is not a private key", key.display()))?;
        Ok(Some((chain, key)))
    }
}

/// Whatever answers otherwise than the stand-in is an etcd.
fn read(url: &str, answer: &Answer) -> Result<Place, String> {
    let place = Some(answer).filter(|answer| answer.status == StatusCode::OK);
    place.and_then(|answer| Place::from_json(&answer.body)).ok_or_else(|| refusal(url))
}

fn refusal(url: &str) -> String {
    format!(
        "rowplane keeps its state in SQLite or PostgreSQL; {url} is an etcd. Set ROWPLANE_DATASTORE or --datastore; \
         \"rowplane import\" fills a store with the objects of an etcd"
    )
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use tokio::net::TcpListener;

    use super::*;

    /// A server whose answer at every path is this one.
    async fn server(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(get(answer))).await });
        url
    }

    fn servers(urls: &[&str]) -> EtcdServers {
        EtcdServers { urls: urls.iter().map(|url| (*url).to_owned()).collect(), ..EtcdServers::default() }
    }

    /// Nobody listens at this address.
    const NOBODY: &str = "http://127.0.0.1:1";

    #[tokio::test]
    async fn the_first_that_answers_counts() {
        let stand_in = server(r#"{"datastore":"memory:","durability":"none"}"#).await;
        let place = servers(&[NOBODY, &stand_in]).ask().await.unwrap();
        assert_eq!((place.datastore.as_str(), place.file()), ("memory:", None));
        let etcd = server("404 page not found\n").await;
        let why = servers(&[&etcd, &stand_in]).ask_for(Duration::ZERO).await.unwrap_err();
        assert!(why.contains(&format!("{etcd} is an etcd. Set ROWPLANE_DATASTORE")), "{why}");
    }

    #[tokio::test]
    async fn refusals() {
        let bad = tempfile::NamedTempFile::new().unwrap();
        let files = |path: &Path| EtcdServers {
            urls: vec!["https://127.0.0.1:1".to_owned()],
            authorities: Some(path.to_owned()),
            identity: None,
        };
        let cases = [
            (
                servers(&[NOBODY]),
                "--etcd-servers: http://127.0.0.1:1 does not answer: dial tcp 127.0.0.1:1: connect:",
            ),
            (servers(&["unix:///kine.sock"]), "unix:///kine.sock is an etcd"),
            (servers(&["127.0.0.1:2379"]), "is no URL of https or http"),
            (files(Path::new("/nowhere/ca.crt")), "--etcd-cafile: /nowhere/ca.crt: No such file"),
            (files(bad.path()), "--etcd-cafile: "),
        ];
        for (servers, text) in cases {
            let why = servers.ask_for(Duration::ZERO).await.unwrap_err();
            assert!(why.contains(text), "{text}: {why}");
        }
        let identity = Some((PathBuf::from("/nowhere/c.crt"), PathBuf::from("/nowhere/c.key")));
        let why = EtcdServers { identity, ..servers(&["https://127.0.0.1:1"]) }.ask_for(Duration::ZERO).await;
        assert!(why.unwrap_err().starts_with("--etcd-certfile: /nowhere/c.crt: "));
    }
}
