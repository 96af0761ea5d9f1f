//! How a definition says that a webhook converts its objects.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::fields;
use crate::kinds::conversion_review::ReviewVersion;
use crate::kinds::prelude::*;

/// `spec.conversion.webhook` of a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionWebhook {
    pub place: WebhookPlace,
    /// PEM; empty if the system's authorities are trusted.
    pub ca_bundle: Vec<u8>,
    /// `None` if the definition names no version of the review that is known.
    pub review: Option<ReviewVersion>,
}

/// The place of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookPlace {
    Url(String),
    Service { namespace: String, name: String, port: u16, path: String },
}

impl ConversionWebhook {
    /// `None` if the strategy is not `Webhook`.
    pub fn of(definition: &ObjectMap) -> Option<Self> {
        let conversion = fields::at(definition, &["spec", "conversion"]).and_then(Value::as_object)?;
        if fields::text(conversion, &["strategy"]) != "Webhook" {
            return None;
        }
        let empty = ObjectMap::new();
        let webhook = fields::object(conversion, "webhook").unwrap_or(&empty);
        let client = fields::object(webhook, "clientConfig").unwrap_or(&empty);
        let versions = fields::items(webhook, &["conversionReviewVersions"]);
        Some(Self {
            place: WebhookPlace::of(client),
            ca_bundle: STANDARD.decode(fields::text(client, &["caBundle"])).unwrap_or_default(),
            review: ReviewVersion::first_of(versions.iter().filter_map(Value::as_str)),
        })
    }
}

impl WebhookPlace {
    fn of(client: &ObjectMap) -> Self {
        match fields::object(client, "service") {
            None => Self::Url(fields::text(client, &["url"]).to_owned()),
            Some(service) => {
                let text = |name| fields::text(service, &[name]).to_owned();
                let port = service.get("port").and_then(Value::as_u64).and_then(|port| port.try_into().ok());
                let (namespace, name, path) = (text("namespace"), text("name"), text("path"));
                Self::Service { namespace, name, port: port.unwrap_or(443), path }
            }
        }
    }
}
