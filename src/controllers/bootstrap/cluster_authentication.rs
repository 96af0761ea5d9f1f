//! Facts for others about how this server authenticates: the ConfigMap `extension-apiserver-authentication`, by which
//! aggregated API servers trust the same certificates, and the day since which the use of tokens in Secrets is tracked.

use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use tokio::sync::watch;
use tokio::time::sleep;

use super::create::create;
use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::request::Request;
use crate::api::{Api, ObjectMap, Target, fields};
use crate::auth::trust::{self, Trust};
use crate::cache::Watcher;
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::tree::{Map, Value, json};

const CONFIG_MAPS: Gvr = Gvr::fixed("v1", "configmaps");
const NAMESPACE: &str = "kube-system";
const TRUST: &str = "extension-apiserver-authentication";
const TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";
/// Certificates that have expired are taken out at least so often.
const PERIOD: Duration = Duration::from_secs(60);

/// Makes both ConfigMaps, or completes them.
pub async fn reconcile(api: &Api, trust: &Trust) -> Result<(), Error> {
    let now = api.runtime.clock.now();
    write(api, TRUST, |data| trust::merged(trust, data, now)).await?;
    let today = api.runtime.clock.timestamp().to_zoned(TimeZone::UTC).date().to_string();
    let since = |data: &Map| match fields::text(data, &["since"]).parse::<Date>() {
        Ok(_) => data.clone(),
        Err(_) => json!({"since": today}).as_object().cloned().unwrap_or_default(),
    };
    write(api, TRACKING, since).await
}

/// Keeps both ConfigMaps.
pub async fn run(api: Arc<Api>, trust: watch::Sender<Trust>) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&CONFIG_MAPS).cloned() else {
        return std::future::pending().await;
    };
    let mut watcher = api.cache.watch(resource.id, api.cache.any().revision);
    let mut told = trust.subscribe();
    loop {
        let own = told.borrow_and_update().clone();
        reconcile(&api, &own).await?;
        tokio::select! {
            changed = somebody_changed_them(&mut watcher) => changed?,
            // The sender lives as long as this.
            _ = told.changed() => {}
            () = sleep(PERIOD) => {}
        }
    }
}

/// Returns after a change of one of the ConfigMaps.
async fn somebody_changed_them(watcher: &mut Watcher) -> Result<(), Error> {
    loop {
        watcher.changed().await;
        let mut ours = false;
        loop {
            let events = watcher.next().await?;
            if events.is_empty() {
                break;
            }
            let mut objects =
                events.iter().filter_map(|event| event.current.as_ref().or(event.previous.as_ref()));
            ours |= objects
                .any(|object| object.namespace() == NAMESPACE && [TRUST, TRACKING].contains(&object.name()));
        }
        if ours {
            return Ok(());
        }
    }
}

/// Writes what is made of the data that a ConfigMap has now, if that differs.
async fn write(api: &Api, name: &str, make: impl Fn(&Map) -> Map) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&CONFIG_MAPS) else { return Ok(()) };
    let state = api.cache.fresh().await?;
    let Some(found) = state.get(resource.id, NAMESPACE, name) else {
        let object = json!({
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": name},
            "data": Value::Object(make(&Map::new())),
        });
        return create(api, &CONFIG_MAPS, NAMESPACE, object).await;
    };
    let Ok(mut object) = found.to_closed_map() else { return Ok(()) };
    let empty = ObjectMap::new();
    let data = fields::object(&object, "data").unwrap_or(&empty);
    let made = make(data);
    if made == *data {
        return Ok(());
    }
    object.insert("data", Value::Object(made));
    let target = Target { resource, namespace: NAMESPACE, name };
    match api.update(&Request::own(Verb::Update, target), Body::Object(&object)).await {
        // Somebody else was faster, which is told by an event.
        Ok(_) | Err(Error::Conflict { .. } | Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
