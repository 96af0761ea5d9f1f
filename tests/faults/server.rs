//! A server with breakable connections on both sides.

use tokio::sync::{Mutex, MutexGuard};

use super::process::{Installation, Process, Skew};
use super::proxy::{Proxy, Target};
use super::releases::Program;
use super::run::Database;
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
    pub async fn start(
        database: &Database,
        program: Program,
        mut arguments: Vec<String>,
        skew: Option<Skew>,
    ) -> Self {
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
        let installation = Installation::new(program, arguments, skew);
        let process = installation.start().await;
        let inside = format!("127.0.0.1:{}", installation.port()).parse().expect("an address");
        let front = Proxy::start(Target::Tcp(inside)).await;
        let client = Client::at(&installation.kubeconfig(), &format!("https://{}", front.address())).await;
        Self { installation, process: Mutex::new(Some(process)), front, back, client }
    }

    pub async fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().await
    }

    /// The panics in the server's log.
    pub fn panics(&self) -> Vec<String> {
        let log = self.installation.log();
        log.lines().filter(|line| line.contains("panicked at")).map(str::to_owned).collect()
    }
}
