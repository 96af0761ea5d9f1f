//! `etcd`: etcd's API on rowplane's store, by etcd's flags (docs/etcd.md).
//!
//! The store is opened at the first call of the API. Programs that start an etcd beside rowplane in kube-apiserver's place,
//! as kubeadm and test environments do, never call it: they ask for health, and the server asks where to keep its state
//! (`docs/spec/cluster.md`, 4.3).

mod command_line;
pub mod datastore;
mod listener;
mod routes;
mod store;

use std::sync::Arc;

use rowplane_etcd::wire::Server;
use tokio::task::JoinSet;

pub use self::command_line::{Asked, Config, parse};
use self::datastore::Place;
use self::routes::Routes;
use self::store::Opening;
use super::config::Lifetime;
use super::error::Error;
use super::signals::Ends;
use crate::server::open_files;

/// Answers requests until a signal arrives.
pub async fn serve(config: Config) -> Result<(), Error> {
    let mut ends = Ends::catch(Lifetime::UntilSignal).map_err(Error::Signals)?;
    open_files::raise_limit();
    let tls = config.tls.as_ref().map(listener::tls).transpose()?;
    let config = Arc::new(config);
    let opening = Opening::new(config.clone());
    let server = Server::new(config.options(opening.runtime()), Box::new(opening.opener()));
    let place = config.owns_datastore().then(|| Place::of_etcd(&config));
    let (clients, metrics) = (Routes::of_clients(&server, place.as_ref()), Routes::of_metrics(&server));
    let mut bound = Vec::new();
    let of_clients = config.clients.iter().map(|url| (url, &clients));
    for (url, routes) in of_clients.chain(config.metrics.iter().map(|url| (url, &metrics))) {
        let tls = (url.scheme_str() == Some("https")).then(|| tls.clone()).flatten();
        bound.push((url, listener::bind(url).await?, tls, routes.clone()));
    }
    if !config.ignored.is_empty() {
        tracing::warn!(flags = config.ignored.join(", "), "flags without effect here");
    }
    if let Some(place) = &place {
        tracing::info!("{place}");
    }
    let mut serving = JoinSet::new();
    for (url, listener, tls, routes) in bound {
        serving.spawn(listener::accept(listener, tls, routes, config.keepalive));
        tracing::info!(%url, store = %config.datastore, "ready to serve client requests");
    }
    let failure = tokio::select! {
        reason = ends.next() => {
            tracing::info!(reason, "shutting down");
            None
        }
        failure = opening.failed() => Some(failure),
    };
    // Clients go on with another server, or when this one is there again.
    serving.shutdown().await;
    drop((server, clients, metrics));
    opening.close().await;
    failure.map_or(Ok(()), |failure| Err(Error::Failed(failure)))
}
