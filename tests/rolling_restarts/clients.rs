//! Clients that do not expect anything to go wrong: a request that fails is a panic.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::client::Client;
use crate::support::server::rv;

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// How often each client has written.
#[derive(Clone, Default)]
pub struct Counts(Arc<Mutex<BTreeMap<String, u64>>>);

impl Counts {
    pub fn all(&self) -> BTreeMap<String, u64> {
        self.0.lock().unwrap().clone()
    }

    fn count(&self, name: &str) {
        *self.0.lock().unwrap().entry(name.to_owned()).or_default() += 1;
    }
}

/// Creates, reads, changes and deletes objects, with a pause after each request or without.
pub async fn write(
    client: Client,
    name: String,
    pause: Option<Duration>,
    over: CancellationToken,
    counts: Counts,
) {
    let rest = async || {
        if let Some(pause) = pause {
            tokio::time::sleep(pause).await;
        }
    };
    for n in 0u64.. {
        if over.is_cancelled() {
            return;
        }
        let path = format!("{MAPS}/{name}-{n}");
        let mut object =
            client.post(MAPS, &json!({"metadata": {"name": format!("{name}-{n}")}})).await.expect(201);
        counts.count(&name);
        rest().await;
        assert_eq!(client.get(&path).await.ok(), object);
        rest().await;
        object["data"] = json!({"changed": "yes"});
        client.put(&path, &object).await.ok();
        counts.count(&name);
        rest().await;
        client.delete(&path).await.ok();
        rest().await;
    }
}

/// The same by kube-rs.
pub async fn use_with_kube(client: kube::Client, over: CancellationToken, counts: Counts) {
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let post = PostParams::default();
    for n in 0u64.. {
        if over.is_cancelled() {
            return;
        }
        let name = format!("kube-{n}");
        let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        let mut created = api.create(&post, &object).await.expect("created");
        assert_eq!(api.get(&name).await.expect("read"), created);
        created.data = Some([("changed".to_owned(), "yes".to_owned())].into());
        api.replace(&name, &post, &created).await.expect("replaced");
        api.delete(&name, &DeleteParams::default()).await.expect("deleted");
        counts.count("kube");
    }
}

/// Counts an object up, and returns the last number.
pub async fn count_up(client: Client, over: CancellationToken) -> u64 {
    let mut value = 0;
    while !over.is_cancelled() {
        value += 1;
        let body = json!({"data": {"value": value.to_string()}});
        client.patch(format!("{MAPS}/counter"), &body).await.ok();
    }
    value
}

/// Sees every number once, in order.
#[derive(Default)]
struct Sequence(Option<u64>);

impl Sequence {
    /// The last number, if this is the end.
    fn see(&mut self, counter: &ConfigMap) -> Option<u64> {
        let value = &counter.data.as_ref().unwrap()["value"];
        if value == "end" {
            return self.0;
        }
        let value = value.parse().unwrap();
        if let Some(before) = self.0.replace(value) {
            assert_eq!(value, before + 1, "an event is missing, or told twice");
        }
        None
    }
}

/// Follows the counter by watches, each from where the one before has ended.
pub async fn follow(client: Client) -> u64 {
    let list = client.get(format!("{MAPS}?fieldSelector=metadata.name%3Dcounter")).await.ok();
    let (mut seen, mut sequence) = (rv(&list), Sequence::default());
    let counter = |object: &Value| serde_json::from_value(object.clone()).unwrap();
    sequence.see(&counter(&list["items"][0]));
    loop {
        let path = format!("{MAPS}?watch=1&fieldSelector=metadata.name%3Dcounter&resourceVersion={seen}");
        let mut watch = client.watch(path).await;
        while let Some(event) = watch.next().await {
            assert_eq!(event["type"], "MODIFIED", "{event}");
            seen = rv(&event["object"]);
            if let Some(last) = sequence.see(&counter(&event["object"])) {
                return last;
            }
        }
    }
}

/// The same by kube-rs's watcher, which must not meet an error either.
pub async fn follow_with_kube(client: kube::Client) -> u64 {
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let only = watcher::Config::default().fields("metadata.name=counter");
    let mut events = pin!(watcher(api, only).applied_objects());
    let mut sequence = Sequence::default();
    while let Some(object) = events.try_next().await.expect("no error") {
        if let Some(last) = sequence.see(&object) {
            return last;
        }
    }
    panic!("the watcher has ended")
}
