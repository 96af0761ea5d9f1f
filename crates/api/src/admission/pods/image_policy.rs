//! ImagePolicyWebhook: a webhook says whether Pods may run their images (`plugin/pkg/admission/imagepolicy`).

mod verdicts;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

use self::verdicts::{Verdict as Review, Verdicts};
use crate::admission::configuration::Configuration;
use crate::admission::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::error::Error;
use crate::request::Request;
use crate::tree::{Value, json};
use crate::webhook::{Retries, Webhook};
use crate::{ObjectMap, fields, gotext};

/// The timeout of upstream's clients of such webhooks.
const TIMEOUT: Duration = Duration::from_secs(30);
const SECOND: Duration = Duration::from_secs(1);
const AUDIT_PREFIX: &str = "imagepolicywebhook.image-policy.k8s.io/";
/// Annotations of Pods that the webhook sees.
const ANNOTATIONS: &str = ".image-policy.k8s.io/";

pub(in crate::admission) struct ImagePolicyWebhook {
    hook: Webhook,
    retries: Retries,
    /// Whether Pods are let in while the webhook cannot be asked.
    default_allow: bool,
    verdicts: Verdicts,
}

/// A duration of the configuration: how it is called, what its number counts, and its bounds.
struct Setting {
    unit: Duration,
    least: Duration,
    most: Duration,
    default: Duration,
}

const BACKOFF: Setting = Setting {
    unit: Duration::from_millis(1),
    least: Duration::from_nanos(1),
    most: Duration::from_secs(300),
    default: Duration::from_millis(500),
};
const ALLOW: Setting = Setting {
    unit: SECOND,
    least: SECOND,
    most: Duration::from_secs(30 * 60),
    default: Duration::from_secs(300),
};
const DENY: Setting = Setting { default: Duration::from_secs(30), ..ALLOW };

impl Setting {
    /// -1 is no time at all, 0 the default.
    fn read(&self, number: i64) -> Result<Duration, String> {
        match number {
            -1 => return Ok(Duration::ZERO),
            0 => return Ok(self.default),
            _ => {}
        }
        let count = u32::try_from(number).ok();
        let value = count.and_then(|count| self.unit.checked_mul(count));
        value.filter(|value| (self.least..=self.most).contains(value)).ok_or_else(|| {
            let got = i128::from(number).saturating_mul(self.unit.as_nanos() as i128);
            let sign = if got < 0 { "-" } else { "" };
            let got = u64::try_from(got.unsigned_abs()).unwrap_or(u64::MAX);
            let got = gotext::duration(Duration::from_nanos(got));
            let [least, most] = [self.least, self.most].map(gotext::duration);
            format!("valid value is between {least} and {most}, got {sign}{got}")
        })
    }
}

impl ImagePolicyWebhook {
    /// Reads the configuration, and the kubeconfig that it names.
    pub fn new(configuration: Option<&Configuration>) -> Result<Self, String> {
        let configuration = configuration.ok_or("no config specified")?;
        let empty = ObjectMap::new();
        let content = configuration.content.as_object().and_then(|root| fields::object(root, "imagePolicy"));
        let content = content.unwrap_or(&empty);
        let number = |name: &str| content.get(name).and_then(Value::as_i64).unwrap_or_default();
        let pause = BACKOFF.read(number("retryBackoff"))?;
        let (allow, deny) = (ALLOW.read(number("allowTTL"))?, DENY.read(number("denyTTL"))?);
        let file = fields::text(content, &["kubeConfigFile"]);
        let hook = Webhook::of_kubeconfig(Path::new(file), TIMEOUT).map_err(|error| error.to_string())?;
        Ok(Self {
            hook,
            retries: Retries { pause },
            default_allow: content.get("defaultAllow") == Some(&Value::Bool(true)),
            verdicts: Verdicts::new(allow, deny),
        })
    }

    async fn judge(&self, attempt: &Attempt<'_>, pod: &ObjectMap) -> Result<(), Error> {
        let spec = review_of(pod, attempt.request.subresource, attempt.target.namespace);
        let key = spec.to_string();
        let now = attempt.cluster.runtime.clock.timestamp();
        let review = match self.verdicts.get(&key, now) {
            Some(review) => review,
            None => match self.ask(spec).await {
                Ok(review) => {
                    self.verdicts.put(key, review.clone(), now);
                    review
                }
                Err(why) if self.default_allow => {
                    tracing::warn!(why, "the image policy webhook failed, and the Pod is let in");
                    annotate(attempt, "failed-open", "true");
                    return Ok(());
                }
                Err(why) => return Err(attempt.refused(why)),
            },
        };
        for (name, value) in &review.annotations {
            annotate(attempt, name, value);
        }
        match (review.allowed, review.reason.as_str()) {
            (true, _) => Ok(()),
            (false, "") => Err(attempt.refused("one or more images rejected by webhook backend")),
            (false, reason) => {
                Err(attempt
                    .refused(format!("image policy webhook backend denied one or more images: {reason}")))
            }
        }
    }

    async fn ask(&self, spec: Value) -> Result<Review, String> {
        let review = json!({"kind": "ImageReview", "apiVersion": "imagepolicy.k8s.io/v1alpha1",
            "metadata": {}, "spec": spec, "status": {"allowed": false}});
        let body = Bytes::from(review.to_string());
        let answer = self.hook.post_patiently(body, self.retries, |_, _| {}).await;
        let answer = answer.map_err(|error| error.to_string())?;
        Review::read(&answer)
    }
}

impl Admission for ImagePolicyWebhook {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        let is_ephemeral = request.subresource == "ephemeralcontainers"
            && of_pods(request)
            && operation == Operation::Update;
        is_ephemeral || (operation != Operation::Delete && of_kind(request, "", "Pod"))
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let Some(pod) = &attempt.object else { return Verdict::Nothing };
        Verdict::Later(Box::pin(self.judge(attempt, pod)))
    }
}

fn of_pods(request: &Request<'_>) -> bool {
    let definition = &request.target.resource.definition;
    definition.group().is_empty() && definition.kind_name() == "Pod"
}

fn annotate(attempt: &Attempt<'_>, name: &str, value: &str) {
    if let Some(record) = attempt.request.audit {
        record.annotate(format!("{AUDIT_PREFIX}{name}"), value.to_owned());
    }
}

/// The `spec` of the review: what the webhook decides by, and what its verdict is kept for.
fn review_of(pod: &ObjectMap, subresource: &str, namespace: &str) -> Value {
    let lists: &[&str] = match subresource {
        "" => &["containers", "initContainers"],
        _ => &["ephemeralContainers"],
    };
    let containers = lists.iter().flat_map(|list| fields::items(pod, &["spec", list]));
    let images: Vec<Value> = containers
        .map(|container| match container["image"].as_str().unwrap_or_default() {
            "" => json!({}),
            image => json!({"image": image}),
        })
        .collect();
    let mut spec = ObjectMap::new();
    if !images.is_empty() {
        spec.insert("containers", images.into());
    }
    let annotations = fields::at(pod, &["metadata", "annotations"]).and_then(Value::as_object);
    let mut seen = ObjectMap::new();
    for (name, value) in
        annotations.into_iter().flatten().filter(|(name, _)| name.as_str().contains(ANNOTATIONS))
    {
        seen.insert(name.as_str(), value.clone());
    }
    if !seen.is_empty() {
        seen.sort_keys();
        spec.insert("annotations", seen.into());
    }
    if !namespace.is_empty() {
        spec.insert("namespace", namespace.into());
    }
    Value::Object(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_defaults_and_bounds() {
        assert_eq!(ALLOW.read(0), Ok(SECOND * 300));
        assert_eq!(DENY.read(0), Ok(SECOND * 30));
        assert_eq!(BACKOFF.read(0), Ok(Duration::from_millis(500)));
        assert_eq!(ALLOW.read(-1), Ok(Duration::ZERO));
        assert_eq!(ALLOW.read(7), Ok(SECOND * 7));
        assert_eq!(BACKOFF.read(7), Ok(Duration::from_millis(7)));
        assert_eq!(ALLOW.read(1801), Err("valid value is between 1s and 30m0s, got 30m1s".to_owned()));
        assert_eq!(DENY.read(-2), Err("valid value is between 1s and 30m0s, got -2s".to_owned()));
    }

    #[test]
    fn a_review_has_images_and_some_annotations() {
        let pod = json!({"metadata": {"annotations": {"b.image-policy.k8s.io/x": "1", "c": "2",
            "a.image-policy.k8s.io/x": "3"}}, "spec": {"containers": [{"image": "a"}, {"name": "none"}],
            "initContainers": [{"image": "b"}], "ephemeralContainers": [{"image": "c"}]}});
        let pod = pod.as_object().expect("an object");
        assert_eq!(
            review_of(pod, "", "n").to_string(),
            r#"{"containers":[{"image":"a"},{},{"image":"b"}],"annotations":{"a.image-policy.k8s.io/x":"3","b.image-policy.k8s.io/x":"1"},"namespace":"n"}"#
        );
        let ephemeral = review_of(pod, "ephemeralcontainers", "n");
        assert_eq!(ephemeral["containers"], json!([{"image": "c"}]));
    }
}
