//! Fills Secrets of type `kubernetes.io/service-account-token`: the account's token, the certificates by which to verify the
//! server, and the namespace. Such a Secret goes with its account, and the account's reference to it goes with the Secret
//! (upstream's `serviceaccount-token` controller).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::options::delete::{DeleteOptions, Preconditions};
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target, fields, metadata_mut};
use crate::auth::service_accounts::{LAST_USED, Used};
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::gotext::{decode_base64, encode_base64};
use crate::patch::PatchKind;
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

const TYPE: &str = "kubernetes.io/service-account-token";
const ACCOUNT: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";
/// The pause before a Secret is looked at again that could not be written.
const RETRY: Duration = Duration::from_secs(1);

/// Namespace and name.
type Name = (String, String);

pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let [Some(secrets), Some(accounts)] =
        ["secrets", "serviceaccounts"].map(|plural| api.resources.get(&Gvr::fixed("v1", plural)).cloned())
    else {
        return std::future::pending().await;
    };
    let state = api.cache.any();
    let (mut of_secrets, mut of_accounts) =
        (api.cache.watch(secrets.id, state.revision), api.cache.watch(accounts.id, state.revision));
    let filler = Filler { api: &api, secrets, accounts };
    let mut open: BTreeSet<Name> = filler.tokens(&state, None).collect();
    loop {
        filler.fill(&mut open).await;
        tokio::select! {
            () = of_secrets.changed() => {}
            () = of_accounts.changed() => {}
            () = tokio::time::sleep(RETRY), if !open.is_empty() => {}
        }
        loop {
            let events = of_secrets.next().await?;
            for event in &events {
                match (&event.current, &event.previous) {
                    (Some(current), _) => open.extend(token_name(current)),
                    (None, Some(gone)) => filler.forget(gone).await,
                    (None, None) => {}
                }
            }
            if events.is_empty() {
                break;
            }
        }
        loop {
            let events = of_accounts.next().await?;
            let state = api.cache.any();
            for account in
                events.iter().filter_map(|event| event.current.as_ref().or(event.previous.as_ref()))
            {
                open.extend(filler.tokens(&state, Some(account.namespace())));
            }
            if events.is_empty() {
                break;
            }
        }
    }
}

/// Notes on Secrets on which day their tokens were last used.
pub async fn note_uses(api: Arc<Api>, mut uses: mpsc::Receiver<Used>) {
    let secrets = api.resources.get(&Gvr::fixed("v1", "secrets")).cloned();
    while let (Some(used), Some(secrets)) = (uses.recv().await, &secrets) {
        let target = Target { resource: secrets, namespace: &used.namespace, name: &used.secret };
        let patch = json!({"metadata": {"uid": used.uid, "labels": {LAST_USED: used.day}}}).to_string();
        let written = api.patch(&Request::own(Verb::Patch, target), PatchKind::Merge, patch.as_bytes()).await;
        if let Err(error) = written {
            tracing::warn!(%error, secret = used.secret, "cannot note when the token of a Secret was used");
        }
    }
    std::future::pending().await
}

/// The name of a Secret that may hold a token.
fn token_name(secret: &Object) -> Option<Name> {
    secret.mentions(ACCOUNT).then(|| (secret.namespace().to_owned(), secret.name().to_owned()))
}

struct Filler<'a> {
    api: &'a Api,
    secrets: Arc<Resource>,
    accounts: Arc<Resource>,
}

impl Filler<'_> {
    /// The Secrets that may hold a token, of one namespace or of all.
    fn tokens(&self, state: &State, namespace: Option<&str>) -> impl Iterator<Item = Name> {
        let found: Vec<Name> = state
            .objects(self.secrets.id)
            .range(&Range::of(namespace))
            .filter_map(|secret| token_name(secret))
            .collect();
        found.into_iter()
    }

    /// Brings Secrets up to date. Those that could not be stay.
    async fn fill(&self, open: &mut BTreeSet<Name>) {
        for (namespace, name) in std::mem::take(open) {
            match self.fill_one(&namespace, &name).await {
                Ok(()) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => {}
                Err(error) => {
                    tracing::warn!(%namespace, secret = name, %error, "cannot fill the Secret of a service account");
                    open.insert((namespace, name));
                }
            }
        }
    }

    async fn fill_one(&self, namespace: &str, name: &str) -> Result<(), Error> {
        let state = self.api.cache.fresh().await?;
        let Some(found) = state.get(self.secrets.id, namespace, name) else { return Ok(()) };
        let Ok(mut secret) = found.to_closed_map() else { return Ok(()) };
        if fields::text(&secret, &["type"]) != TYPE
            || fields::at(&secret, &["metadata", "deletionTimestamp"]).is_some()
        {
            return Ok(());
        }
        let account = fields::text(&secret, &["metadata", "annotations", ACCOUNT]).to_owned();
        let wanted = fields::text(&secret, &["metadata", "annotations", UID]).to_owned();
        let target = Target { resource: &self.secrets, namespace, name };
        let uid = match state.get(self.accounts.id, namespace, &account) {
            None => return self.delete(target, &secret).await,
            Some(found) => match found.to_map() {
                Ok(found) => fields::text(&found, &["metadata", "uid"]).to_owned(),
                // Unreadable is not gone.
                Err(_) => return Ok(()),
            },
        };
        if !wanted.is_empty() && wanted != uid {
            return self.delete(target, &secret).await;
        }
        if !self.complete(&mut secret, target, &account, &uid)? {
            return Ok(());
        }
        self.api.update(&Request::own(Verb::Update, target), Body::Object(&secret)).await.map(drop)
    }

    /// Fills in what is missing. Returns whether anything was.
    fn complete(
        &self,
        secret: &mut ObjectMap,
        target: Target<'_>,
        account: &str,
        uid: &str,
    ) -> Result<bool, Error> {
        let own =
            self.api.config.namespace_contents.as_ref().and_then(|contents| contents.root_ca.as_deref());
        let before = secret.clone();
        let held = |key: &str| decode_base64(fields::text(&before, &["data", key])).unwrap_or_default();
        let data = fields::object_mut(secret, "data");
        if let Some(own) = own
            && held("ca.crt") != own.as_bytes()
        {
            data.insert("ca.crt", encode_base64(own.as_bytes()).into());
        }
        if held("namespace").is_empty() {
            data.insert("namespace", encode_base64(target.namespace.as_bytes()).into());
        }
        if held("token").is_empty() {
            let issuer = &self.api.tokens.issuer;
            let token = issuer.issue_legacy(target.namespace, target.name, account, uid);
            let token = token.map_err(|error| Error::Internal(error.to_string()))?;
            data.insert("token", encode_base64(token.as_bytes()).into());
        }
        if before.get("data") == secret.get("data") {
            return Ok(false);
        }
        fields::object_mut(metadata_mut(secret), "annotations").insert(UID, uid.into());
        Ok(true)
    }

    async fn delete(&self, target: Target<'_>, secret: &ObjectMap) -> Result<(), Error> {
        let uid = fields::text(secret, &["metadata", "uid"]).to_owned();
        let preconditions = Preconditions { uid: Some(uid), ..Preconditions::default() };
        let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
        self.api.delete(&Request::own(Verb::Delete, target).with(&options).seen_by_hooks()).await.map(drop)
    }

    /// Takes the reference to a Secret that is gone out of its account.
    async fn forget(&self, secret: &Object) {
        if token_name(secret).is_none() {
            return;
        }
        let Ok(content) = secret.to_map() else { return };
        let annotation = |key| fields::text(&content, &["metadata", "annotations", key]);
        let (account, uid) = (annotation(ACCOUNT), annotation(UID));
        let state = self.api.cache.any();
        let Some(found) = state.get(self.accounts.id, secret.namespace(), account) else { return };
        let Ok(mut found) = found.to_closed_map() else { return };
        if !uid.is_empty() && fields::text(&found, &["metadata", "uid"]) != uid {
            return;
        }
        let listed = fields::items(&found, &["secrets"]);
        let is_this = |item: &&Value| item.get("name").and_then(Value::as_str) == Some(secret.name());
        if !listed.iter().any(|item| is_this(&item)) {
            return;
        }
        let others: Vec<Value> = listed.iter().filter(|item| !is_this(item)).cloned().collect();
        found.insert("secrets", others.into());
        let target = Target { resource: &self.accounts, namespace: secret.namespace(), name: account };
        let written = self.api.update(&Request::own(Verb::Update, target), Body::Object(&found)).await;
        if let Err(error) = written {
            tracing::warn!(%error, account, "cannot take the reference to a Secret out of its account");
        }
    }
}
