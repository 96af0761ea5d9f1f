//! Addresses and ports of Services that were deleted without releasing them, as after a crash.

#[macro_use]
mod support;

use std::sync::{Arc, Mutex, Once};

use futures_util::TryStreamExt as _;

use rowplane::api::error::Error;
use rowplane::api::input::decode::Body;
use rowplane::api::meta::generate_name;
use rowplane::api::request::Request;
use rowplane::api::{Api, Target};
use rowplane::cache::Range;
use rowplane::codec::object::Draft;
use rowplane::schema::names::{GroupVersion, Gvr};
use rowplane::schema::resource::Verb;
use rowplane::storage::{Backend, Change, Expect, Key, Mutation, ResourceId, Row, Scan, Written};
use rowplane::tree::{Value, json};

use support::raced::Raced;
use support::verbs::{api_on, api_over};

on_both_databases! {
    what_a_crash_leaves_behind_is_swept_up,
    what_an_unreadable_service_may_hold_is_not_given_away,
    an_unreadable_claim_stays,
    an_unreadable_network_is_no_missing_one,
    a_service_is_not_written_without_its_claims,
    a_service_that_is_there_again_keeps_its_claims,
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
    let ports = api.cache.any().objects(api.hidden.node_ports.id()).len();
    assert_eq!(ports, 1, "the other Service keeps its port");
}

async fn create(api: &Api, plural: &str, namespace: &str, object: Value) {
    let resource = api.resources.get(&GroupVersion::fixed("v1").with_plural(plural)).expect(plural);
    let Value::Object(object) = object else { panic!("no object") };
    let request = Request::own(Verb::Create, Target { resource, namespace, name: "" });
    api.create(&request, Body::Object(&object)).await.expect("create");
}

/// Removes a Service directly from the store.
async fn remove(api: &Api, name: &str) {
    let services = api.resources.get(&Gvr::fixed("v1", "services")).expect("services").id;
    let found = api.cache.any().get(services, "t", name).expect(name);
    let key = Key::new(services, "t", name);
    let mutation = Mutation::new(key, Expect::At(found.revision()), Change::Delete);
    let written = api.store.write(mutation).await.expect("write");
    assert!(matches!(written, Written::Committed { .. }));
}

/// Makes the stored value of an object unreadable.
async fn damage(api: &Api, resource: ResourceId, namespace: &str, name: &str) {
    let found = api.cache.any().get(resource, namespace, name);
    let expect = found.map_or(Expect::Absent, |found| Expect::At(found.revision()));
    let draft = Draft::parse(namespace, name, "{{".into());
    let change = Change::Put { uid: "u".into(), stored_version: "v1".into(), value: draft.into() };
    let written = api.store.write(Mutation::new(Key::new(resource, namespace, name), expect, change)).await;
    assert!(matches!(written, Ok(Written::Committed { .. })), "{written:?}");
}

fn with_node_port() -> Value {
    json!({"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
}

async fn what_an_unreadable_service_may_hold_is_not_given_away(setup: support::server::Setup) {
    let api = api_on(&setup.database).await;
    create(&api, "namespaces", "", json!({"metadata": {"name": "t"}})).await;
    create(&api, "services", "t", with_node_port()).await;
    let services = api.resources.get(&Gvr::fixed("v1", "services")).expect("services").id;
    damage(&api, services, "t", "s").await;
    assert!(api.orphaned_claims(&api.cache.any()).is_empty(), "an address and a port are held");
    remove(&api, "s").await;
    assert_eq!(api.orphaned_claims(&api.cache.any()).len(), 2, "by nobody now");
}

async fn an_unreadable_claim_stays(setup: support::server::Setup) {
    let api = api_on(&setup.database).await;
    create(&api, "namespaces", "", json!({"metadata": {"name": "t"}})).await;
    create(&api, "services", "t", with_node_port()).await;
    let claims = api.cache.any().objects(api.hidden.node_ports.id());
    let claim = claims.range(&Range::of(None)).next().expect("a port").clone();
    damage(&api, api.hidden.node_ports.id(), "", claim.name()).await;
    remove(&api, "s").await;
    assert_eq!(
        api.orphaned_claims(&api.cache.any()).len(),
        1,
        "the address; whose the port is, nobody knows"
    );
}

async fn an_unreadable_network_is_no_missing_one(setup: support::server::Setup) {
    let api = api_on(&setup.database).await;
    create(&api, "namespaces", "", json!({"metadata": {"name": "t"}})).await;
    let networks =
        api.resources.get(&Gvr::fixed("networking.k8s.io/v1", "servicecidrs")).expect("networks").id;
    damage(&api, networks, "", "kubernetes").await;
    let services = api.resources.get(&Gvr::fixed("v1", "services")).expect("services");
    for spec in [json!({"ports": [{"port": 80}]}), json!({"clusterIP": "10.0.0.9", "ports": [{"port": 80}]})]
    {
        let Value::Object(object) = json!({"metadata": {"name": "s"}, "spec": spec}) else {
            panic!("no object")
        };
        let target = Target { resource: services, namespace: "t", name: "" };
        let refused = api.create(&Request::own(Verb::Create, target), Body::Object(&object)).await;
        let Err(Error::Internal(why)) = refused.map(drop) else { panic!("neither full nor out of range") };
        assert!(why.contains("the stored value of \"kubernetes\""), "{why}");
    }
}

/// An API on a store in which another server does something before a batch is committed.
async fn api_that_is_raced<F>(
    setup: &support::server::Setup,
    race: impl Fn(Arc<dyn Backend>, Mutation) -> F + Send + Sync + 'static,
) -> Arc<Api>
where
    F: Future<Output = ()> + Send + 'static,
{
    let inner = setup.database.open().await;
    let backend = Raced::new(inner, move |backend, batch| {
        let races: Vec<F> = batch.into_iter().map(|mutation| race(backend.clone(), mutation)).collect();
        async move {
            for race in races {
                race.await;
            }
        }
    });
    let api = api_over(backend, |prefix| generate_name(prefix, &mut rand::rng())).await;
    create(&api, "namespaces", "", json!({"metadata": {"name": "t"}})).await;
    api
}

fn is_port(key: &Key) -> bool {
    key.name.parse::<u16>().is_ok()
}

/// Removes what has this key.
async fn take_back(backend: &dyn Backend, key: Key) {
    let now = backend.clock().await.expect("a clock").revision;
    let rows = backend.scan(Scan::all(key.resource), now).await.expect("a scan");
    let rows: Vec<Row> = rows.try_collect().await.expect("rows");
    let found = rows.into_iter().find(|row| *row.name == *key.name).expect("a row");
    let mutation = Mutation::new(key, Expect::At(found.revision), Change::Delete);
    backend.commit(&[mutation], rowplane::revision::Revision(0)).await.expect("commit");
}

/// As a failover does, which takes the last commits back.
async fn a_service_is_not_written_without_its_claims(setup: support::server::Setup) {
    let (claimed, once): (Mutex<Option<Key>>, Once) = (Mutex::default(), Once::new());
    let api = api_that_is_raced(&setup, move |backend, mutation| {
        let is_service = &*mutation.key.name == "s";
        if is_port(&mutation.key) {
            once.call_once(|| *claimed.lock().unwrap() = Some(mutation.key));
        }
        let lost = claimed.lock().unwrap().take_if(|_| is_service);
        async move {
            if let Some(lost) = lost {
                take_back(&*backend, lost).await;
            }
        }
    })
    .await;
    create(&api, "services", "t", with_node_port()).await;
    let state = api.cache.fresh().await.expect("a state");
    let ports = state.objects(api.hidden.node_ports.id());
    let ports: Vec<String> = ports.range(&Range::of(None)).map(|claim| claim.name().to_owned()).collect();
    let services = api.resources.get(&Gvr::fixed("v1", "services")).expect("services").id;
    let service = state.get(services, "t", "s").expect("the Service").to_map().expect("readable");
    let spec = Value::Object(service)["spec"].clone();
    assert_eq!(ports, [spec["ports"][0]["nodePort"].to_string()]);
    assert!(api.orphaned_claims(&state).is_empty());
}

/// A failover takes its deletion back before its claims are released.
async fn a_service_that_is_there_again_keeps_its_claims(setup: support::server::Setup) {
    let written: Mutex<Option<Mutation>> = Mutex::default();
    let api = api_that_is_raced(&setup, move |backend, mutation| {
        let mut written = written.lock().unwrap();
        if &*mutation.key.name == "s" && matches!(mutation.change, Change::Put { .. }) {
            *written = Some(Mutation::new(mutation.key.clone(), Expect::Absent, mutation.change.clone()));
        }
        let is_release = is_port(&mutation.key) && matches!(mutation.change, Change::Delete);
        let again = written.take_if(|_| is_release);
        async move {
            if let Some(again) = again {
                backend.commit(&[again], rowplane::revision::Revision(0)).await.expect("commit");
            }
        }
    })
    .await;
    create(&api, "services", "t", with_node_port()).await;
    let services = api.resources.get(&Gvr::fixed("v1", "services")).expect("services");
    let target = Target { resource: services, namespace: "t", name: "s" };
    assert!(api.delete(&Request::own(Verb::Delete, target)).await.is_ok());
    let state = api.cache.fresh().await.expect("a state");
    assert!(state.get(services.id, "t", "s").is_some());
    assert_eq!(state.objects(api.hidden.node_ports.id()).len(), 1, "the Service has its port");
}
