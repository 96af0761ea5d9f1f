//! A server with breakable connections on both sides.

use tokio::sync::{Mutex, MutexGuard};

use super::process::{Installation, Process};
use super::proxy::{Proxy, Target};
use super::releases::Program;
use super::replicas::Database;
use crate::support::rest::Client;

pub struct Server {
    pub installation: Installation,
    /// `None` while it is killed. Locked while a fault disturbs the process.
    process: Mutex<Option<Process>>,
    /// Between clients and the server.
    pub front: Proxy,
    /// Between the server and PostgreSQL.
    pub back: Option<Proxy>,
    pub client: Client,
}

impl Server {
    pub async fn start(database: &Database, arguments: Vec<String>) -> Self {
        Self::start_as(Program::newer(), database, arguments).await
    }

    /// Starts this program.
    pub async fn start_as(program: Program, database: &Database, mut arguments: Vec<String>) -> Self {
        let back = match database.target() {
            Some(target) => Some(Proxy::start(target).await),
            None => None,
        };
        if let Some(back) = &back {
            arguments
                .push(format!("--datastore={}", super::cluster::Cluster::url_through(back.address().port())));
        }
        // Namespaces hold what the load makes, and nothing else.
        for flag in [
            "--namespace-contents=false",
            "--cluster-authentication=false",
            "--disable-admission-plugins=ServiceAccount",
        ] {
            arguments.push(flag.to_owned());
        }
        let installation = Installation::new(program, arguments);
        let process = installation.start().await;
        // Its certificates are of a time that has passed on every clock that it may have later.
        installation.clock.set(0);
        let inside = format!("127.0.0.1:{}", installation.port()).parse().expect("an address");
        let front = Proxy::start(Target::Tcp(inside)).await;
        let client = Client::at(&installation.kubeconfig(), &format!("https://{}", front.address())).await;
        Self { installation, process: Mutex::new(Some(process)), front, back, client }
    }

    pub async fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().await
    }

    /// Starts the server again if it has ended by itself. Returns whether it had.
    pub async fn revive(&self) -> bool {
        let mut process = self.process().await;
        let ended = process.as_mut().is_some_and(|running| running.has_ended());
        if ended {
            *process = Some(self.installation.start().await);
        }
        ended
    }

    /// The panics in the server's log, but for that of the standard library where a thread that starts gets no memory for the
    /// stack of its signals: the thread has done nothing yet, and whoever wanted it sees it as ended.
    pub fn panics(&self) -> Vec<String> {
        let log = self.installation.log();
        let panics = log.lines().filter(|line| line.contains("panicked at"));
        panics.filter(|line| !line.contains("/unix/stack_overflow.rs:")).map(str::to_owned).collect()
    }
}
