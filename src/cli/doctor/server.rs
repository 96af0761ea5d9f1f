//! The running server, by the kubeconfig of its data directory.

use std::path::Path;
use std::time::Duration;

use axum::http::StatusCode;
use jiff::Timestamp;

use super::Finding;
use super::store::{clocks, holder};
use crate::cli::client::Client;
use crate::server::datastore::Datastore;

const PATIENCE: Duration = Duration::from_secs(5);

/// The findings, and the server's URL if its directory tells it.
pub struct Served {
    pub findings: Vec<Finding>,
    pub url: Option<String>,
}

/// Asks the server.
pub async fn look(data_dir: &Path, datastore: &Datastore) -> Served {
    let kubeconfig = data_dir.join("admin.kubeconfig");
    let client = match kubeconfig.exists() {
        true => Client::of_kubeconfig(&kubeconfig),
        false => Err(format!("{} is not there", kubeconfig.display())),
    };
    let client = match client {
        Ok(client) => client,
        Err(why) => return Served { findings: vec![without(why, data_dir, datastore)], url: None },
    };
    let url = client.url().as_str().trim_end_matches('/').to_owned();
    let findings = match client.get("/readyz?verbose", PATIENCE).await {
        Ok(answer) if answer.status == StatusCode::OK => {
            let mut findings = vec![Finding::good("server", format!("{url} is ready"))];
            findings.extend(answer.date.map(|there| {
                // The header counts in whole seconds.
                clocks("server", there.as_microsecond(), Timestamp::now().as_microsecond())
            }));
            findings
        }
        Ok(answer) => {
            let text = String::from_utf8_lossy(&answer.body).into_owned();
            let failed: Vec<&str> = text.lines().filter(|line| line.starts_with("[-]")).collect();
            let text = format!("{url} is not ready: {} {}", answer.status, failed.join(", "));
            vec![Finding::bad("server", text.trim_end().to_owned(), "look into its log")]
        }
        Err(why) if why.contains("refused") => vec![without(why, data_dir, datastore)],
        Err(why) => {
            let cure = "stop the program at this address, or remove the outdated admin.kubeconfig, and start the server";
            vec![Finding::bad(
                "server",
                format!("{url} does not answer as this directory's server: {why}"),
                cure,
            )]
        }
    };
    Served { findings, url: Some(url) }
}

/// No server answers; a process may hold the database all the same.
fn without(why: String, data_dir: &Path, datastore: &Datastore) -> Finding {
    let holder = match datastore {
        Datastore::Sqlite(path) => holder(path),
        _ => None,
    };
    match holder {
        Some(process) => {
            let text = format!("process {process} holds the database, and no server answers: {why}");
            Finding::bad("server", text, format!("wait for it, or end it: kill {process}"))
        }
        None => {
            let cure = format!("rowplane serve --data-dir {}", data_dir.display());
            Finding::warning("server", format!("none runs: {why}"), cure)
        }
    }
}
