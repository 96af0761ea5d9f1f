//! `rowplane serve`: runs a server until a signal arrives, or its standard input ends.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::banner;
use super::config::{Lifetime, ServeConfig};
use super::error::Error;
use super::signals::Ends;
use crate::server::application;
use crate::server::config::Config;
use crate::server::environment::Build;
use crate::server::{Server, open_files};
use crate::tasks::Failure;

/// How long a server that has failed may take to end.
const ABANDONED: Duration = Duration::from_secs(5);

/// Whether to print a message once the server is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Banner {
    Print {
        /// The path by which the reader knows the kubeconfig, if it differs from the server's.
        kubeconfig: Option<PathBuf>,
    },
    Omit,
}

/// Runs a server until its lifetime ends.
pub async fn serve(config: ServeConfig, banner: Banner) -> Result<(), Error> {
    let build = Box::new(|environment| application::build(environment).boxed());
    serve_with(config.server, banner, config.lifetime, build).await
}

/// Like [`serve`], for an application that `build` makes.
pub(super) async fn serve_with(
    config: Config,
    banner: Banner,
    lifetime: Lifetime,
    build: Build,
) -> Result<(), Error> {
    let mut ends = Ends::catch(lifetime).map_err(Error::Signals)?;
    open_files::raise_limit();
    let store = config.datastore.clone();
    let server = tokio::select! {
        started = Server::builder().config(config).start_with(build) => started?,
        // The server has not promised anything to anybody yet.
        _ = ends.next() => return Ok(()),
    };
    if let Banner::Print { kubeconfig } = banner {
        banner::print(&server, &store, kubeconfig);
    }
    notify(sd_notify::NotifyState::Ready);
    tokio::select! {
        reason = ends.next() => tracing::info!(reason, "shutting down"),
        failure = server.failed() => return abandon(server, failure).await,
    }
    notify(sd_notify::NotifyState::Stopping);
    let failure = server.failure();
    tokio::select! {
        () = server.stop() => Ok(()),
        failure = failure => Err(Error::Failed(failure)),
        reason = ends.next() => {
            tracing::warn!(reason, "shutting down without waiting any longer");
            Ok(())
        }
    }
}

/// Tells the service manager that has started this process, if it waits for that (`NOTIFY_SOCKET`, as of systemd's
/// `Type=notify`).
pub(super) fn notify(state: sd_notify::NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "the service manager cannot be told how the server is");
    }
}

/// Ends a server that has failed. Running requests may finish within a short time.
async fn abandon(server: Server, failure: Failure) -> Result<(), Error> {
    if tokio::time::timeout(ABANDONED, server.stop_now()).await.is_err() {
        tracing::warn!("not everything has ended in time");
    }
    Err(Error::Failed(failure))
}
