//! Addresses and ports of Services that are gone without having given them back, as after a crash.

#[macro_use]
mod support;

use rowplane::api::Api;
use rowplane::api::options::write::WriteOptions;
use rowplane::api::strictness::{Requester, Warnings};
use rowplane::storage::{Change, Expect, Key, Mutation, Written};
use rowplane::tree::{Value, json};
use rowplane::user::User;

use support::verbs::api_on;

on_both_databases! {
    what_a_crash_leaves_behind_is_swept_up,
}

async fn what_a_crash_leaves_behind_is_swept_up(setup: support::server::Setup) {
    let api = api_on(&setup.database).await;
    create(&api, "namespaces", "", json!({"metadata": {"name": "t"}})).await;
    for name in ["gone", "stays"] {
        let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
        create(&api, "services", "t", json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    assert!(api.orphaned_claims(&api.cache.any()).is_empty());
    remove(&api, "gone").await;
    let orphans = api.orphaned_claims(&api.cache.any());
    assert_eq!(orphans.len(), 2, "{orphans:?}");
    for orphan in &orphans {
        api.sweep(orphan).await.expect("sweep");
    }
    assert!(api.orphaned_claims(&api.cache.any()).is_empty());
    let ports = api.cache.any().objects(api.port_claims).len();
    assert_eq!(ports, 1, "the other Service keeps its port");
}

async fn create(api: &Api, plural: &str, namespace: &str, object: Value) {
    let resource = api.resources.get("", "v1", plural).expect(plural);
    let Value::Object(object) = object else { panic!("no object") };
    let requester = Requester { user: &User::apiserver(), warnings: &Warnings::default() };
    api.create(resource, namespace, object, &WriteOptions::default(), requester).await.expect("create");
}

/// Behind the back of the API.
async fn remove(api: &Api, name: &str) {
    let services = api.resources.get("", "v1", "services").expect("services").id;
    let found = api.cache.any().get(services, "t", name).expect(name);
    let key = Key::new(services, "t", name);
    let mutation = Mutation::new(key, Expect::At(found.revision()), Change::Delete);
    let written = api.store.write(mutation).await.expect("write");
    assert!(matches!(written, Written::Committed { .. }));
}
