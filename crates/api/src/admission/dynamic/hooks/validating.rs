//! Validating webhooks: all that match are called side by side.

use futures_util::future::join_all;
use tokio::time::Instant;

use super::call::Caller;
use super::configuration::{Configurations, Hooks};
use super::credentials::Credentials;
use super::review::Payload;
use super::{Matching, in_force, sees};
use crate::admission::configuration::Configuration;
use crate::admission::dynamic::follow::Index;
use crate::admission::dynamic::manifests;
use crate::admission::dynamic::matching::Matched;
use crate::admission::{Admission, Attempt, Files, Operation, Verdict};
use crate::error::Error;
use crate::request::Request;
use crate::schema::names::Gvr;

static CONFIGURATIONS: [Gvr; 1] =
    [Gvr::fixed("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations")];
const FROM_FILES: [&str; 1] = ["ValidatingWebhookConfiguration"];
const KIND: &str = "validating";

pub struct ValidatingAdmissionWebhook {
    index: Index<Configurations>,
    credentials: Credentials,
}

impl ValidatingAdmissionWebhook {
    pub fn new(configuration: Option<&Configuration>) -> Result<Self, String> {
        let credentials = Credentials::of(configuration)?;
        let directory = manifests::directory(configuration)?;
        Ok(Self { index: Index::new(&CONFIGURATIONS).with_files(directory, &FROM_FILES)?, credentials })
    }
}

impl Admission for ValidatingAdmissionWebhook {
    fn handles(&self, _: Operation, request: &Request<'_>) -> bool {
        sees(&self.index, request)
    }

    /// A write requires that nothing has been configured since.
    fn looks(&self, attempt: &Attempt<'_>) -> bool {
        !matches!(in_force(&self.index, attempt), Ok(None))
    }

    fn files(&self) -> Option<&dyn Files> {
        self.index.files()
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        match in_force(&self.index, attempt) {
            Ok(None) => Verdict::Nothing,
            Ok(Some(hooks)) => Verdict::Later(Box::pin(self.ask(attempt, hooks))),
            Err(error) => Verdict::Now(Err(error)),
        }
    }
}

impl ValidatingAdmissionWebhook {
    async fn ask(&self, attempt: &Attempt<'_>, hooks: Hooks) -> Result<(), Error> {
        let mut matching = Matching::new(attempt, KIND);
        let mut found: Vec<(usize, Matched)> = Vec::new();
        for (at, hook) in hooks.about(attempt.plural()) {
            if let Some(version) = matching.version_for(hook, attempt).await? {
                found.push((at, version));
            }
        }
        if found.is_empty() {
            return Ok(());
        }
        // Objects are converted and printed once for each version.
        let mut payloads: Vec<(Gvr, Payload)> = Vec::new();
        for (_, version) in &found {
            if payloads.iter().all(|(known, _)| *known != version.resource) {
                payloads.push((version.resource.clone(), matching.payload(version, attempt).await?));
            }
        }
        let caller = Caller {
            cluster: attempt.cluster,
            request: attempt.request,
            credentials: &self.credentials,
            kind: KIND,
            operation: attempt.operation.as_str(),
            mutates: false,
        };
        caller.check_time()?;
        let (payloads, hooks) = (&payloads, &hooks);
        let calls = found.iter().enumerate().map(|(place, (at, version))| async move {
            let hook = &hooks.all()[*at];
            let began = Instant::now();
            let Some((_, payload)) = payloads.iter().find(|(known, _)| *known == version.resource) else {
                return Err(Error::Internal("a webhook's version is lost".to_owned()));
            };
            let answer = caller.call(hook, payload).await;
            caller.judged(hook, began, answer, || {
                let key = format!("failed-open.validating.webhook.admission.k8s.io/round_0_index_{place}");
                caller.annotate(key, hook.name.clone());
            })
        });
        // Of several refusals, the first in the order of the webhooks is answered.
        join_all(calls).await.into_iter().try_for_each(|answer| answer.map(drop))
    }
}
