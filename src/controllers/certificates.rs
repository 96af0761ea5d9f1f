//! CertificateSigningRequests for clusters without kube-controller-manager: kubelets' are approved, approved ones of the
//! cluster's signers are signed, old ones deleted (`pkg/controller/certificates`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep, sleep_until};

use super::names::Names;
use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::options::delete::{DeleteOptions, Preconditions};
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target, fields};
use crate::auth::authorizer::{Attributes, Authorization, Authorizer as _, Decision};
use crate::auth::signing::{FollowedAuthority, KUBELET_CLIENTS, SigningRequest};
use crate::cache::Range;
use crate::gotext::{decode_base64, encode_base64};
use crate::kinds::behavior::part::Part;
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::tree::{Map, Value, json};
use crate::user::User;

const REQUESTS: Gvr = Gvr::fixed("certificates.k8s.io/v1", "certificatesigningrequests");
/// The pause before a request is looked at again that could not be written.
const RETRY: Duration = Duration::from_secs(1);
const CLEANING: Duration = Duration::from_secs(3600);
/// For how long requests are kept that are signed or denied, and all others, in seconds.
const KEPT: i64 = 3600;
const KEPT_OPEN: i64 = 24 * 3600;
const SHORTEST: Duration = Duration::from_secs(600);

/// The parts of the controller that run.
#[derive(Clone, Default)]
pub struct Config {
    /// The authorizer that says whose requests are approved; `None` approves none.
    pub approving: Option<Authorization>,
    pub signing: Option<Signing>,
    pub cleaning: bool,
}

/// The CAs that sign, and for how long.
#[derive(Clone)]
pub struct Signing {
    /// The CAs by the names of signers. Requests to other signers are left alone.
    pub authorities: BTreeMap<&'static str, Arc<FollowedAuthority>>,
    /// The longest life of a certificate.
    pub longest: Duration,
}

pub async fn run(api: Arc<Api>, config: Config) -> Result<(), Error> {
    let Some(requests) = api.resources.get(&REQUESTS).cloned() else {
        return std::future::pending().await;
    };
    let mut names = Names::of(&api, requests.id);
    let office = Office { api: &api, requests, config };
    let mut cleaning = Instant::now();
    loop {
        office.handle(&mut names.open).await;
        if office.config.cleaning && cleaning <= Instant::now() {
            office.clean().await;
            cleaning = Instant::now() + CLEANING;
        }
        let may_retry = !names.open.is_empty();
        tokio::select! {
            () = names.changed() => {}
            () = sleep(RETRY), if may_retry => {}
            () = sleep_until(cleaning), if office.config.cleaning => {}
        }
        names.add_changed().await?;
    }
}

struct Office<'a> {
    api: &'a Api,
    requests: Arc<Resource>,
    config: Config,
}

impl Office<'_> {
    /// Looks at requests. Those that could not be written stay.
    async fn handle(&self, open: &mut BTreeSet<String>) {
        for name in std::mem::take(open) {
            match self.handle_one(&name).await {
                Ok(()) => {}
                Err(Error::Conflict { .. } | Error::NotFound { .. }) => _ = open.insert(name),
                Err(error) => {
                    tracing::warn!(%error, name, "a certificate signing request cannot be handled, will try again");
                    open.insert(name);
                }
            }
        }
    }

    async fn handle_one(&self, name: &str) -> Result<(), Error> {
        let Some(found) = self.api.cache.any().get(self.requests.id, "", name) else { return Ok(()) };
        let request = self.requests.decode(&found)?;
        if !fields::text(&request, &["status", "certificate"]).is_empty() {
            return Ok(());
        }
        let (is_approved, is_denied) = (is(&request, "Approved"), is(&request, "Denied"));
        match (&self.config.approving, &self.config.signing) {
            (Some(authorizer), _) if !is_approved && !is_denied => {
                self.approve(name, request, authorizer).await
            }
            (_, Some(signing)) if is_approved && !is_denied && !is(&request, "Failed") => {
                self.sign(name, request, signing).await
            }
            _ => Ok(()),
        }
    }

    /// Approves the request of a kubelet that may have its certificate.
    async fn approve(
        &self,
        name: &str,
        mut request: ObjectMap,
        authorizer: &Authorization,
    ) -> Result<(), Error> {
        let Some(asked) = asked(&request) else { return Ok(()) };
        let signer = fields::text(&request, &["spec", "signerName"]);
        if signer != KUBELET_CLIENTS || asked.fits(signer, &usages(&request)).is_err() {
            return Ok(());
        }
        let user = user_of(&request);
        let is_own = user.name == asked.subject().common_name();
        let right = |subresource: &'static str, message: &'static str| (subresource, message);
        let rights = [
            is_own.then(|| {
                right(
                    "selfnodeclient",
                    "Auto approving self kubelet client certificate after SubjectAccessReview.",
                )
            }),
            Some(right("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.")),
        ];
        for (subresource, message) in rights.into_iter().flatten() {
            let path = Attributes::of_path(&user, "create", "");
            let attributes = Attributes {
                group: "certificates.k8s.io",
                version: "*",
                resource: "certificatesigningrequests",
                subresource,
                ..path
            };
            if matches!(authorizer.decide(&attributes).decided().await, Decision::Allow(_)) {
                let approved = json!({"type": "Approved", "status": "True", "reason": "AutoApproved", "message": message});
                add_condition(&mut request, approved);
                return self.write(name, &request, Part::Approval).await;
            }
        }
        Ok(())
    }

    async fn sign(&self, name: &str, mut request: ObjectMap, signing: &Signing) -> Result<(), Error> {
        let signer = fields::text(&request, &["spec", "signerName"]);
        let Some(authority) = signing.authorities.get(signer).cloned() else { return Ok(()) };
        let Some(asked) = asked(&request) else { return Ok(()) };
        let usages = usages(&request);
        if let Err(why) = asked.fits(signer, &usages) {
            let failed = json!({"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": why});
            add_condition(&mut request, failed);
            return self.write(name, &request, Part::Status).await;
        }
        let seconds = fields::at(&request, &["spec", "expirationSeconds"]).and_then(Value::as_u64);
        let wanted = seconds.map_or(signing.longest, Duration::from_secs);
        let lifetime = wanted.max(SHORTEST).min(signing.longest);
        let now = self.api.runtime.clock.now();
        let authority = tokio::task::spawn_blocking(move || authority.newest()).await;
        let authority = authority.map_err(|error| Error::Internal(error.to_string()))?;
        let made = authority.sign(&asked, &usages, lifetime, now);
        let certificate = made.map_err(|why| Error::Internal(format!("error auto signing csr: {why}")))?;
        fields::object_mut(&mut request, "status")
            .insert("certificate", encode_base64(certificate.as_bytes()).into());
        self.write(name, &request, Part::Status).await
    }

    async fn write(&self, name: &str, request: &ObjectMap, part: Part) -> Result<(), Error> {
        let target = Target { resource: &self.requests, namespace: "", name };
        let update = Request::own(Verb::Update, target).on(part);
        self.api.update(&update, Body::Object(request)).await.map(drop)
    }

    /// Deletes the requests that nobody needs any more.
    async fn clean(&self) {
        let now = self.api.runtime.clock.timestamp();
        let state = self.api.cache.any();
        for object in state.objects(self.requests.id).range(&Range::of(None)) {
            let Ok(request) = self.requests.decode(object) else { continue };
            if !is_over(&request, now) {
                continue;
            }
            let uid = fields::text(&request, &["metadata", "uid"]).to_owned();
            let preconditions = Preconditions { uid: Some(uid), ..Preconditions::default() };
            let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
            let target = Target { resource: &self.requests, namespace: "", name: object.name() };
            let deleted = self.api.delete(&Request::own(Verb::Delete, target).with(&options)).await;
            if let Err(error) = deleted {
                tracing::warn!(%error, name = object.name(), "cannot delete an old certificate signing request");
            }
        }
    }
}

/// The signing request in an object. Validation lets none in that cannot be read, so such objects are left alone.
fn asked(request: &ObjectMap) -> Option<SigningRequest> {
    SigningRequest::of_base64(fields::text(request, &["spec", "request"])).ok()
}

fn usages(request: &ObjectMap) -> Vec<&str> {
    fields::items(request, &["spec", "usages"]).iter().filter_map(Value::as_str).collect()
}

fn conditions(request: &ObjectMap) -> impl Iterator<Item = &Map> {
    fields::items(request, &["status", "conditions"]).iter().filter_map(Value::as_object)
}

fn is(request: &ObjectMap, condition: &str) -> bool {
    conditions(request).any(|one| fields::text(one, &["type"]) == condition)
}

fn add_condition(request: &mut ObjectMap, condition: Value) {
    let mut all = fields::items(request, &["status", "conditions"]).to_vec();
    all.push(condition);
    fields::object_mut(request, "status").insert("conditions", all.into());
}

/// The user who has made the request.
fn user_of(request: &ObjectMap) -> User {
    let texts = |items: &[Value]| items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let spec = fields::object(request, "spec");
    let extra = spec.and_then(|spec| fields::object(spec, "extra")).into_iter().flatten();
    User {
        name: fields::text(request, &["spec", "username"]).to_owned(),
        uid: fields::text(request, &["spec", "uid"]).to_owned(),
        groups: texts(fields::items(request, &["spec", "groups"])),
        extra: extra
            .map(|(key, values)| (key.to_string(), texts(values.as_array().map_or(&[], Vec::as_slice))))
            .collect(),
    }
}

/// Whether a request has been kept for long enough.
fn is_over(request: &ObjectMap, now: Timestamp) -> bool {
    let is_older = |time: &str, seconds: i64| {
        time.parse::<Timestamp>().is_ok_and(|time| now.as_second() - time.as_second() > seconds)
    };
    let certificate = fields::text(request, &["status", "certificate"]);
    let is_issued = !certificate.is_empty();
    if conditions(request).next().is_none() {
        return is_older(fields::text(request, &["metadata", "creationTimestamp"]), KEPT_OPEN);
    }
    conditions(request).any(|condition| {
        let since = fields::text(condition, &["lastUpdateTime"]);
        match fields::text(condition, &["type"]) {
            "Approved" if is_issued => is_older(since, KEPT) || has_expired(certificate, now),
            "Approved" => is_older(since, KEPT_OPEN),
            "Denied" | "Failed" => is_older(since, KEPT),
            _ => false,
        }
    })
}

fn has_expired(certificate: &str, now: Timestamp) -> bool {
    let bytes = decode_base64(certificate).unwrap_or_default();
    let found = crate::x509::certificates(&bytes).unwrap_or_default();
    found.first().is_some_and(|certificate| certificate.not_after < now.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_requests_go() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().expect("a time");
        let is_over = |created: &str, conditions: Value, certificate: &str| {
            let status = json!({"conditions": conditions, "certificate": certificate});
            let request = json!({"metadata": {"creationTimestamp": created}, "status": status});
            is_over(request.as_object().expect("an object"), now)
        };
        let condition = |kind: &str, time: &str| json!([{"type": kind, "lastUpdateTime": time}]);
        let (day_ago, soon_after) = ("2026-01-01T00:00:00Z", "2025-12-31T23:59:59Z");
        let (hour_ago, longer_ago) = ("2026-01-01T23:00:00Z", "2026-01-01T22:59:59Z");
        assert!(is_over(soon_after, json!([]), "") && !is_over(day_ago, json!([]), ""));
        for kind in ["Denied", "Failed"] {
            assert!(is_over(day_ago, condition(kind, longer_ago), ""));
            assert!(!is_over(day_ago, condition(kind, hour_ago), ""));
        }
        assert!(is_over(day_ago, condition("Approved", longer_ago), "eA=="));
        assert!(!is_over(day_ago, condition("Approved", longer_ago), ""));
        assert!(is_over(day_ago, condition("Approved", soon_after), ""));
        assert!(!is_over(soon_after, condition("Other", soon_after), ""));
    }
}
