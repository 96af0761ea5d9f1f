//! An authorizer that asks a webhook, by SubjectAccessReviews.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::super::authorization_config::{OnFailure, WebhookSettings};
use super::super::recent::Recent;
use super::conditions::Match;
use super::{Answer, Attributes, Authorizer, Decision, Given, Operator, Reason, Requirement, UserRules};
use crate::auth::secret::sha256;
use crate::egress::Egress;
use crate::fields;
use crate::metrics::WebhookMetrics;
use crate::tree::{Map, Value, json};
use crate::user::User;
use crate::webhook::{Ended, KubeconfigError, Retries, Webhook};

/// The answers of a generation that are remembered.
const MOST: usize = 4096;
/// Attributes of more bytes are not remembered: who asks chooses them.
const LONGEST: usize = 10_000;

pub struct WebhookAuthorizer {
    hook: Webhook,
    settings: WebhookSettings,
    metrics: WebhookMetrics,
    /// The webhook's last answers, by the hashes of questions.
    answers: Recent<[u8; 32], Arc<CachedStatus>>,
}

struct CachedStatus {
    status: Status,
    until: Instant,
}

/// The status in the webhook's answer.
#[derive(Clone, Debug, Default)]
struct Status {
    allowed: bool,
    denied: bool,
    reason: String,
}

impl WebhookAuthorizer {
    /// Reads the kubeconfig.
    pub fn new(
        settings: WebhookSettings,
        metrics: WebhookMetrics,
        egress: Egress,
    ) -> Result<Self, KubeconfigError> {
        let hook = Webhook::of_kubeconfig(&settings.kubeconfig, settings.timeout)?.through(egress);
        Ok(Self { hook, settings, metrics, answers: Recent::new(MOST) })
    }

    async fn ask(&self, attributes: &Attributes<'_>) -> Decision {
        if !self.settings.conditions.is_empty() {
            let start = Instant::now();
            let matched = self.settings.conditions.judge(&request(attributes));
            self.metrics.conditions_judged(start.elapsed());
            match matched {
                Match::Yes => {}
                Match::No => {
                    self.metrics.excluded();
                    return Decision::NoOpinion(Reason::None);
                }
                Match::Unknown(error) => {
                    self.metrics.conditions_failed();
                    return self.failed(error);
                }
            }
        }
        match self.status(attributes).await {
            Ok(status) => status.decision(),
            Err(error) => {
                tracing::error!(webhook = self.hook.endpoint().authority, %error, "a webhook cannot authorize");
                self.failed(error)
            }
        }
    }

    fn failed(&self, error: String) -> Decision {
        match self.settings.on_failure {
            OnFailure::NoOpinion => Decision::NoOpinion(Reason::failed(error)),
            OnFailure::Deny => Decision::Deny(Reason::failed(error)),
        }
    }

    async fn status(&self, attributes: &Attributes<'_>) -> Result<Status, String> {
        let spec = spec(attributes, &self.settings.version);
        let hash = sha256(json!(&spec).to_string().as_bytes());
        if let Some(kept) = self.answers.get(&hash).filter(|kept| Instant::now() < kept.until) {
            return Ok(kept.status.clone());
        }
        let review = json!({
            "kind": "SubjectAccessReview",
            "apiVersion": format!("authorization.k8s.io/{}", self.settings.version),
            "metadata": {},
            "spec": spec,
            "status": {"allowed": false},
        });
        let mut last = Ended::Error;
        let told = |ended: Ended, took: Duration| {
            self.metrics.called(ended.as_str(), took);
            last = ended;
        };
        let answer =
            self.hook.post_patiently(Bytes::from(review.to_string()), Retries::default(), told).await;
        let status = answer.map_err(|error| error.to_string()).and_then(|body| Status::of(&body));
        let status = status.inspect_err(|_| {
            if self.settings.on_failure == OnFailure::NoOpinion {
                self.metrics.failed_open(if last == Ended::Timeout { "timeout" } else { "error" });
            }
        })?;
        let lifetime =
            if status.allowed { self.settings.authorized_ttl } else { self.settings.unauthorized_ttl };
        if let Some(lifetime) = lifetime.filter(|_| length(attributes) < LONGEST) {
            let until = Instant::now() + lifetime;
            self.answers.put(hash, Arc::new(CachedStatus { status: status.clone(), until }));
        }
        Ok(status)
    }
}

impl Status {
    fn of(body: &[u8]) -> Result<Self, String> {
        let review: Map = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let is =
            |name: &str| fields::at(&review, &["status", name]).and_then(Value::as_bool).unwrap_or_default();
        let reason = fields::text(&review, &["status", "reason"]).to_owned();
        Ok(Self { allowed: is("allowed"), denied: is("denied"), reason })
    }

    fn decision(self) -> Decision {
        let both = "webhook subject access review returned both allow and deny response";
        let error = (self.denied && self.allowed).then(|| both.to_owned());
        let reason = match (self.reason.is_empty(), &error) {
            (true, None) => Reason::None,
            _ => Reason::Given(Arc::new(Given { text: self.reason, error })),
        };
        match (self.denied, self.allowed) {
            (true, _) => Decision::Deny(reason),
            (false, true) => Decision::Allow(reason),
            (false, false) => Decision::NoOpinion(reason),
        }
    }
}

impl Authorizer for WebhookAuthorizer {
    fn decide<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a> {
        Answer::Later(Box::pin(self.ask(attributes)))
    }

    fn rules(&self, _: &User, _: &str) -> UserRules {
        let errors = vec!["webhook authorizer does not support user rule resolution".to_owned()];
        UserRules { errors, incomplete: true, ..UserRules::default() }
    }
}

/// The request as a condition sees it: with every field, also the empty ones.
fn request(attributes: &Attributes<'_>) -> Map {
    let User { name, uid, groups, extra } = attributes.user;
    let mut request = Map::new();
    request.insert("user", Value::from(name.as_str()));
    request.insert("uid", Value::from(uid.as_str()));
    request.insert("groups", json!(groups));
    request.insert("extra", json!(extra));
    if attributes.is_resource() {
        let mut resource = Map::new();
        for (name, text) in texts(attributes) {
            resource.insert(name, Value::from(text));
        }
        add_selectors(&mut resource, attributes, Empty::Kept);
        request.insert("resourceAttributes", Value::Object(resource));
    } else {
        let path = json!({"verb": attributes.verb, "path": attributes.path});
        request.insert("nonResourceAttributes", path);
    }
    request
}

/// The `spec` of a SubjectAccessReview, in the order of upstream's fields.
fn spec(attributes: &Attributes<'_>, version: &str) -> Map {
    let mut spec = Map::new();
    if attributes.is_resource() {
        let mut resource = Map::new();
        for (name, text) in texts(attributes).into_iter().filter(|(_, text)| !text.is_empty()) {
            resource.insert(name, Value::from(text));
        }
        add_selectors(&mut resource, attributes, Empty::LeftOut);
        spec.insert("resourceAttributes", Value::Object(resource));
    } else {
        let path = [("path", attributes.path), ("verb", attributes.verb)];
        let mut resource = Map::new();
        for (name, text) in path.into_iter().filter(|(_, text)| !text.is_empty()) {
            resource.insert(name, Value::from(text));
        }
        spec.insert("nonResourceAttributes", Value::Object(resource));
    }
    let User { name, uid, groups, extra } = attributes.user;
    if !name.is_empty() {
        spec.insert("user", Value::from(name.as_str()));
    }
    if !groups.is_empty() {
        spec.insert(if version == "v1" { "groups" } else { "group" }, json!(groups));
    }
    if !extra.is_empty() {
        spec.insert("extra", json!(extra));
    }
    if !uid.is_empty() {
        spec.insert("uid", Value::from(uid.as_str()));
    }
    spec
}

fn texts<'a>(attributes: &Attributes<'a>) -> [(&'static str, &'a str); 7] {
    [
        ("namespace", attributes.namespace),
        ("verb", attributes.verb),
        ("group", attributes.group),
        ("version", attributes.version),
        ("resource", attributes.resource),
        ("subresource", attributes.subresource),
        ("name", attributes.name),
    ]
}

/// The treatment of empty lists.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    Kept,
    LeftOut,
}

fn add_selectors(resource: &mut Map, attributes: &Attributes<'_>, empty: Empty) {
    let selectors =
        [("fieldSelector", attributes.selectors.fields()), ("labelSelector", attributes.selectors.labels())];
    for (name, requirements) in selectors.into_iter().filter(|(_, all)| !all.is_empty()) {
        let requirements: Vec<Value> = requirements.iter().map(|one| requirement(one, empty)).collect();
        resource.insert(name, json!({"requirements": requirements}));
    }
}

fn requirement(requirement: &Requirement, empty: Empty) -> Value {
    let operator = match requirement.operator {
        Operator::In => "In",
        Operator::NotIn => "NotIn",
        Operator::Exists => "Exists",
        Operator::DoesNotExist => "DoesNotExist",
    };
    let mut value = json!({"key": requirement.key, "operator": operator});
    if empty == Empty::Kept || !requirement.values.is_empty() {
        value["values"] = json!(requirement.values);
    }
    value
}

/// The bytes of what the asking user chooses.
fn length(attributes: &Attributes<'_>) -> usize {
    texts(attributes).iter().map(|(_, text)| text.len()).sum::<usize>() + attributes.path.len()
}
