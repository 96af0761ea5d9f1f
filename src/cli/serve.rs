//! `rowplane serve`: runs a server until a signal arrives.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::banner;
use super::error::Error;
use super::signals::Signals;
use crate::server::config::Config;
use crate::server::environment::Build;
use crate::server::{Server, application, open_files};
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

/// Runs a server until a signal arrives.
pub async fn serve(config: Config, banner: Banner) -> Result<(), Error> {
    let build: Build = Box::new(|environment| application::build(environment).boxed());
    serve_with(config, banner, build).await
}

/// Like [`serve`], for an application that `build` makes.
pub(super) async fn serve_with(config: Config, banner: Banner, build: Build) -> Result<(), Error> {
    let mut signals = Signals::catch().map_err(Error::Signals)?;
    open_files::raise_limit();
    let store = config.datastore.clone();
    let server = tokio::select! {
        started = Server::builder().config(config).start_with(build) => started?,
        // The server has not promised anything to anybody yet.
        _ = signals.next() => return Ok(()),
    };
    if let Banner::Print { kubeconfig } = banner {
        banner::print(&server, &store, kubeconfig);
    }
    tokio::select! {
        signal = signals.next() => tracing::info!(signal, "shutting down"),
        failure = server.failed() => return abandon(server, failure).await,
    }
    let failure = server.failure();
    tokio::select! {
        () = server.stop() => Ok(()),
        failure = failure => Err(Error::Failed(failure)),
        signal = signals.next() => {
            tracing::warn!(signal, "shutting down without waiting any longer");
            Ok(())
        }
    }
}

/// Ends a server that has failed. Running requests may finish within a short time.
async fn abandon(server: Server, failure: Failure) -> Result<(), Error> {
    if tokio::time::timeout(ABANDONED, server.stop_now()).await.is_err() {
        tracing::warn!("not everything has ended in time");
    }
    Err(Error::Failed(failure))
}
