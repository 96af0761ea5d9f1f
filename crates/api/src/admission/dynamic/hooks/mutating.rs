//! Mutating webhooks: one after the other, each sees what the ones before it have made of the object.

use std::sync::Arc;

use tokio::time::Instant;

use super::call::{Caller, Refusal};
use super::claimed::{Unsaid, claimed};
use super::configuration::{Configurations, Hook, Hooks};
use super::credentials::Credentials;
use super::review::Answer;
use super::{Matching, in_force, sees};
use crate::ObjectMap;
use crate::admission::configuration::Configuration;
use crate::admission::dynamic::follow::Index;
use crate::admission::dynamic::manifests;
use crate::admission::dynamic::matching::{Facts, Matched, closed, converted, has_versions};
use crate::admission::{Admission, Attempt, Files, Operation, Verdict};
use crate::codec::managed;
use crate::decode::claims;
use crate::error::Error;
use crate::gotext::quote;
use crate::options::strictness::conform;
use crate::patch::Decoding;
use crate::patch::json::{apply, operations};
use crate::request::Request;
use crate::schema::kind::Kind;
use crate::schema::names::Gvr;
use crate::tree::{Value, json};

static CONFIGURATIONS: [Gvr; 1] =
    [Gvr::fixed("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations")];
const FROM_FILES: [&str; 1] = ["MutatingWebhookConfiguration"];
const KIND: &str = "admit";

pub struct MutatingAdmissionWebhook {
    index: Index<Configurations>,
    credentials: Credentials,
}

impl MutatingAdmissionWebhook {
    pub fn new(configuration: Option<&Configuration>) -> Result<Self, String> {
        let credentials = Credentials::of(configuration)?;
        let directory = manifests::directory(configuration)?;
        Ok(Self { index: Index::new(&CONFIGURATIONS).with_files(directory, &FROM_FILES)?, credentials })
    }
}

impl Admission for MutatingAdmissionWebhook {
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

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        match in_force(&self.index, attempt) {
            Ok(None) => Verdict::Nothing,
            Ok(Some(hooks)) => Verdict::Later(Box::pin(self.ask(attempt, hooks))),
            Err(error) => Verdict::Now(Err(error)),
        }
    }
}

impl MutatingAdmissionWebhook {
    async fn ask(&self, attempt: &mut Attempt<'_>, hooks: Hooks) -> Result<(), Error> {
        let (mut calls, round) = (attempt.rounds.hooks.take().unwrap_or_default(), attempt.rounds.number);
        calls.begin(round, attempt.object.as_ref());
        let mut matching = Matching::new(attempt, KIND);
        for (place, hook) in hooks.about(attempt.plural()) {
            let Some(version) = matching.version_for(hook, attempt).await? else { continue };
            if calls.leaves_out(round, &hook.id) {
                continue;
            }
            matching.unsaid.is_wanted_in(&version.kind);
            let changed = self.call(attempt, &mut matching, hook, &version, place).await?;
            if changed {
                calls.object_has_changed();
                attempt.rounds.again = true;
            }
            if hook.is_reinvoked {
                calls.repeat(hook.id.clone());
            }
        }
        calls.end(attempt.object.as_ref());
        attempt.rounds.hooks = Some(calls);
        Ok(())
    }

    /// Calls a webhook and applies its patch. Whether the object has changed.
    async fn call(
        &self,
        attempt: &mut Attempt<'_>,
        matching: &mut Matching<'_>,
        hook: &Arc<Hook>,
        version: &Matched,
        place: usize,
    ) -> Result<bool, Error> {
        let caller = Caller {
            cluster: attempt.cluster,
            request: attempt.request,
            credentials: &self.credentials,
            kind: KIND,
            operation: attempt.operation.as_str(),
            mutates: true,
        };
        caller.check_time()?;
        let round = attempt.rounds.number;
        let began = Instant::now();
        let payload = matching.payload(version, attempt).await?;
        let answer = caller.call(hook, &payload).await;
        let applied = match answer {
            Ok(answer) => patched(attempt, version, &matching.unsaid, hook, &answer).await,
            Err(refusal) => Err(refusal),
        };
        let changed = match &applied {
            Ok(Some(patched)) => patched.changed,
            Ok(None) | Err(_) => false,
        };
        let key =
            |prefix: &str| format!("{prefix}mutation.webhook.admission.k8s.io/round_{round}_index_{place}");
        let note = json!({"configuration": hook.configuration, "webhook": hook.name, "mutated": changed});
        caller.annotate(key(""), note.to_string());
        let applied = caller.judged(hook, began, applied, || {
            caller.annotate(key("failed-open."), hook.name.clone());
        })?;
        if let Some(Patched { object, patch, unsaid, .. }) = applied.flatten() {
            matching.unsaid = unsaid;
            if attempt.request.audit.is_some_and(|record| record.wants_request()) {
                let note = json!({"configuration": hook.configuration, "webhook": hook.name, "patch": patch,
                    "patchType": "JSONPatch"});
                let key = format!("patch.webhook.admission.k8s.io/round_{round}_index_{place}");
                caller.annotate(key, note.to_string());
            }
            attempt.replace_object(object);
        }
        Ok(changed)
    }
}

/// An object after a webhook's patch.
struct Patched {
    object: ObjectMap,
    patch: Value,
    changed: bool,
    unsaid: Unsaid,
}

/// Applies the patch of an answer; `None` if there is none.
async fn patched(
    attempt: &Attempt<'_>,
    version: &Matched,
    unsaid_before: &Unsaid,
    hook: &Hook,
    answer: &Answer,
) -> Result<Option<Patched>, Refusal> {
    if answer.patch.is_empty() {
        return Ok(None);
    }
    let unusable = |why: String| Refusal::Call { why, code: 503 };
    let undecodable =
        |why: String| unusable(format!("received undecodable patch in webhook response: {why}"));
    let patch: Value =
        serde_json::from_slice(&answer.patch).map_err(|error| undecodable(error.to_string()))?;
    let count =
        operations(&patch, Decoding::Unchecked).map_err(|error| undecodable(error.to_string()))?.len();
    if count == 0 {
        return Ok(None);
    }
    let internal = |why: String| Refusal::Direct(Error::Internal(why));
    let Some(object) = &attempt.object else {
        let name = quote(&hook.name);
        return Err(internal(format!(
            "admission webhook {name} attempted to modify the object, which is not supported for this operation"
        )));
    };
    if answer.patch_type != "JSONPatch" {
        let why = format!("unsupported patch type {}", quote(&answer.patch_type));
        return Err(Refusal::Call { why, code: 400 });
    }
    let own = attempt.target.resource;
    let other = version.other.as_ref().filter(|_| has_versions(Facts::of(attempt)));
    let mut object = match other {
        Some(other) => {
            converted(attempt.cluster, own, other, object.clone()).await.map_err(Refusal::Direct)?
        }
        None => object.clone(),
    };
    managed::open(&mut object);
    let mut seen = object.clone();
    unsaid_before.take_from(&mut seen);
    let mut after = applied(seen, &patch).map_err(internal)?;
    let unsaid = Unsaid::of(&version.kind, &after);
    let (kind, of) = claimed(attempt, version, &mut after).map_err(Refusal::Direct)?;
    let says_otherwise = !unsaid.is_like(unsaid_before) || kind.gvk != version.kind.gvk;
    let (after, changed) = conformed(after, &kind, object, &version.kind).map_err(internal)?;
    let of = of.as_ref().filter(|_| has_versions(Facts::of(attempt)));
    let object = match of {
        Some(of) => converted(attempt.cluster, of, own, after).await.map_err(Refusal::Direct)?,
        None => after,
    };
    Ok(Some(Patched { object: closed(object), patch, changed: changed || says_otherwise, unsaid }))
}

fn applied(object: ObjectMap, patch: &Value) -> Result<ObjectMap, String> {
    match apply(Value::Object(object), patch) {
        Ok(Value::Object(after)) => Ok(after),
        Ok(other) => Err(claims::no_claims(&other)),
        Err(error) => Err(error.to_string()),
    }
}

/// The object after the patch, with its defaults, and whether it is another one than before.
fn conformed(
    mut after: ObjectMap,
    kind: &Kind,
    mut before: ObjectMap,
    old: &Kind,
) -> Result<(ObjectMap, bool), String> {
    managed::close(&mut after);
    conform(kind, &mut after)?;
    managed::close(&mut before);
    conform(old, &mut before)?;
    let changed = after != before;
    kind.default(&mut after).map_err(|error| error.to_string())?;
    Ok((after, changed))
}
