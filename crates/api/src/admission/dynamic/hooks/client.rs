//! The address of a webhook, and the connections to it.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;

use super::credentials::Credentials;
use crate::egress::{Network, Route};
use crate::service_routes::ServicePort;
use crate::tree::Value;
use crate::webhook::{Endpoint, Failed, Sent, Webhook};
use crate::{Cluster, ObjectMap, fields};

/// Calls of one webhook at a time: what a webhook that hangs, or answers with too much, can hold of the server.
const AT_ONCE: usize = 128;

/// The `clientConfig` of a webhook.
#[derive(Clone, Debug)]
pub enum Place {
    Url(String),
    Service { namespace: String, name: String, port: u16, path: String },
}

/// How a webhook is reached.
pub struct Client {
    webhook: Result<Webhook, String>,
    slots: Semaphore,
}

/// A call that brought no answer.
pub enum Unanswered {
    /// No client can be made.
    NoClient(String),
    Failed(Failed),
}

impl Place {
    pub fn of(config: &ObjectMap) -> Self {
        let Some(service) = fields::object(config, "service") else {
            return Self::Url(fields::text(config, &["url"]).to_owned());
        };
        let text = |field| fields::text(service, &[field]).to_owned();
        let port = service.get("port").and_then(Value::as_u64);
        let port = port.and_then(|port| u16::try_from(port).ok()).unwrap_or(443);
        Self::Service { namespace: text("namespace"), name: text("name"), port, path: text("path") }
    }

    fn endpoint(&self) -> Result<Endpoint, String> {
        match self {
            Self::Url(url) => Endpoint::parse(url).ok_or_else(|| format!("Unparsable URL: {url}")),
            Self::Service { namespace, name, port, path } => {
                Ok(Endpoint::of_service(namespace, name, *port, path))
            }
        }
    }
}

impl Client {
    /// A client for the webhook at this place, whose certificate is issued by `ca_bundle`.
    pub fn new(place: &Place, ca_bundle: &[u8], timeout: Duration, credentials: &Credentials) -> Self {
        let webhook = || {
            let endpoint = place.endpoint()?;
            let client = credentials.of_host(&endpoint.address())?;
            let webhook = Webhook::as_client(endpoint, ca_bundle, timeout, client);
            match webhook.unusable() {
                Some(why) => Err(why.to_owned()),
                None => Ok(webhook),
            }
        };
        Self { webhook: webhook(), slots: Semaphore::new(AT_ONCE) }
    }

    /// Posts a review to the webhook, within this time.
    pub async fn post(
        &self,
        cluster: &Cluster,
        place: &Place,
        sent: Sent<'_>,
        time: Duration,
    ) -> Result<Bytes, Unanswered> {
        let webhook = self.webhook.as_ref().map_err(|why| Unanswered::NoClient(why.clone()))?;
        let failed =
            |why: &str| Unanswered::Failed(Failed { why: webhook.failed_within(time, why), status: None });
        let route = || match place {
            Place::Url(_) => {
                let egress = cluster.runtime.egresses.to(Network::ControlPlane);
                Ok(Route::of(webhook.endpoint().address(), egress))
            }
            Place::Service { namespace, name, port, .. } => {
                cluster.service_routes.route(ServicePort { namespace, name, port: *port })
            }
        };
        let began = tokio::time::Instant::now();
        let slot = tokio::time::timeout(time, self.slots.acquire()).await;
        let Ok(Ok(_slot)) = slot else { return Err(failed("context deadline exceeded")) };
        let left = time.saturating_sub(began.elapsed());
        webhook.call(&route, sent, left).await.map_err(Unanswered::Failed)
    }
}
