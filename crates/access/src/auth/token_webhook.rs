//! Tokens that a webhook knows: it is sent a TokenReview (`--authentication-token-webhook-config-file`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::authn::Refusals;
use super::recent::Recent;
use crate::auth::secret::sha256;
use crate::fields;
use crate::tree::{Map, Value, json};
use crate::user::User;
use crate::webhook::{Retries, Webhook};

/// How long a call may take.
pub const TIMEOUT: Duration = Duration::from_secs(30);
/// The answers of a generation that are remembered.
const MOST: usize = 1024;

/// A webhook that knows tokens.
pub struct TokenWebhook {
    hook: Webhook,
    /// `v1` or `v1beta1`.
    version: String,
    lifetime: Duration,
    /// The webhook's last answers, by the hashes of tokens and audiences.
    answers: Recent<[u8; 32], Arc<CachedReview>>,
}

struct CachedReview {
    answer: Answer,
    until: Instant,
}

/// The webhook's answer: the user and the audiences, or nothing.
type Answer = Option<(Arc<User>, Vec<String>)>;

impl TokenWebhook {
    pub fn new(hook: Webhook, version: String, lifetime: Duration) -> Self {
        Self { hook, version, lifetime, answers: Recent::new(MOST) }
    }

    /// The user of a token that is for one of the wanted audiences, and those it is for. A webhook that names no audience
    /// means this server's own.
    pub async fn verify(&self, token: &str, wanted: &[String], own: &[String]) -> Result<Answer, Refusals> {
        let hash = sha256(json!([token, wanted]).to_string().as_bytes());
        if let Some(kept) = self.answers.get(&hash).filter(|kept| Instant::now() < kept.until) {
            return Ok(kept.answer.clone());
        }
        let answer = self.ask(token, wanted, own).await.map_err(|why| {
            let mut refused = Refusals::default();
            refused.add(why);
            refused
        })?;
        let kept = CachedReview { answer: answer.clone(), until: Instant::now() + self.lifetime };
        self.answers.put(hash, Arc::new(kept));
        Ok(answer)
    }

    async fn ask(&self, token: &str, wanted: &[String], own: &[String]) -> Result<Answer, String> {
        let review = json!({
            "kind": "TokenReview",
            "apiVersion": format!("authentication.k8s.io/{}", self.version),
            "metadata": {"creationTimestamp": null},
            "spec": {"token": token, "audiences": wanted},
            "status": {"user": {}},
        });
        let body =
            self.hook.post_patiently(Bytes::from(review.to_string()), Retries::default(), |_, _| {}).await;
        let body = body.map_err(|error| error.to_string())?;
        let review: Map = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
        let empty = Map::new();
        let status = fields::object(&review, "status").unwrap_or(&empty);
        if status.get("authenticated").and_then(Value::as_bool) != Some(true) {
            let why = fields::text(status, &["error"]);
            return if why.is_empty() { Ok(None) } else { Err(why.to_owned()) };
        }
        let named = texts(fields::items(status, &["audiences"]));
        let named = if named.is_empty() { own.to_vec() } else { named };
        let common: Vec<String> =
            wanted.iter().filter(|audience| named.contains(audience)).cloned().collect();
        if common.is_empty() {
            return Ok(None);
        }
        let user = user(fields::object(status, "user").unwrap_or(&empty));
        Ok(Some((Arc::new(user.authenticated()), common)))
    }
}

fn texts(items: &[Value]) -> Vec<String> {
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn user(user: &Map) -> User {
    let extra = fields::object(user, "extra").into_iter().flatten();
    User {
        name: fields::text(user, &["username"]).to_owned(),
        uid: fields::text(user, &["uid"]).to_owned(),
        groups: texts(fields::items(user, &["groups"])),
        extra: extra
            .map(|(key, values)| (key.to_string(), texts(values.as_array().map_or(&[], Vec::as_slice))))
            .collect(),
    }
}
