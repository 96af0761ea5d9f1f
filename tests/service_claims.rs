//! Addresses and ports of Services that are gone without having given them back, as after a crash.

#[macro_use]
mod support;

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rowplane::api::continue_token::{TokenKey, TokenKeys};
use rowplane::api::options::write::WriteOptions;
use rowplane::api::resource::Resources;
use rowplane::api::services::port_claims;
use rowplane::api::{self, Api};
use rowplane::cache::Cache;
use rowplane::schema::builtin;
use rowplane::schema::registry::Registry;
use rowplane::storage::{Change, Expect, HighWaterMark, Key, Mutation, Store, Written};
use rowplane::user::User;
use serde_json::{Value, json};

use support::database::Database;

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
    api.create(resource, namespace, object, &WriteOptions::default(), &User::apiserver())
        .await
        .expect("create");
}

/// Behind the back of the API.
async fn remove(api: &Api, name: &str) {
    let services = api.resources.get("", "v1", "services").expect("services").id;
    let found = api.cache.any().get(services, "t", name).expect(name);
    let key = Key::new(services, "t", name);
    let mutation = Mutation { key, expect: Expect::At(found.revision()), change: Change::Delete };
    let written = api.store.write(mutation).await.expect("write");
    assert!(matches!(written, Written::Committed { .. }));
}

/// The verbs on a database, without a server around them.
async fn api_on(database: &Database) -> Arc<Api> {
    let backend = database.open().await;
    let registry = Arc::new(Registry::new(builtin::definitions()));
    let mut names: Vec<_> = registry.stored().map(|(name, _)| name.clone()).collect();
    names.push(port_claims());
    let ids = backend.resource_ids(&names).await.expect("ids");
    let port_claims = ids[ids.len() - 1];
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mark = Arc::new(HighWaterMark::load(directory.path().join("mark")).expect("a new mark"));
    let (cache, sink) = Cache::start(backend.clone(), &ids, mark.clone()).await.expect("load");
    Arc::new(Api {
        store: Store::start(backend, sink, mark),
        cache,
        resources: Resources::new(registry, &names.into_iter().zip(ids).collect()),
        token_keys: ArcSwap::from_pointee(TokenKeys::new(
            TokenKey { id: 1, secret: vec![0; 32] },
            Vec::new(),
        )),
        port_claims,
        config: api::Config { min_request_timeout: Duration::from_secs(1800), services: Default::default() },
    })
}
