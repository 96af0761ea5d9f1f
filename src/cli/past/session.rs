//! A command's view of a server: requests, their errors, and a time that is resolved once.

use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use clap::Args;
use jiff::{Timestamp, Zoned};

use super::kubeconfig::Kubeconfig;
use super::when::{When, local_zone};
use crate::cli::client::{Answer, Client};
use crate::cli::error::Error;
use crate::tree::Value;
use crate::webhook::CurrentCluster;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);
const JSON: &str = "application/json";

/// The flags that choose a server and a user.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server flags")]
pub struct ServerArgs {
    /// The kubeconfig [default: those of the variable KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The namespace [default: that of the context]
    #[arg(long, short, value_name = "NAME")]
    pub namespace: Option<String>,
}

impl ServerArgs {
    pub fn new(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Self { kubeconfig, context, namespace: None }
    }
}

/// A server as the user of a kubeconfig.
pub struct Session {
    client: Client,
    pub kubeconfig: Kubeconfig,
    pub namespace: String,
    /// The server's time, in the zone of this host.
    pub now: Zoned,
}

/// A moment of the past, or the present.
#[derive(Clone, Debug)]
pub struct At {
    /// The path of its door; empty for the present.
    pub door: String,
    /// The server's name for it: `2026-11-22T09:59:58.412Z; revision=123456`; empty for the present.
    pub shown: String,
}

impl At {
    /// The revision of the state; `None` for the present.
    pub fn revision(&self) -> Option<u64> {
        self.shown.split_once("revision=")?.1.parse().ok()
    }
}

impl Session {
    pub async fn open(arguments: &ServerArgs) -> Result<Self, Error> {
        let kubeconfig = Kubeconfig::load(arguments.kubeconfig.as_deref(), arguments.context.as_deref())
            .map_err(Error::Usage)?;
        let content = kubeconfig.with_credentials().map_err(Error::Refused)?;
        let cluster = CurrentCluster::of(&content, Path::new("/")).map_err(Error::Usage)?;
        let client = Client::of_cluster(cluster).map_err(Error::Usage)?;
        let namespace = arguments.namespace.clone().unwrap_or_else(|| kubeconfig.namespace().to_owned());
        let answer = client.get("/version", TIMEOUT).await.map_err(|why| unreachable(&client, &why))?;
        let now = answer.date.unwrap_or_else(Timestamp::now).to_zoned(local_zone());
        Ok(Self { client, kubeconfig, namespace, now })
    }

    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The moment that a text names: asked for once, so that all requests see the same state.
    pub async fn at(&self, text: &str) -> Result<At, Error> {
        let when = When::parse(text, &self.now).map_err(Error::Usage)?;
        let Some(segment) = when.segment() else {
            return Ok(At { door: String::new(), shown: String::new() });
        };
        let door = format!("/asof/{segment}");
        let answer = self.send(Method::GET, &format!("{door}/version"), String::new()).await?;
        let shown = answer.headers.get("rowplane-as-of").and_then(|text| text.to_str().ok());
        let shown = shown.ok_or_else(|| match answer.status.is_success() {
            false => refused(&answer),
            true => Error::Refused("this server has no door to the past; it is older than that".to_owned()),
        })?;
        Ok(At { door, shown: shown.to_owned() })
    }

    /// The answer to a request, whatever it says.
    pub async fn send(&self, method: Method, path: &str, body: String) -> Result<Answer, Error> {
        self.send_accepting(method, path, JSON, body).await
    }

    /// The variant of [`Session::send`] for another form of the answer.
    pub async fn send_accepting(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: String,
    ) -> Result<Answer, Error> {
        let body = (!body.is_empty()).then_some(("application/json", body));
        let sent = self.client.send(method, path, accept, body, TIMEOUT).await;
        sent.map_err(|why| unreachable(&self.client, &why))
    }

    /// The object at a path; the server's refusal otherwise.
    pub async fn get(&self, path: &str) -> Result<Value, Error> {
        let answer = self.send(Method::GET, path, String::new()).await?;
        parse(&answer)
    }

    /// The object at a path; `None` if there is none.
    pub async fn find(&self, path: &str) -> Result<Option<Value>, Error> {
        let answer = self.send(Method::GET, path, String::new()).await?;
        match answer.status {
            StatusCode::NOT_FOUND => Ok(None),
            _ => parse(&answer).map(Some),
        }
    }

    /// All items of a list, page by page.
    pub async fn list(&self, path: &str) -> Result<Vec<Value>, Error> {
        let mut items = Vec::new();
        let mut token = String::new();
        loop {
            let separator = if path.contains('?') { '&' } else { '?' };
            let mut page = self.get(&format!("{path}{separator}limit=500&continue={token}")).await?;
            if let Value::Array(more) = page["items"].take() {
                items.extend(more);
            }
            token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
            if token.is_empty() {
                return Ok(items);
            }
        }
    }
}

fn unreachable(client: &Client, why: &str) -> Error {
    Error::Refused(format!("{} does not answer: {why}", client.url()))
}

/// The JSON of an answer; the server's own words if it refuses.
pub fn parse(answer: &Answer) -> Result<Value, Error> {
    match answer.status.is_success() {
        true => serde_json::from_slice(&answer.body)
            .map_err(|error| Error::Refused(format!("the server's answer is no JSON: {error}"))),
        false => Err(refused(answer)),
    }
}

/// The server's words on a request that it has refused.
pub fn refused(answer: &Answer) -> Error {
    let status: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let message = status.as_ref().and_then(|status| status["message"].as_str()).map(str::to_owned);
    Error::Refused(
        message.unwrap_or_else(|| {
            format!("{}: {}", answer.status, String::from_utf8_lossy(&answer.body).trim())
        }),
    )
}
