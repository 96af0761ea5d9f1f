//! `rowplane healthcheck`: asks whether a server on this machine is ready, for containers without curl.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use axum::http::StatusCode;
use clap::Args;

use super::args::{DATA_DIR, positive_duration};
use super::client::{Answer, Client};
use super::error::Error;

const READYZ: &str = "/readyz";

/// The server that is asked.
#[derive(Clone, Debug, Args)]
pub struct HealthcheckArgs {
    /// The data directory of the server, whose admin.kubeconfig says where it listens and whom it believes
    #[arg(long, env = "ROWPLANE_DATA_DIR", value_name = "DIR", default_value = DATA_DIR)]
    data_dir: PathBuf,
    /// The server's URL instead, asked anonymously and without a look at its certificate, as a kubelet's probe asks; with a path
    /// such as /livez, that is asked
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// The time after which a server that has not answered is not ready
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = positive_duration)]
    timeout: Duration,
}

/// Succeeds if the server is ready.
pub async fn check(arguments: HealthcheckArgs) -> Result<(), Error> {
    let (client, path) = match &arguments.url {
        Some(url) => {
            let client =
                Client::anonymous(url).map_err(|why| Error::Usage(format!("invalid --url: {why}")))?;
            let path = if client.url().path() == "/" { READYZ } else { "" };
            (client, path)
        }
        None => (of_data_dir(&arguments.data_dir.join("admin.kubeconfig"))?, READYZ),
    };
    let asked = format!("{}{path}", client.url().as_str().trim_end_matches('/'));
    let unhealthy = |why: String| Error::Unhealthy { asked: asked.clone(), why };
    match client.get(path, arguments.timeout).await {
        Ok(answer) if answer.status == StatusCode::OK => {
            writeln!(io::stdout().lock(), "{asked}: ok").map_err(Error::Output)
        }
        Ok(Answer { status, body, .. }) => {
            // Each failed check is a line that begins so.
            let body = String::from_utf8_lossy(&body);
            let failed: Vec<&str> = body.lines().filter(|line| line.starts_with("[-]")).collect();
            let told = if failed.is_empty() { body.trim().to_owned() } else { failed.join(", ") };
            Err(unhealthy(format!("{status}: {told}")))
        }
        Err(why) => Err(unhealthy(why)),
    }
}

fn of_data_dir(kubeconfig: &std::path::Path) -> Result<Client, Error> {
    if !kubeconfig.exists() {
        return Err(Error::Refused(format!(
            "no server is ready with this data directory: {} is not there; for a server that writes none, such as \
             kube-apiserver, give --url=https://127.0.0.1:6443",
            kubeconfig.display()
        )));
    }
    Client::of_kubeconfig(kubeconfig).map_err(Error::Refused)
}
