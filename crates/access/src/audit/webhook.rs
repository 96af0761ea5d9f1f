//! The webhook sink: events as EventLists, posted to where a kubeconfig leads.

use std::time::Duration;

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::config::WebhookConfig;
use super::delivery::Delivery;
use super::event::Event;
use crate::egress::Egress;
use crate::webhook::{KubeconfigError, Webhook};

/// How long a call may take; upstream's limit.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often a call is tried, and how much longer each pause is than the one before.
const TRIES: u32 = 5;
const GROWTH: f64 = 1.5;

const HEAD: &[u8] = br#"{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":["#;

pub struct Hook {
    hook: Webhook,
    initial_backoff: Duration,
    /// Cancelled when the server ends: then nothing is tried again.
    ending: CancellationToken,
}

impl Hook {
    pub fn open(config: &WebhookConfig, egress: Egress) -> Result<Self, KubeconfigError> {
        let hook = Webhook::of_kubeconfig(&config.config_file, TIMEOUT)?.through(egress);
        Ok(Self { hook, initial_backoff: config.initial_backoff, ending: CancellationToken::new() })
    }
}

impl Delivery for Hook {
    const PLUGIN: &'static str = "webhook";
    type Entry = Bytes;

    fn entry(&self, _: &Event<'_>, item: &[u8]) -> Bytes {
        Bytes::copy_from_slice(item)
    }

    async fn deliver(&self, items: Vec<Bytes>) -> Result<(), String> {
        let list: Bytes = [HEAD, &items.join(&b','), b"]}\n"].concat().into();
        let mut pause = self.initial_backoff;
        for left in (0..TRIES).rev() {
            let Err(error) = self.hook.send(list.clone()).await else { return Ok(()) };
            if left == 0 || self.ending.is_cancelled() {
                return Err(error.to_string());
            }
            #[expect(clippy::disallowed_methods, reason = "servers with one seed would call together")]
            let jittered = pause.mul_f64(1.0 + 0.2 * rand::random::<f64>());
            let _ = tokio::time::timeout(jittered, self.ending.cancelled()).await;
            pause = pause.mul_f64(GROWTH);
        }
        Ok(())
    }

    fn end(&self) {
        self.ending.cancel();
    }
}
