//! `serviceaccounts/token`: a token of an account, for a while, perhaps bound to an object
//! (`pkg/registry/core/serviceaccount/storage/token.go`).

use jiff::Timestamp;

use crate::auth::service_accounts::issuer::Grant;
use crate::causes::Cause;
use crate::codec::managed;
use crate::config::TokenIssuing;
use crate::decode::{Encoded, sent_kind, typed_object};
use crate::error::{Error, Subject};
use crate::gotext;
use crate::options::{GetOptions, ReadAt};
use crate::request::Request;
use crate::schema::names::{GroupKind, GroupResource, GroupVersion, Gvr};
use crate::tree::{Value, json};
use crate::{Api, ObjectMap, Target, fields, metadata_mut};

/// The lifetimes of tokens, in seconds.
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;
const USUAL: i64 = 3600;
/// The lifetime that kubelets ask for the tokens of Pods. It differs from a round number, so that these can be told from
/// others.
const OF_PODS: i64 = 3607;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
/// Kinds that tokens are bound to by a feature that is off in v1.37.
const HOOKS: [&str; 2] = ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"];

/// The objects to which a token is bound beside its account.
#[derive(Default)]
struct Bound {
    objects: Vec<(&'static str, Value)>,
    is_pod: bool,
}

impl Api {
    /// The request with its status, which holds the token. Nothing is stored.
    pub async fn request_token(&self, request: &Request<'_>, body: &Encoded) -> Result<ObjectMap, Error> {
        let account = request.target;
        let mut asked = typed_object(sent_kind(request)?, body, request.strictness())?;
        default_life(&mut asked);
        let mut action = self.complete_action(request, asked).await?;
        let asked = action.object_mut()?;
        check_name(asked, account.name)?;
        let stored =
            account.resource.decode(&*self.get(account, GetOptions { at: ReadAt::Latest }).await?)?;
        let uid = fields::text(&stored, &["metadata", "uid"]).to_owned();
        check_uid(asked, account.name, &uid)?;
        let now = self.runtime.clock.timestamp().as_second();
        complete(asked, account, &uid, now, &self.tokens.audiences);
        let seconds = seconds(asked)?;
        self.admission.validate(&mut action).await?;
        let mut asked = action.take_object()?;
        let bound = self.bound(account, &asked).await?;
        let seconds = self.shortened(&mut asked, seconds, request);
        let id = self.runtime.random.uuid().to_string();
        let token = self.issue(account, (&uid, &id), &asked, bound, seconds, now).await?;
        if let Some(record) = request.audit {
            record.annotate("authentication.kubernetes.io/issued-credential-id", format!("JTI={id}"));
        }
        let until = gotext::time(timestamp(now.saturating_add(seconds)));
        asked.insert("status", json!({"token": token, "expirationTimestamp": until}));
        managed::open(&mut asked);
        Ok(asked)
    }

    /// The object that the token is to be bound to.
    async fn bound(&self, account: Target<'_>, asked: &ObjectMap) -> Result<Bound, Error> {
        let Some(reference) = fields::at(asked, &["spec", "boundObjectRef"]).and_then(Value::as_object)
        else {
            return Ok(Bound::default());
        };
        let text = |field: &str| fields::text(reference, &[field]);
        let (kind, name) = (text("kind"), text("name"));
        let version = GroupVersion::parse(text("apiVersion")).unwrap_or_default();
        let (claim, plural, namespace) = match (&**version.group(), kind) {
            ("", "Pod") => ("pod", "pods", account.namespace),
            ("", "Secret") => ("secret", "secrets", account.namespace),
            ("", "Node") => ("node", "nodes", ""),
            (group, kind) => {
                let version = version.version();
                let mut why = format!("cannot bind token to object of type {group}/{version}, Kind={kind}");
                if (group, version) == ("admissionregistration.k8s.io", "v1") && HOOKS.contains(&kind) {
                    why.push_str(" (feature gate APIServerWebhookAuthenticationToken is disabled)");
                }
                return Err(Error::BadRequest(why));
            }
        };
        let found = self.found(plural, namespace, name).await?;
        let mut bound = Bound { is_pod: claim == "pod", ..Bound::default() };
        if bound.is_pod {
            check_account(&found, account.name)?;
            bound.objects.extend(self.node_of(&found).await?);
        }
        let uid = fields::text(&found, &["metadata", "uid"]);
        let wanted = text("uid");
        if !wanted.is_empty() && wanted != uid {
            let reason = format!(
                "the UID in the bound object reference ({wanted}) does not match the UID in record. The object might have been deleted and then recreated"
            );
            let subject = Subject::Resource(GroupResource::new("", kind));
            return Err(Error::Conflict { subject, name: name.to_owned(), reason });
        }
        bound.objects.push((claim, json!({"name": name, "uid": uid})));
        Ok(bound)
    }

    /// The Node on which a Pod runs. Of one that does not exist only the name is known.
    async fn node_of(&self, pod: &ObjectMap) -> Result<Option<(&'static str, Value)>, Error> {
        let name = fields::text(pod, &["spec", "nodeName"]);
        if name.is_empty() {
            return Ok(None);
        }
        let node = match self.found("nodes", "", name).await {
            Ok(node) => json!({"name": name, "uid": fields::text(&node, &["metadata", "uid"])}),
            Err(Error::NotFound { .. }) => json!({"name": name}),
            Err(error) => return Err(error),
        };
        Ok(Some(("node", node)))
    }

    async fn found(&self, plural: &'static str, namespace: &str, name: &str) -> Result<ObjectMap, Error> {
        let resource = self.resources.get(&Gvr::fixed("v1", plural)).ok_or(Error::UnknownResource)?;
        let target = Target { resource, namespace, name };
        let found = self.get(target, GetOptions { at: ReadAt::Latest }).await?;
        resource.decode(&found)
    }

    /// The life of the token, not longer than the longest one that is issued.
    fn shortened(&self, asked: &mut ObjectMap, seconds: i64, request: &Request<'_>) -> i64 {
        let Some(most) = self.tokens.issuer.max_seconds.filter(|most| seconds > *most) else {
            return seconds;
        };
        let text = format!("requested expiration of {seconds} seconds shortened to {most} seconds");
        request.warnings.add(text);
        fields::object_mut(asked, "spec").insert("expirationSeconds", most.into());
        most
    }

    async fn issue(
        &self,
        account: Target<'_>,
        (uid, id): (&str, &str),
        asked: &ObjectMap,
        bound: Bound,
        seconds: i64,
        now: i64,
    ) -> Result<String, Error> {
        let TokenIssuing { issuer, audiences: own } = &self.tokens;
        let audiences = fields::items(asked, &["spec", "audiences"]).iter().filter_map(Value::as_str);
        let audiences: Vec<String> = audiences.map(str::to_owned).collect();
        let is_own = audiences.iter().all(|audience| own.contains(audience));
        let extended = issuer.extended.filter(|_| bound.is_pod && seconds == OF_PODS && is_own);
        let grant = Grant {
            namespace: account.namespace,
            account: account.name,
            uid,
            audiences: &audiences,
            now,
            seconds: extended.unwrap_or(seconds),
            warn_after: extended.map(|_| seconds),
            id,
            objects: bound.objects,
        };
        issuer.issue(&grant).await.map_err(|error| Error::Internal(error.to_string()))
    }
}

fn check_name(asked: &ObjectMap, name: &str) -> Result<(), Error> {
    let given = fields::text(asked, &["metadata", "name"]);
    if given.is_empty() || given == name {
        return Ok(());
    }
    let why = "must match the service account name if specified";
    let causes = vec![Cause::invalid("metadata.name", gotext::quote(given), why)];
    Err(Error::Invalid { kind: GroupKind::new(GROUP, KIND), name: name.to_owned(), causes })
}

fn check_uid(asked: &ObjectMap, name: &str, uid: &str) -> Result<(), Error> {
    let given = fields::text(asked, &["metadata", "uid"]);
    if given.is_empty() || given == uid {
        return Ok(());
    }
    let reason = format!(
        "the UID in the token request ({given}) does not match the UID of the service account ({uid})"
    );
    let subject = Subject::Resource(GroupResource::new(GROUP, KIND));
    Err(Error::Conflict { subject, name: name.to_owned(), reason })
}

fn check_account(pod: &ObjectMap, name: &str) -> Result<(), Error> {
    if fields::text(pod, &["spec", "serviceAccountName"]) == name {
        return Ok(());
    }
    let name = gotext::quote(name);
    Err(Error::BadRequest(format!(
        "cannot bind token for serviceaccount {name} to pod running with different serviceaccount name."
    )))
}

/// Fills in what the client has left out.
fn complete(asked: &mut ObjectMap, account: Target<'_>, uid: &str, now: i64, audiences: &[String]) {
    let metadata = metadata_mut(asked);
    metadata.insert("name", account.name.into());
    metadata.insert("namespace", account.namespace.into());
    metadata.insert("uid", uid.into());
    metadata.insert("creationTimestamp", gotext::time(timestamp(now)).into());
    asked.shift_remove("status");
    let spec = fields::object_mut(asked, "spec");
    if spec.get("audiences").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert("audiences", json!(audiences));
    }
}

/// The default of the kind (`SetDefaults_TokenRequestSpec`).
fn default_life(asked: &mut ObjectMap) {
    let spec = fields::object_mut(asked, "spec");
    if spec.get("expirationSeconds").is_none_or(Value::is_null) {
        spec.insert("expirationSeconds", USUAL.into());
    }
}

fn seconds(asked: &ObjectMap) -> Result<i64, Error> {
    let seconds =
        fields::at(asked, &["spec", "expirationSeconds"]).and_then(Value::as_i64).unwrap_or_default();
    let why = if seconds < SHORTEST {
        "may not specify a duration less than 10 minutes"
    } else if seconds > LONGEST {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(seconds);
    };
    let causes = vec![Cause::invalid("spec.expirationSeconds", seconds, why)];
    Err(Error::Invalid { kind: GroupKind::new(GROUP, KIND), name: String::new(), causes })
}

fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}
