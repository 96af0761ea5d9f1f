//! The webhook of one definition: what is sent, and what is counted.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::ObjectMap;
use crate::egress::{Network, Route};
use crate::error::Error;
use crate::kinds::conversion_review::{Failure, Refused, Review};
use crate::kinds::custom::{ConversionWebhook, CustomDefinition, WebhookPlace};
use crate::long_work;
use crate::metrics::Conversion;
use crate::runtime::Runtime;
use crate::schema::names::{GroupVersion, Gvk};
use crate::service_routes::{ServicePort, ServiceRoutes};
use crate::tree::Text;
use crate::webhook::{CallError, Endpoint, Webhook};

/// The timeout of upstream's clients of webhooks.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Calls of one webhook at a time: what a webhook that hangs, or answers with too much, can hold of the server.
const AT_ONCE: usize = 16;

/// The means by which webhooks are called.
pub struct Caller {
    pub routes: Arc<ServiceRoutes>,
    pub runtime: Runtime,
}

/// The webhook of a definition.
#[derive(Debug)]
pub struct Hook {
    definition: Text,
    config: ConversionWebhook,
    endpoint: Option<Endpoint>,
    /// Made for the first call, since the system's authorities are read from files.
    client: OnceLock<Webhook>,
    slots: Semaphore,
}

/// A conversion that failed.
pub struct Failed {
    pub error: Error,
    /// Whether any other object would have failed, too.
    pub is_of_all: bool,
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        failed.error
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self { error, is_of_all: false }
    }
}

impl Hook {
    /// `None` if no webhook converts the definition's objects.
    pub fn of(definition: &CustomDefinition) -> Option<Arc<Self>> {
        let config = definition.conversion.clone()?;
        let endpoint = match &config.place {
            WebhookPlace::Url(url) => Endpoint::parse(url),
            WebhookPlace::Service { namespace, name, port, path } => {
                Some(Endpoint::of_service(namespace, name, *port, path))
            }
        };
        Some(Arc::new(Self {
            definition: definition.name.clone(),
            config,
            endpoint,
            client: OnceLock::new(),
            slots: Semaphore::new(AT_ONCE),
        }))
    }

    /// Lets the webhook convert objects of one version, which are none of the version that is wanted.
    pub async fn convert(
        &self,
        caller: &Caller,
        from: &Gvk,
        to: GroupVersion,
        objects: &[ObjectMap],
    ) -> Result<Vec<ObjectMap>, Failed> {
        let began = Instant::now();
        let converted = self.ask(caller, &to, objects).await;
        let failure = converted.as_ref().err().map(|refused| refused.failure);
        caller.runtime.metrics.converted(&Conversion {
            definition: &self.definition,
            from: from.version(),
            to: to.version(),
            failure: failure.map(Failure::label),
            took: began.elapsed(),
        });
        converted.map_err(|Refused { failure, why, is_bare }| {
            let why = if is_bare { why } else { format!("conversion webhook for {from} {why}") };
            Failed { error: Error::Unclassified(why), is_of_all: failure == Failure::Call }
        })
    }

    async fn ask(
        &self,
        caller: &Caller,
        to: &GroupVersion,
        objects: &[ObjectMap],
    ) -> Result<Vec<ObjectMap>, Refused> {
        let failed = |why: String| Failure::Call.because(format!("failed: {why}"));
        let version = self.config.review;
        let version = version.ok_or_else(|| failed("no supported conversion review versions".to_owned()))?;
        let uid = caller.runtime.random.uuid().to_string();
        let review = Review { version, uid: &uid, desired: to, objects };
        let body = Bytes::from(review.request().to_string());
        let answer = self.post(caller, body).await.map_err(|error| failed(error.to_string()))?;
        review.read(&answer)
    }

    async fn post(&self, caller: &Caller, body: Bytes) -> Result<Bytes, CallError> {
        let Some(endpoint) = &self.endpoint else {
            return Err(CallError("Unparsable URL".to_owned()));
        };
        let client = self.client.get_or_init(|| {
            long_work::run(|| Webhook::new(endpoint.clone(), &self.config.ca_bundle, TIMEOUT))
        });
        let route = || match &self.config.place {
            WebhookPlace::Url(_) => {
                Ok(Route::of(endpoint.address(), caller.runtime.egresses.to(Network::ControlPlane)))
            }
            WebhookPlace::Service { namespace, name, port, .. } => {
                caller.routes.route(ServicePort { namespace, name, port: *port })
            }
        };
        let slot = tokio::time::timeout(TIMEOUT, self.slots.acquire()).await;
        let Ok(Ok(_slot)) = slot else { return Err(client.failed("context deadline exceeded")) };
        client.post(&route, body).await
    }
}
