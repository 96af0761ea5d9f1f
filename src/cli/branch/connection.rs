//! A cluster whose branches are made and used, by a kubeconfig.

use std::path::PathBuf;
use std::time::Duration;

use axum::http::{Method, StatusCode};
use clap::Args;
use jiff::Timestamp;

use super::kubeconfig;
use crate::api::fields::text;
use crate::cli::client::Client;
use crate::cli::error::Error;
use crate::cli::past::when::{When, local_zone};
use crate::http::branches::paths::ENDPOINTS;
use crate::tree::{Map, Value, json};

const PATIENCE: Duration = Duration::from_secs(60);
const JSON: &str = "application/json";

/// The kubeconfig of a cluster.
#[derive(Clone, Debug, Args)]
pub struct ConnectionArgs {
    /// The cluster's kubeconfig, whose current context counts [default: $KUBECONFIG, or else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

impl ConnectionArgs {
    fn path(&self) -> Result<PathBuf, Error> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let named = || variable("KUBECONFIG")?.split(':').next().map(PathBuf::from);
        let usual = || Some(PathBuf::from(variable("HOME")?).join(".kube/config"));
        let path = self.kubeconfig.clone().or_else(named).or_else(usual);
        path.ok_or_else(|| Error::Usage("there is no kubeconfig; name one with --kubeconfig".to_owned()))
    }
}

/// A cluster, and the user of its kubeconfig.
pub struct Connection {
    client: Client,
    kubeconfig: PathBuf,
}

impl Connection {
    pub fn of(arguments: &ConnectionArgs) -> Result<Self, Error> {
        let kubeconfig = arguments.path()?;
        let client = Client::of_kubeconfig(&kubeconfig).map_err(Error::Refused)?;
        Ok(Self { client, kubeconfig })
    }

    /// The URL of the cluster.
    pub fn url(&self) -> &str {
        self.client.url().as_str().trim_end_matches('/')
    }

    /// The text of a kubeconfig for the branch at a path below the cluster's URL.
    pub fn kubeconfig(&self, path: &str) -> Result<String, Error> {
        kubeconfig::of_branch(&self.kubeconfig, path).map_err(Error::Refused)
    }

    /// Makes a branch of the newest state, or of that at a time as people write it.
    pub async fn create(&self, name: &str, keeps_secrets: bool, at: Option<&str>) -> Result<Map, Error> {
        let secrets = if keeps_secrets { "keep" } else { "replace" };
        let mut body = json!({"name": name, "secrets": secrets});
        if let Some(at) = self.time(at).await? {
            body["at"] = at.into();
        }
        self.done(Method::POST, ENDPOINTS, Some((JSON, &body))).await
    }

    /// The time as the server reads it, by the server's clock; `None` for the present.
    async fn time(&self, at: Option<&str>) -> Result<Option<String>, Error> {
        let Some(at) = at else { return Ok(None) };
        let answer = self.client.get("/version", PATIENCE).await.map_err(Error::Refused)?;
        let now = answer.date.unwrap_or_else(Timestamp::now).to_zoned(local_zone());
        Ok(When::parse(at, &now).map_err(Error::Usage)?.segment())
    }

    pub async fn list(&self) -> Result<Map, Error> {
        self.done(Method::GET, ENDPOINTS, None).await
    }

    pub async fn branch(&self, name: &str) -> Result<Map, Error> {
        self.done(Method::GET, &endpoint(name, ""), None).await
    }

    /// The objects that differ on a branch.
    pub async fn changes(&self, name: &str) -> Result<Map, Error> {
        self.done(Method::GET, &endpoint(name, "/changes"), None).await
    }

    pub async fn delete(&self, name: &str) -> Result<Map, Error> {
        self.done(Method::DELETE, &endpoint(name, ""), None).await
    }

    /// The answer to a request that must succeed.
    async fn done(&self, method: Method, path: &str, body: Option<(&str, &Value)>) -> Result<Map, Error> {
        let (status, answer) = self.ask(method, path, body).await?;
        match status.is_success() {
            true => Ok(answer),
            false => Err(Error::Refused(told(status, &answer))),
        }
    }

    /// The answer to a request, whatever its status. An answer without JSON is empty.
    pub async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, &Value)>,
    ) -> Result<(StatusCode, Map), Error> {
        let body = body.map(|(media, body)| (media, body.to_string()));
        let answer = self
            .client
            .send(method, path, "application/json", body, PATIENCE)
            .await
            .map_err(Error::Refused)?;
        Ok((answer.status, serde_json::from_slice(&answer.body).unwrap_or_default()))
    }
}

/// The path of an endpoint, in which any name is a single segment.
fn endpoint(name: &str, rest: &str) -> String {
    let name: String = url::form_urlencoded::byte_serialize(name.as_bytes()).collect();
    format!("{ENDPOINTS}/{name}{rest}")
}

/// The message of an answer that is no success.
pub fn told(status: StatusCode, answer: &Map) -> String {
    match text(answer, &["message"]) {
        "" => format!("the server answers {status}"),
        message => message.to_owned(),
    }
}
