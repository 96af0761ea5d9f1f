//! `rowplane up`: a server, and upstream's kube-controller-manager and kube-scheduler beside it, as children of this
//! process.
//!
//! Each child is started again when it ends, after a pause that grows. The components stop before the server, so that they
//! can finish what they have begun.

mod cluster;
mod components;
mod join;
mod log;
mod supervisor;
pub mod tied;

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::future::join;

use self::cluster::Cluster;
use self::components::Components;
use self::join::Token;
use self::supervisor::{Program, Running, Stop, tell};
use super::args::up::UpArgs;
use super::banner::for_shell;
use super::client::Client;
use super::config::Lifetime;
use super::error::Error;
use super::logging;
use super::output::print;
use super::serve::notify;
use super::signals::Ends;
use crate::server;

/// The pause between two questions whether the server is ready.
const ASK_EVERY: Duration = Duration::from_millis(100);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Runs a cluster until a signal arrives. `given` are the arguments after the command's name.
///
/// Has to be polled by the main thread, which the children are tied to.
pub async fn run(arguments: UpArgs, given: &[OsString]) -> Result<(), Error> {
    let config = arguments.into_config()?;
    logging::init(config.serve.log.quiet());
    let mut ends = Ends::catch(Lifetime::UntilSignal).map_err(Error::Signals)?;
    let components = Components::find(config.components.as_deref()).await?;
    let cluster = Cluster::new(config, components)?;
    cluster.check_ports()?;
    cluster.ensure_server_certificates()?;
    create_dir(&cluster.log_dir())?;
    let server = cluster.server(given)?;
    let (token, stop) = (Token::new(), Stop::default());
    let mut first = start(&server)?;
    // A server that does not start the first time has been started wrongly.
    let line = tokio::select! {
        _ = first.ended() => return Err(refusal(&first.last_line())),
        line = ready(&cluster, &token) => line.map_err(|why| Error::Refused(format!("nodes could not join: {why}")))?,
        _ = ends.next() => {
            first.stop(&stop).await;
            return Ok(());
        }
    };
    print(&message(&cluster, &token, &line))?;
    notify(sd_notify::NotifyState::Ready);
    supervise(&cluster, (&server, first), &token, &stop, &mut ends).await;
    Ok(())
}

/// Keeps all programs running until a signal arrives, and ends them. A second signal ends them at once.
async fn supervise(
    cluster: &Cluster,
    (server, first): (&Program, Running),
    token: &Token,
    stop: &Stop,
    ends: &mut Ends,
) {
    let of_server = Stop { now: stop.now.clone(), ..Stop::default() };
    let [controller_manager, scheduler] = [cluster.controller_manager(), cluster.scheduler()];
    let certificate = |name| move || cluster.ensure_certificate(name).map_err(|error| error.one_line());
    let attend_server = async || {
        // A store in memory has lost its objects with the server before.
        if let Err(why) = ready(cluster, token).await {
            tell(&format!("nodes could not join: {why}"));
        }
    };
    let components = async {
        let controller_manager =
            controller_manager.keep(None, stop, certificate("controller-manager"), async || ());
        join(controller_manager, scheduler.keep(None, stop, certificate("scheduler"), async || ())).await;
        of_server.gently.cancel();
    };
    let prepare_server = || cluster.ensure_server_certificates().map_err(|error| error.one_line());
    let server = server.keep(Some(first), &of_server, prepare_server, attend_server);
    let mut all = pin!(join(server, components));
    tokio::select! {
        _ = &mut all => return,
        reason = ends.next() => tell(&format!("{reason}: all programs are ending")),
    }
    notify(sd_notify::NotifyState::Stopping);
    stop.gently.cancel();
    tokio::select! {
        _ = &mut all => return,
        _ = ends.next() => stop.now.cancel(),
    }
    all.await;
}

/// Waits until the server is ready, and creates what nodes need to join. Returns the line by which they do.
async fn ready(cluster: &Cluster, token: &Token) -> Result<String, String> {
    let kubeconfig = cluster.admin_kubeconfig();
    while !is_ready(&kubeconfig).await {
        tokio::time::sleep(ASK_EVERY).await;
    }
    join::prepare(cluster, token, &kubeconfig).await
}

async fn is_ready(kubeconfig: &Path) -> bool {
    // The file of an earlier server may be there, or none yet.
    let Ok(client) = Client::of_kubeconfig(kubeconfig) else { return false };
    matches!(client.get("/readyz", ANSWER_WITHIN).await, Ok(answer) if answer.status == StatusCode::OK)
}

fn start(program: &Program) -> Result<Running, Error> {
    program.start().map_err(|source| Error::Command { name: program.path.clone().into(), source })
}

/// The server's own last words.
fn refusal(line: &str) -> Error {
    let why = line.strip_prefix("rowplane: ").unwrap_or(line);
    Error::Refused(if why.is_empty() {
        "the server has ended without a word".to_owned()
    } else {
        why.to_owned()
    })
}

fn message(cluster: &Cluster, token: &Token, line: &str) -> String {
    format!(
        "rowplane {} with kube-controller-manager and kube-scheduler {}\n  store  {}\n  url    https://{}\n\
         \x20 logs   {}\nexport KUBECONFIG={}\nA node joins until {} by:\n  {line}\n",
        env!("CARGO_PKG_VERSION"),
        cluster.version,
        cluster.config.serve.server.datastore,
        cluster.endpoint(),
        cluster.log_dir().display(),
        for_shell(&cluster.admin_kubeconfig().to_string_lossy()),
        token.until,
    )
}

fn create_dir(path: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| Error::Server(server::Error::DataDir { path: path.to_owned(), source }))
}
