//! Webhooks as their configurations have them, ready to be matched and called.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;

use super::client::{Client, Place, Unanswered};
use super::credentials::Credentials;
use crate::admission::dynamic::by_resource::ByResource;
use crate::admission::dynamic::conditions::Conditions;
use crate::admission::dynamic::follow::Content;
use crate::admission::dynamic::manifests::Manifest;
use crate::admission::dynamic::matching::{Labels, Rule, plurals};
use crate::codec::object::Object;
use crate::gotext::decode_base64;
use crate::kinds::behavior::rules::expression::Admission;
use crate::tree::Value;
use crate::webhook::Sent;
use crate::{Cluster, ObjectMap, fields, long_work};

/// All webhooks of one kind of configurations.
#[derive(Default)]
pub struct Configurations {
    /// By name, which is the order of calls.
    by_name: BTreeMap<Box<str>, Vec<Arc<Hook>>>,
}

/// The webhooks at one moment, in the order in which they are called.
pub type Hooks = Arc<ByResource<Arc<Hook>>>;

impl Content for Configurations {
    type Snapshot = Hooks;

    const NAME: &'static str = "webhook";

    fn take_in(&mut self, _: usize, name: &str, object: Option<&Object>) -> Result<(), String> {
        self.by_name.remove(name);
        if let Some(object) = object {
            let content = object.to_closed_map().map_err(|error| error.to_string())?;
            self.by_name.insert(name.into(), hooks_of("", name, &content));
        }
        Ok(())
    }

    fn snapshot(&self) -> Option<Hooks> {
        let hooks: Vec<_> = self.by_name.values().flatten().cloned().collect();
        (!hooks.is_empty()).then(|| in_order(hooks))
    }

    fn of_manifests(manifests: &[Manifest]) -> Self {
        let hooks = |one: &Manifest| (Box::from(&*one.name), hooks_of("manifest/", &one.name, &one.content));
        Self { by_name: manifests.iter().map(hooks).collect() }
    }

    fn joined(first: &Hooks, then: &Hooks) -> Hooks {
        in_order(first.all().iter().chain(then.all()).cloned().collect())
    }
}

fn in_order(hooks: Vec<Arc<Hook>>) -> Hooks {
    Arc::new(ByResource::new(hooks, |hook| plurals(&hook.rules)))
}

/// One webhook.
pub struct Hook {
    pub configuration: String,
    pub name: String,
    /// Different for all webhooks of a kind of configurations: two of one configuration may have the same name.
    pub id: String,
    pub rules: Vec<Rule>,
    /// `matchPolicy`: whether other versions of a resource count.
    pub is_equivalent: bool,
    pub namespaces: Labels,
    pub objects: Labels,
    pub conditions: Conditions,
    pub on_failure: FailurePolicy,
    /// Whether calls for dry runs have no effects.
    pub is_harmless: bool,
    pub timeout: Duration,
    /// `None` if the webhook knows no version that is known here.
    pub review: Option<ReviewVersion>,
    /// `reinvocationPolicy`: whether it is called again when the object has changed.
    pub is_reinvoked: bool,
    pub place: Place,
    pub ca_bundle: Vec<u8>,
    pub client: OnceLock<Client>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    Fail,
    Ignore,
}

/// The version of an AdmissionReview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVersion {
    V1,
    V1Beta1,
}

impl ReviewVersion {
    pub const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        }
    }

    pub const fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1Beta1 => "admission.k8s.io/v1beta1",
        }
    }
}

/// The webhooks of a configuration, in their order. Their ids start with `origin`.
fn hooks_of(origin: &str, configuration: &str, content: &ObjectMap) -> Vec<Arc<Hook>> {
    let mut hooks: Vec<Arc<Hook>> = Vec::new();
    for hook in fields::items(content, &["webhooks"]).iter().filter_map(Value::as_object) {
        let name = fields::text(hook, &["name"]);
        let same = hooks.iter().filter(|other| other.name == name).count();
        hooks.push(Arc::new(Hook::of(origin, configuration, hook, same)));
    }
    hooks
}

impl Hook {
    /// Posts a review to the webhook, within this time.
    pub async fn post(
        &self,
        cluster: &Cluster,
        credentials: &Credentials,
        sent: Sent<'_>,
        time: Duration,
    ) -> Result<Bytes, Unanswered> {
        let make = || Client::new(&self.place, &self.ca_bundle, self.timeout, credentials);
        let client = self.client.get_or_init(|| long_work::run(make));
        client.post(cluster, &self.place, sent, time).await
    }

    fn of(origin: &str, configuration: &str, hook: &ObjectMap, same: usize) -> Self {
        let text = |field| fields::text(hook, &[field]);
        let name = text("name");
        let versions = fields::items(hook, &["admissionReviewVersions"]).iter().filter_map(Value::as_str);
        let review = versions.into_iter().find_map(|version| match version {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1Beta1),
            _ => None,
        });
        let rules = fields::items(hook, &["rules"]).iter().filter_map(Value::as_object);
        let seconds = hook.get("timeoutSeconds").and_then(Value::as_u64).unwrap_or(10);
        let empty = ObjectMap::new();
        let config = fields::object(hook, "clientConfig").unwrap_or(&empty);
        Self {
            configuration: configuration.to_owned(),
            name: name.to_owned(),
            id: format!("{origin}{configuration}/{name}/{same}"),
            rules: rules.map(Rule::of).collect(),
            is_equivalent: text("matchPolicy") != "Exact",
            namespaces: Labels::of(hook.get("namespaceSelector")),
            objects: Labels::of(hook.get("objectSelector")),
            conditions: Conditions::of(hook, Admission::new(false).declarations()),
            on_failure: match text("failurePolicy") {
                "Ignore" => FailurePolicy::Ignore,
                _ => FailurePolicy::Fail,
            },
            is_harmless: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
            timeout: Duration::from_secs(seconds),
            review,
            is_reinvoked: text("reinvocationPolicy") == "IfNeeded",
            place: Place::of(config),
            ca_bundle: decode_base64(fields::text(config, &["caBundle"])).unwrap_or_default(),
            client: OnceLock::new(),
        }
    }
}
